# SPDX-License-Identifier: Apache-2.0
#
# isolate: cgroups, namespaces, mounts, killing a process tree.

noinst_LIBRARIES += core/isolate/libisolate.a
core_isolate_libisolate_a_SOURCES = \
	core/isolate/caps.c core/isolate/caps.h \
	core/isolate/cgroup.c core/isolate/cgroup.h \
	core/isolate/cgroup_fs.h \
	core/isolate/cgroup_kill.c \
	core/isolate/cgroup_make.c \
	core/isolate/cgroup_stat.c \
	core/isolate/killtree.c core/isolate/killtree.h \
	core/isolate/mnt.c core/isolate/mnt.h \
	core/isolate/mnt_fs.c core/isolate/mnt_fs.h \
	core/isolate/ns.c core/isolate/ns.h \
	core/isolate/procid.c core/isolate/procid.h \
	core/isolate/sysfile.c core/isolate/sysfile.h

UNIT_TESTS += tests/unit/test_cgroup tests/unit/test_cgroup_live \
	tests/unit/test_killtree tests/unit/test_ns tests/unit/test_procid

tests_unit_test_cgroup_SOURCES = tests/unit/test_cgroup.c
tests_unit_test_cgroup_LDADD = $(ISOLATE_LIBS) $(TEST_LIBS)
tests_unit_test_cgroup_live_SOURCES = tests/unit/test_cgroup_live.c
tests_unit_test_cgroup_live_LDADD = $(ISOLATE_LIBS) $(TEST_LIBS)
tests_unit_test_killtree_SOURCES = tests/unit/test_killtree.c
tests_unit_test_killtree_LDADD = $(ISOLATE_LIBS) $(TEST_LIBS)
tests_unit_test_procid_SOURCES = tests/unit/test_procid.c
tests_unit_test_procid_LDADD = $(ISOLATE_LIBS) $(TEST_LIBS)
tests_unit_test_ns_SOURCES = tests/unit/test_ns.c
tests_unit_test_ns_LDADD = $(ISOLATE_LIBS) $(TEST_LIBS)
