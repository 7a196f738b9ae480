# SPDX-License-Identifier: Apache-2.0
#
# arvados: the API port over HTTP.

noinst_LIBRARIES += core/arvados/libarvados.a
core_arvados_libarvados_a_SOURCES = \
	core/arvados/api_client.c core/arvados/api_client.h \
	core/arvados/api_wire.c core/arvados/api_wire.h \
	core/arvados/ctr_json.c core/arvados/ctr_json.h \
	core/arvados/ctr_salvage.c

UNIT_TESTS += tests/unit/test_api_client tests/unit/test_api_wire \
	tests/unit/test_ctr_json

tests_unit_test_api_client_SOURCES = tests/unit/test_api_client.c
tests_unit_test_api_client_LDADD = $(ARVADOS_LIBS) $(TEST_LIBS)
tests_unit_test_api_wire_SOURCES = tests/unit/test_api_wire.c
tests_unit_test_api_wire_LDADD = $(ARVADOS_LIBS) $(TEST_LIBS)
tests_unit_test_ctr_json_SOURCES = tests/unit/test_ctr_json.c
tests_unit_test_ctr_json_LDADD = $(ARVADOS_LIBS) $(TEST_LIBS)
