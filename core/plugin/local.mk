# SPDX-License-Identifier: Apache-2.0
#
# plugin: the cloud port over drivers loaded with libltdl.

noinst_HEADERS += core/plugin/iset.h core/plugin/preflight.h \
	core/plugin/registry.h
