# SPDX-License-Identifier: Apache-2.0
#
# base: memory, errors, text, JSON, clock, log, metrics. Knows nothing of ours.

noinst_LIBRARIES += core/base/libbase.a
core_base_libbase_a_SOURCES = \
	core/base/buf.c core/base/buf.h \
	core/base/clock.c core/base/clock.h \
	core/base/err.c core/base/err.h \
	core/base/fault.c core/base/fault.h \
	core/base/fdio.c core/base/fdio.h \
	core/base/jsn.c core/base/jsn.h \
	core/base/jsn_scan.c core/base/jsn_scan.h \
	core/base/jsn_write.c \
	core/base/logger.c core/base/logger.h \
	core/base/map.c core/base/map.h \
	core/base/mem.c core/base/mem.h \
	core/base/metric.c core/base/metric.h \
	core/base/secret.c core/base/secret.h \
	core/base/text.c core/base/text.h \
	core/base/text_num.c \
	core/base/text_time.c \
	core/base/vec.h

noinst_HEADERS += tests/unit/unit.h

UNIT_TESTS += \
	tests/unit/test_buf \
	tests/unit/test_err \
	tests/unit/test_fault \
	tests/unit/test_fdio \
	tests/unit/test_jsn \
	tests/unit/test_logger \
	tests/unit/test_map \
	tests/unit/test_mem \
	tests/unit/test_metric \
	tests/unit/test_secret \
	tests/unit/test_text

tests_unit_test_buf_SOURCES = tests/unit/test_buf.c
tests_unit_test_buf_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_err_SOURCES = tests/unit/test_err.c
tests_unit_test_err_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_fault_SOURCES = tests/unit/test_fault.c
tests_unit_test_fault_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_fdio_SOURCES = tests/unit/test_fdio.c
tests_unit_test_fdio_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_jsn_SOURCES = tests/unit/test_jsn.c
tests_unit_test_jsn_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_logger_SOURCES = tests/unit/test_logger.c
tests_unit_test_logger_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_map_SOURCES = tests/unit/test_map.c
tests_unit_test_map_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_mem_SOURCES = tests/unit/test_mem.c
tests_unit_test_mem_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_metric_SOURCES = tests/unit/test_metric.c
tests_unit_test_metric_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_secret_SOURCES = tests/unit/test_secret.c
tests_unit_test_secret_LDADD = $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_text_SOURCES = tests/unit/test_text.c
tests_unit_test_text_LDADD = $(BASE_LIBS) $(TEST_LIBS)
