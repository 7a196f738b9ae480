# SPDX-License-Identifier: Apache-2.0
#
# ssh: the exec port over libssh, on a thread of its own.
noinst_LIBRARIES += core/ssh/libsshport.a
core_ssh_libsshport_a_SOURCES = \
	core/ssh/chan.c core/ssh/chan.h core/ssh/conn.c core/ssh/conn.h \
	core/ssh/shard.c core/ssh/shard.h \
	core/ssh/ssh_port.c core/ssh/ssh_port.h

UNIT_TESTS += tests/unit/test_ssh
tests_unit_test_ssh_SOURCES = tests/unit/test_ssh.c
tests_unit_test_ssh_LDADD = $(SSHPORT_LIBS) $(TEST_LIBS)
