# SPDX-License-Identifier: Apache-2.0
#
# dispatch: every decision of the dispatcher. Knows port, model, base only.

noinst_LIBRARIES += core/dispatch/libdispatch.a
core_dispatch_libdispatch_a_SOURCES = \
	core/dispatch/admin.c \
	core/dispatch/adopt.c \
	core/dispatch/boot.c \
	core/dispatch/choose.c \
	core/dispatch/choose.h \
	core/dispatch/core.h \
	core/dispatch/cqueue.c \
	core/dispatch/cqueue.h \
	core/dispatch/cqueue_impl.h \
	core/dispatch/creates.c \
	core/dispatch/creates.h \
	core/dispatch/deadline.c \
	core/dispatch/deadline.h \
	core/dispatch/destroy.c \
	core/dispatch/dispatch.c \
	core/dispatch/dispatch.h \
	core/dispatch/explain.c \
	core/dispatch/explain_vm.c \
	core/dispatch/feed.c \
	core/dispatch/gate.c \
	core/dispatch/gate.h \
	core/dispatch/guard.c \
	core/dispatch/guard.h \
	core/dispatch/holdoff.c \
	core/dispatch/holdoff.h \
	core/dispatch/hostkey.c \
	core/dispatch/hostkey.h \
	core/dispatch/jr.c \
	core/dispatch/jr.h \
	core/dispatch/kill.c \
	core/dispatch/lists.c \
	core/dispatch/lists.h \
	core/dispatch/order.c \
	core/dispatch/plan.c \
	core/dispatch/plan.h \
	core/dispatch/poll.c \
	core/dispatch/pool.c \
	core/dispatch/pool.h \
	core/dispatch/probe.c \
	core/dispatch/probe.h \
	core/dispatch/qent.c \
	core/dispatch/qent.h \
	core/dispatch/reconcile.c \
	core/dispatch/reconcile.h \
	core/dispatch/reread.c \
	core/dispatch/run.c \
	core/dispatch/run.h \
	core/dispatch/runner_cmd.c \
	core/dispatch/runner_cmd.h \
	core/dispatch/sched.c \
	core/dispatch/sched.h \
	core/dispatch/session.c \
	core/dispatch/shape.c \
	core/dispatch/silence.c \
	core/dispatch/starts.c \
	core/dispatch/starts.h \
	core/dispatch/stats.c \
	core/dispatch/stats.h \
	core/dispatch/tags.c \
	core/dispatch/tags.h \
	core/dispatch/verdict.c \
	core/dispatch/watch.c \
	core/dispatch/worker.c \
	core/dispatch/worker.h \
	core/dispatch/worker_fsm.c \
	core/dispatch/worker_fsm.h

UNIT_TESTS += \
	tests/unit/test_choose \
	tests/unit/test_deadline \
	tests/unit/test_guard \
	tests/unit/test_holdoff \
	tests/unit/test_hostkey \
	tests/unit/test_plan \
	tests/unit/test_probe \
	tests/unit/test_runner_cmd \
	tests/unit/test_verdict \
	tests/unit/test_worker_fsm
tests_unit_test_choose_SOURCES = tests/unit/test_choose.c
tests_unit_test_choose_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
tests_unit_test_deadline_SOURCES = tests/unit/test_deadline.c
tests_unit_test_deadline_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
tests_unit_test_guard_SOURCES = tests/unit/test_guard.c
tests_unit_test_guard_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
tests_unit_test_holdoff_SOURCES = tests/unit/test_holdoff.c
tests_unit_test_holdoff_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
tests_unit_test_hostkey_SOURCES = tests/unit/test_hostkey.c
tests_unit_test_hostkey_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c
tests_unit_test_plan_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
tests_unit_test_probe_SOURCES = tests/unit/test_probe.c
tests_unit_test_probe_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
tests_unit_test_runner_cmd_SOURCES = tests/unit/test_runner_cmd.c
tests_unit_test_runner_cmd_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
tests_unit_test_verdict_SOURCES = tests/unit/test_verdict.c
tests_unit_test_verdict_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
tests_unit_test_worker_fsm_SOURCES = tests/unit/test_worker_fsm.c
tests_unit_test_worker_fsm_LDADD = $(DISPATCH_LIBS) $(TEST_LIBS)
