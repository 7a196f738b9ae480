# SPDX-License-Identifier: Apache-2.0
#
# model: containers, instance types, needs: plain records, pure arithmetic.

noinst_LIBRARIES += core/model/libmodel.a
core_model_libmodel_a_SOURCES = \
	core/model/ctr.c core/model/ctr.h core/model/ctr_states.h \
	core/model/dispatch_cfg.h \
	core/model/itypes.c core/model/itypes.h \
	core/model/need.c core/model/need.h

UNIT_TESTS += tests/unit/test_ctr tests/unit/test_itypes tests/unit/test_need
tests_unit_test_ctr_SOURCES = tests/unit/test_ctr.c
tests_unit_test_ctr_LDADD = $(MODEL_LIBS) $(TEST_LIBS)
tests_unit_test_itypes_SOURCES = tests/unit/test_itypes.c
tests_unit_test_itypes_LDADD = $(MODEL_LIBS) $(TEST_LIBS)
tests_unit_test_need_SOURCES = tests/unit/test_need.c
tests_unit_test_need_LDADD = $(MODEL_LIBS) $(TEST_LIBS)
