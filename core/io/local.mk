# SPDX-License-Identifier: Apache-2.0
#
# io: the event loop, HTTP client and server, digests, service manager.

noinst_LIBRARIES += core/io/libio.a
core_io_libio_a_SOURCES = \
	core/io/crypt.c core/io/crypt.h \
	core/io/notify.c core/io/notify.h \
	core/io/sshkey.c core/io/sshkey.h core/io/url.c core/io/url.h \
	core/io/form.c core/io/form.h \
	core/io/httpc.c core/io/httpc.h \
	core/io/httpd.c core/io/httpd.h \
	core/io/httpd_conn.c \
	core/io/httpd_int.h \
	core/io/httpd_parse.c \
	core/io/httpd_reply.c \
	core/io/httpd_req.c \
	core/io/loop.c core/io/loop.h \
	core/io/loop_pool.c \
	core/io/realports.c core/io/realports.h \
	core/io/wire.c core/io/wire.h

UNIT_TESTS += tests/unit/test_form tests/unit/test_httpc \
	tests/unit/test_httpd tests/unit/test_httpd_conn tests/unit/test_loop

tests_unit_test_form_SOURCES = tests/unit/test_form.c
tests_unit_test_form_LDADD = core/io/libio.a $(BASE_LIBS) $(TEST_LIBS)
tests_unit_test_httpc_SOURCES = tests/unit/test_httpc.c
tests_unit_test_httpc_LDADD = $(IO_LIBS) $(TEST_LIBS)
httpd_util = tests/unit/httpd_util.c tests/unit/httpd_util.h
tests_unit_test_httpd_SOURCES = tests/unit/test_httpd.c $(httpd_util)
tests_unit_test_httpd_LDADD = $(IO_LIBS) $(TEST_LIBS)
tests_unit_test_httpd_conn_SOURCES = tests/unit/test_httpd_conn.c $(httpd_util)
tests_unit_test_httpd_conn_LDADD = $(IO_LIBS) $(TEST_LIBS)
tests_unit_test_loop_SOURCES = tests/unit/test_loop.c
tests_unit_test_loop_LDADD = $(IO_LIBS) $(TEST_LIBS)

UNIT_TESTS += tests/unit/test_crypt tests/unit/test_url
tests_unit_test_crypt_SOURCES = tests/unit/test_crypt.c
tests_unit_test_crypt_LDADD = $(IO_LIBS) $(TEST_LIBS)
tests_unit_test_url_SOURCES = tests/unit/test_url.c
tests_unit_test_url_LDADD = $(IO_LIBS) $(TEST_LIBS)

UNIT_TESTS += tests/unit/test_realports
tests_unit_test_realports_SOURCES = tests/unit/test_realports.c
tests_unit_test_realports_LDADD = $(IO_LIBS) $(TEST_LIBS)
