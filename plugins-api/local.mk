# SPDX-License-Identifier: Apache-2.0
#
# plugins-api: the public headers for drivers, and what proves them.

cdcincludedir = $(includedir)/cdc
cdcinclude_HEADERS = plugins-api/cdc/driver.h plugins-api/cdc/host.h \
	plugins-api/cdc/types.h
nodist_cdcinclude_HEADERS = plugins-api/cdc/version.h
pkgconfig_DATA = plugins-api/cdc-driver.pc

# Proof that the installed files suffice to build a driver outside the tree.
installcheck-local:
