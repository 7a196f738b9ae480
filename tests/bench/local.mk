# SPDX-License-Identifier: Apache-2.0
#
# bench: figures, each beside a floor measured in the same run.

# The bare loop: the parts joined with no dispatcher between them.
TEST_HELPERS += tests/bench/bareloop
tests_bench_bareloop_SOURCES = tests/bench/bareloop.c \
	core/dispatcher/runner_file.c
tests_bench_bareloop_CPPFLAGS = $(AM_CPPFLAGS) \
	-DCDC_RUNNER_PATH='"$(bindir)/crunch-run"'
tests_bench_bareloop_LDADD = $(DISPATCH_LIBS) $(ARVADOS_LIBS) \
	$(PLUGIN_LIBS) $(SSHPORT_LIBS) $(STORE_LIBS) $(CONF_LIBS) $(IO_LIBS)

BENCHES += tests/bench/dispatch.py
