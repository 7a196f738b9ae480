# SPDX-License-Identifier: Apache-2.0
#
# plugin: the cloud port over drivers loaded with libltdl.

noinst_LIBRARIES += core/plugin/libplugin.a
core_plugin_libplugin_a_CPPFLAGS = $(AM_CPPFLAGS) -DDRIVERDIR='"$(driverdir)"'
core_plugin_libplugin_a_SOURCES = \
	core/plugin/call.c core/plugin/call.h \
	core/plugin/descriptor.c core/plugin/descriptor.h \
	core/plugin/dl.c core/plugin/dl.h \
	core/plugin/drvset.c core/plugin/drvset.h \
	core/plugin/elffile.c core/plugin/elffile.h \
	core/plugin/hosttab.c core/plugin/hosttab.h \
	core/plugin/iset.c core/plugin/iset.h \
	core/plugin/jsonview.c core/plugin/jsonview.h \
	core/plugin/preflight.c core/plugin/preflight.h \
	core/plugin/process.c core/plugin/process.h \
	core/plugin/record.c core/plugin/record.h \
	core/plugin/registry.c core/plugin/registry.h \
	core/plugin/schema.c core/plugin/schema.h \
	core/plugin/trust.c core/plugin/trust.h

UNIT_TESTS += \
	tests/unit/test_descriptor \
	tests/unit/test_hosttab \
	tests/unit/test_iset \
	tests/unit/test_record \
	tests/unit/test_registry \
	tests/unit/test_schema

tests_unit_test_descriptor_SOURCES = tests/unit/test_descriptor.c
tests_unit_test_descriptor_LDADD = $(PLUGIN_LIBS) $(TEST_LIBS)
tests_unit_test_hosttab_SOURCES = tests/unit/test_hosttab.c
tests_unit_test_hosttab_LDADD = $(PLUGIN_LIBS) $(TEST_LIBS)
tests_unit_test_iset_SOURCES = tests/unit/test_iset.c
tests_unit_test_iset_LDADD = $(PLUGIN_LIBS) $(TEST_LIBS)
tests_unit_test_record_SOURCES = tests/unit/test_record.c
tests_unit_test_record_LDADD = $(PLUGIN_LIBS) $(TEST_LIBS)
tests_unit_test_registry_SOURCES = tests/unit/test_registry.c
tests_unit_test_registry_LDADD = $(PLUGIN_LIBS) $(TEST_LIBS)
tests_unit_test_schema_SOURCES = tests/unit/test_schema.c
tests_unit_test_schema_LDADD = $(PLUGIN_LIBS) $(TEST_LIBS)
