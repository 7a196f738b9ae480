# SPDX-License-Identifier: Apache-2.0
#
# sim: scenarios, checkers and planted bugs for the simulator.

tests_sim_rig = tests/sim/rig.c tests/sim/rig.h

UNIT_TESTS += tests/sim/test_sim_scenarios tests/sim/test_sim_outside \
	tests/sim/test_sim_settings
tests_sim_test_sim_scenarios_SOURCES = tests/sim/test_sim_scenarios.c \
	tests/sim/scenario.h $(tests_sim_rig)
tests_sim_test_sim_scenarios_LDADD = core/sim/libsim.a $(DISPATCH_LIBS) \
	$(TEST_LIBS)

tests_sim_test_sim_outside_SOURCES = tests/sim/test_sim_outside.c \
	tests/sim/scenario.h $(tests_sim_rig)
tests_sim_test_sim_outside_LDADD = $(tests_sim_test_sim_scenarios_LDADD)

tests_sim_test_sim_settings_SOURCES = tests/sim/test_sim_settings.c \
	tests/sim/scenario.h $(tests_sim_rig)
tests_sim_test_sim_settings_LDADD = $(tests_sim_test_sim_scenarios_LDADD)

TEST_HELPERS += tests/sim/sim_run
tests_sim_sim_run_SOURCES = tests/sim/sim_run.c $(tests_sim_rig)
tests_sim_sim_run_LDADD = core/sim/libsim.a $(DISPATCH_LIBS)

SYSTEM_TESTS += tests/sim/seeds.sh tests/sim/mutants.sh
LONG_TESTS += tests/sim/seeds.sh tests/sim/mutants.sh
CLEAN_DIRS += mutants
EXTRA_DIST += \
	tests/sim/mutants/cancel-on-one-empty-list.patch \
	tests/sim/mutants/create-before-intent.patch \
	tests/sim/mutants/destroy-on-one-empty-list.patch \
	tests/sim/mutants/end-of-stream-is-exit.patch \
	tests/sim/mutants/new-token-after-unknown.patch \
	tests/sim/mutants/release-on-first-absence.patch \
	tests/sim/mutants/revoke-skipped.patch \
	tests/sim/mutants/start-before-intent.patch \
	tests/sim/mutants/starts-forgotten-at-restart.patch
