# SPDX-License-Identifier: Apache-2.0
#
# conf: the cluster file (YAML) as one immutable record.
noinst_LIBRARIES += core/conf/libconf.a
core_conf_libconf_a_SOURCES = \
	core/conf/conf.c core/conf/conf.h core/conf/conf_tbl.h \
	core/conf/conf_backends.c core/conf/conf_desc.c \
	core/conf/conf_dispatch.c core/conf/conf_unknown.c \
	core/conf/conf_itypes.c core/conf/conf_priv.h core/conf/conf_value.c \
	core/conf/ytree.c core/conf/ytree.h

noinst_PROGRAMS += core/conf/settings_doc
core_conf_settings_doc_SOURCES = core/conf/settings_doc.c
core_conf_settings_doc_LDADD = $(CONF_LIBS)

UNIT_TESTS += tests/unit/test_ytree tests/unit/test_conf
tests_unit_test_ytree_SOURCES = tests/unit/test_ytree.c
tests_unit_test_ytree_LDADD = $(CONF_LIBS) $(TEST_LIBS)
tests_unit_test_conf_SOURCES = tests/unit/test_conf.c
tests_unit_test_conf_LDADD = $(CONF_LIBS) $(TEST_LIBS)
