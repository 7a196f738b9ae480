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
	core/runner/pump.c core/runner/pump.h \
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

RUNNER_TEST_LIBS = core/runner/librunner.a $(ISOLATE_LIBS) $(TEST_LIBS)

UNIT_TESTS += tests/unit/test_http_rx tests/unit/test_job \
	tests/unit/test_lockfile tests/unit/test_output \
	tests/unit/test_runner_cli tests/unit/test_runner_files \
	tests/unit/test_runner_http tests/unit/test_watch

tests_unit_test_http_rx_SOURCES = tests/unit/test_http_rx.c
tests_unit_test_http_rx_LDADD = $(RUNNER_TEST_LIBS)
tests_unit_test_job_SOURCES = tests/unit/test_job.c
tests_unit_test_job_LDADD = $(RUNNER_TEST_LIBS)
tests_unit_test_lockfile_SOURCES = tests/unit/test_lockfile.c
tests_unit_test_lockfile_LDADD = $(RUNNER_TEST_LIBS)
tests_unit_test_output_SOURCES = tests/unit/test_output.c
tests_unit_test_output_LDADD = $(RUNNER_TEST_LIBS)
tests_unit_test_runner_cli_SOURCES = tests/unit/test_runner_cli.c
tests_unit_test_runner_cli_LDADD = $(RUNNER_TEST_LIBS)
tests_unit_test_runner_files_SOURCES = tests/unit/test_runner_files.c
tests_unit_test_runner_files_LDADD = $(RUNNER_TEST_LIBS)
tests_unit_test_runner_http_SOURCES = tests/unit/test_runner_http.c
tests_unit_test_runner_http_LDADD = $(RUNNER_TEST_LIBS)
tests_unit_test_watch_SOURCES = tests/unit/test_watch.c
tests_unit_test_watch_LDADD = $(RUNNER_TEST_LIBS)

EXTRA_DIST += doc/decisions/0004-root-of-a-payload.md \
	doc/decisions/0005-words-of-a-payload.md
