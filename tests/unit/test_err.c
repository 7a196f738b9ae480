/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/err: classes, texts, cutting. */
#include "tests/unit/unit.h"

#include <errno.h>

static void test_labels(void **state)
{
    (void) state;
    assert_string_equal(err_class_label(ERR_NONE), "none");
    assert_string_equal(err_class_label(ERR_UNKNOWN), "outcome-unknown");
    assert_string_equal(err_class_label(ERR_TOO_LARGE), "too-large");
    assert_string_equal(err_class_label((enum err_class) 99), "?");
    assert_string_equal(err_class_label((enum err_class) -1), "?");
    assert_string_equal(err_scope_label(ERR_SCOPE_ACCOUNT), "account");
    assert_string_equal(err_scope_label((enum err_scope) 99), "?");
    for (int i = ERR_NONE; i <= ERR_TOO_LARGE; i++) {
        enum err_class class = (enum err_class) i;
        assert_int_equal(err_class_of(err_class_label(class)), class);
    }
    assert_int_equal(err_class_of("no-such-class"), ERR_INTERNAL);
}

static void test_set(void **state)
{
    (void) state;
    struct err err = {.retry_ms = 5, .scope = ERR_SCOPE_ZONE, .code = "old"};
    assert_int_equal(err_set(&err, ERR_QUOTA, "limit of %d", 3), -1);
    assert_int_equal(err.class, ERR_QUOTA);
    assert_string_equal(err.text, "limit of 3");
    assert_int_equal(err.retry_ms, 0);
    assert_int_equal(err.scope, ERR_SCOPE_NONE);
    assert_string_equal(err.code, "");
    /* Its own text as an argument. */
    err_set(&err, ERR_CONFIG, "outer (%s)", err.text);
    assert_string_equal(err.text, "outer (limit of 3)");
    assert_int_equal(err_set(NULL, ERR_QUOTA, "x"), -1);
}

static void test_one_line(void **state)
{
    (void) state;
    struct err err;
    err_set(&err, ERR_INVALID, "a\nb\x1b[1mc\x7f");
    assert_string_equal(err.text, "a b [1mc ");
}

static void test_errno(void **state)
{
    (void) state;
    struct err err;
    assert_int_equal(err_set_errno(&err, ENOENT, "open %s", "/x"), -1);
    assert_int_equal(err.class, ERR_NOT_FOUND);
    assert_string_equal(err.text, "open /x: No such file or directory");
    assert_string_equal(err.code, "ENOENT");
    err_set_errno(&err, ECONNRESET, "read");
    assert_int_equal(err.class, ERR_TRANSIENT);
    err_set_errno(&err, EPERM, "kill");
    assert_int_equal(err.class, ERR_AUTH);
    err_set_errno(&err, EIO, "read");
    assert_int_equal(err.class, ERR_INTERNAL);
    err_set_errno(&err, 100000, "odd");
    assert_string_equal(err.text, "odd: unknown error");
    assert_string_equal(err.code, "");
    assert_int_equal(err_set_errno(NULL, EIO, "x"), -1);
}

static void test_prefix(void **state)
{
    (void) state;
    struct err err = {0};
    err_set(&err, ERR_AUTH, "refused");
    assert_int_equal(err_prefix(&err, "backend %s", "b1"), -1);
    assert_string_equal(err.text, "backend b1: refused");
    assert_int_equal(err.class, ERR_AUTH);
    err_clear(&err);
    assert_int_equal(err.class, ERR_NONE);
    assert_string_equal(err.text, "");
    err_prefix(&err, "alone");
    assert_string_equal(err.text, "alone");
    assert_int_equal(err_prefix(NULL, "x"), -1);
    err_clear(NULL);
}

static void test_cut_between_characters(void **state)
{
    (void) state;
    struct err err;
    char text[sizeof err.text + 8];
    /* An e with acute accent across the cut, at both alignments. */
    for (size_t lead = 0; lead < 2; lead++) {
        memset(text, 'a', sizeof text);
        for (size_t i = lead; i + 1 < sizeof text; i += 2)
            memcpy(text + i, "\xC3\xA9", 2);
        text[sizeof text - 1] = '\0';
        err_set(&err, ERR_INVALID, "%s", text);
        size_t len = strlen(err.text);
        assert_true(len >= sizeof err.text - 2);
        assert_int_equal((len - lead) % 2, 0);
    }
    memset(text, 'b', sizeof text);
    text[sizeof text - 1] = '\0';
    err_set(&err, ERR_INVALID, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
