# SPDX-License-Identifier: Apache-2.0
#
# loopback: the driver for VMs on this machine, over cdc-local-vm.

driver_LTLIBRARIES += drivers/loopback/loopback.la
drivers_loopback_loopback_la_CPPFLAGS = $(DRIVER_CPPFLAGS) \
	-DLOCAL_VM='"$(pkglibexecdir)/cdc-local-vm"' \
	-DPACKAGE_VERSION='"$(PACKAGE_VERSION)"'
drivers_loopback_loopback_la_CFLAGS = $(DRIVER_CFLAGS)
drivers_loopback_loopback_la_LDFLAGS = $(DRIVER_LINKFLAGS)
drivers_loopback_loopback_la_LIBADD = drivers/common/libcommon.la
drivers_loopback_loopback_la_SOURCES = drivers/loopback/loopback.c

UNIT_TESTS += tests/unit/test_loopback
tests_unit_test_loopback_SOURCES = tests/unit/test_loopback.c
tests_unit_test_loopback_LDADD = $(PLUGIN_LIBS) $(TEST_LIBS)
