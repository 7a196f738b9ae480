# SPDX-License-Identifier: Apache-2.0
#
# runner: the program crunch-run. All but main() is a library, for its tests.

noinst_LIBRARIES += core/runner/librunner.a
core_runner_librunner_a_SOURCES = \
	core/runner/api.c core/runner/api.h \
	core/runner/cli.c core/runner/cli.h \
	core/runner/env.c core/runner/env.h \
	core/runner/exec.c core/runner/exec.h \
	core/runner/finish.c \
	core/runner/glob.c core/runner/glob.h \
	core/runner/host.c core/runner/host.h \
	core/runner/http.c core/runner/http.h \
	core/runner/http_rx.c core/runner/http_rx.h \
	core/runner/init.c core/runner/init.h \
	core/runner/job.c core/runner/job.h \
	core/runner/job_mounts.c \
	core/runner/limits.c core/runner/limits.h \
	core/runner/lockfile.c core/runner/lockfile.h \
	core/runner/logs.c core/runner/logs.h \
	core/runner/node.c core/runner/node.h \
	core/runner/nodeinfo.c core/runner/nodeinfo.h \
	core/runner/output.c core/runner/output.h \
	core/runner/payload.c core/runner/payload.h \
	core/runner/plain.c core/runner/plain.h \
	core/runner/report.c core/runner/report.h \
	core/runner/root.c core/runner/root.h \
	core/runner/run.c core/runner/run.h \
	core/runner/settings.c core/runner/settings.h \
	core/runner/stage.c core/runner/stage.h \
	core/runner/supervise.c \
	core/runner/tree.c core/runner/tree.h \
	core/runner/watch.c

bin_PROGRAMS += core/runner/crunch-run
core_runner_crunch_run_SOURCES = core/runner/main.c core/runner/stubs.c
core_runner_crunch_run_LDFLAGS = $(RUNNER_LINKFLAGS)
core_runner_crunch_run_LDADD = core/runner/librunner.a $(RUNNER_LIBS)

dist_man_MANS += doc/crunch-run.1
