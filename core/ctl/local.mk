# SPDX-License-Identifier: Apache-2.0
#
# ctl: the program crunchctl.
bin_PROGRAMS += crunchctl
crunchctl_SOURCES = \
	core/ctl/cancel.c \
	core/ctl/client.c core/ctl/client.h \
	core/ctl/cred.c core/ctl/cred.h core/ctl/ctl.h \
	core/ctl/help.c core/ctl/help.h \
	core/ctl/instances.c core/ctl/instances.h \
	core/ctl/list.c core/ctl/logcopy.h core/ctl/logs.c core/ctl/main.c \
	core/ctl/output.c \
	core/ctl/record.c core/ctl/record.h \
	core/ctl/show.c core/ctl/spec.c core/ctl/spec.h core/ctl/submit.c \
	core/ctl/table.c core/ctl/table.h core/ctl/top.c \
	core/ctl/verbs.c core/ctl/verbs.h \
	core/ctl/waiter.c core/ctl/waiter.h
crunchctl_LDADD = $(IO_LIBS)

UNIT_TESTS += tests/unit/test_ctl
tests_unit_test_ctl_SOURCES = tests/unit/test_ctl.c \
	core/ctl/client.c core/ctl/cred.c core/ctl/record.c core/ctl/spec.c \
	core/ctl/table.c core/ctl/verbs.c
tests_unit_test_ctl_LDADD = $(IO_LIBS) $(TEST_LIBS)
