# SPDX-License-Identifier: Apache-2.0
#
# dispatch: every decision of the dispatcher. Knows port, model, base only.

noinst_LIBRARIES += core/dispatch/libdispatch.a
core_dispatch_libdispatch_a_SOURCES = \
	core/dispatch/choose.c core/dispatch/choose.h \
	core/dispatch/dispatch.h \
	core/dispatch/guard.c core/dispatch/guard.h \
	core/dispatch/holdoff.c core/dispatch/holdoff.h \
	core/dispatch/hostkey.c core/dispatch/hostkey.h \
	core/dispatch/plan.c core/dispatch/plan.h \
	core/dispatch/probe.c core/dispatch/probe.h \
	core/dispatch/runner_cmd.c core/dispatch/runner_cmd.h \
	core/dispatch/worker_fsm.c core/dispatch/worker_fsm.h
