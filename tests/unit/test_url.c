/* SPDX-License-Identifier: Apache-2.0 */
/* url: what is taken apart, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/err.h"
#include "core/io/url.h"

static void test_parts(void **state)
{
    struct url u;

    (void) state;
    assert_int_equal(url_parse("http://127.0.0.1:8000/", &u, NULL), 0);
    assert_string_equal(u.host, "127.0.0.1");
    assert_int_equal(u.port, 8000);
    assert_string_equal(u.path, "");
    assert_false(u.tls);
    assert_true(url_is_loopback(&u));
    assert_int_equal(url_parse("https://api.example/a/b", &u, NULL), 0);
    assert_int_equal(u.port, 443);
    assert_string_equal(u.path, "/a/b");
    assert_false(url_is_loopback(&u));
    assert_int_equal(url_parse("http://[::1]:9", &u, NULL), 0);
    assert_string_equal(u.host, "::1");
    assert_int_equal(u.port, 9);
    assert_true(url_is_loopback(&u));
    assert_int_equal(url_parse("http://localhost", &u, NULL), 0);
    assert_string_equal(u.host, "127.0.0.1");
    assert_int_equal(url_parse("http://127.0.0.1:0/", &u, NULL), 0);
    assert_int_equal(u.port, 0);
}

static void test_refused(void **state)
{
    static const char *const bad[] = {
        "ftp://x/",       "x",           "http://",        "http:///a",
        "http://h:/",     "http://h:x/", "http://h:70000", "http://[::1",
        "http://u@h/",    "http://h/?q", "http://h/#f",    "http://h:-1/",
        "http://h:1 2/",
    };

    (void) state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct url u;
        struct err err;

        assert_int_equal(url_parse(bad[i], &u, &err), -1);
        assert_int_equal(err.class, ERR_CONFIG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
