# SPDX-License-Identifier: Apache-2.0
#
# io: the event loop, HTTP client and server, child processes, crypto.

noinst_LIBRARIES += core/io/libio.a
core_io_libio_a_SOURCES = \
	core/io/loop.c core/io/loop.h \
	core/io/loop_pool.c

UNIT_TESTS += tests/unit/test_loop

tests_unit_test_loop_SOURCES = tests/unit/test_loop.c
tests_unit_test_loop_LDADD = core/io/libio.a $(BASE_LIBS) $(LIBUV_LIBS) \
	$(TEST_LIBS)
