# SPDX-License-Identifier: Apache-2.0
#
# sim: the six ports over a seeded discrete-event world.

noinst_LIBRARIES += core/sim/libsim.a
core_sim_libsim_a_SOURCES = \
	core/sim/api.c core/sim/api.h core/sim/api_impl.h \
	core/sim/api_port.c \
	core/sim/chaos.c core/sim/chaos.h \
	core/sim/check.c core/sim/check.h \
	core/sim/clock.c core/sim/clock.h \
	core/sim/cloud.c core/sim/cloud.h core/sim/cloud_impl.h \
	core/sim/cloud_port.c \
	core/sim/faults.h \
	core/sim/journal.c core/sim/journal.h \
	core/sim/net.c core/sim/net.h \
	core/sim/op.c core/sim/op.h \
	core/sim/rng.c core/sim/rng.h \
	core/sim/vm.c core/sim/vm.h core/sim/vm_impl.h \
	core/sim/vm_cmd.c core/sim/vm_proc.c core/sim/vm_watch.c \
	core/sim/world.c core/sim/world.h

UNIT_TESTS += tests/unit/test_sim_world tests/unit/test_sim_rules
tests_unit_sim_script = tests/unit/sim_script.c tests/unit/sim_script.h
tests_unit_test_sim_world_SOURCES = \
	tests/unit/test_sim_world.c $(tests_unit_sim_script)
tests_unit_test_sim_world_LDADD = $(SIM_LIBS) $(TEST_LIBS)
tests_unit_test_sim_rules_SOURCES = \
	tests/unit/test_sim_rules.c $(tests_unit_sim_script)
tests_unit_test_sim_rules_LDADD = $(SIM_LIBS) $(TEST_LIBS)
