/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/buf: the maximum holds, the NUL byte is always there. */
#include "tests/unit/unit.h"

#include "core/base/buf.h"
#include "core/base/mem.h"

static void test_append(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 1000);
    assert_string_equal(b.data, "");
    assert_int_equal(buf_puts(&b, "abc"), 0);
    assert_int_equal(buf_putc(&b, '-'), 0);
    assert_int_equal(buf_printf(&b, "%d/%s", 42, "x"), 0);
    assert_int_equal(buf_append(&b, "y\0z", 3), 0);
    assert_int_equal(b.len, 11);
    assert_memory_equal(b.data, "abc-42/xy\0z", 12);
    assert_false(b.over);
}

static void test_maximum(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 10);
    assert_int_equal(buf_puts(&b, "123456789"), 0);
    assert_int_equal(buf_puts(&b, "ab"), -1); /* nothing of it */
    assert_string_equal(b.data, "123456789");
    assert_true(b.over);
    assert_int_equal(buf_putc(&b, 'c'), -1); /* and so on */
    assert_int_equal(b.len, 9);
    buf_reset(&b);
    assert_false(b.over);
    assert_string_equal(b.data, "");
    assert_int_equal(buf_puts(&b, "1234567890"), 0); /* exactly max */
    assert_int_equal(buf_printf(&b, "%d", 1), -1);
    assert_string_equal(b.data, "1234567890");
    assert_int_equal(b.cap, 11);
}

static void test_zero_max(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 0);
    assert_int_equal(buf_append(&b, "", 0), 0);
    assert_int_equal(buf_putc(&b, 'x'), -1);
    assert_string_equal(b.data, "");
}

static void test_huge_append(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 100);
    buf_puts(&b, "x");
    assert_null(buf_reserve(&b, SIZE_MAX)); /* len + n would wrap */
    assert_true(b.over);
}

static void test_reserve(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 1000; i++) {
        char *room = buf_reserve(&b, 100);
        assert_non_null(room);
        memset(room, 'a' + i % 26, 100);
        buf_add(&b, 100);
        assert_int_equal(b.data[b.len], '\0');
    }
    assert_int_equal(b.len, 100000);
    assert_int_equal(b.data[99999], 'a' + 999 % 26);
}

static void test_consume(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 100);
    buf_consume(&b, 0);
    buf_truncate(&b, 0);
    buf_puts(&b, "hello world");
    buf_consume(&b, 6);
    assert_string_equal(b.data, "world");
    buf_truncate(&b, 3);
    assert_string_equal(b.data, "wor");
    buf_consume(&b, 3);
    assert_string_equal(b.data, "");
}

static void test_take(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    size_t len = 99;
    buf_init(&b, 100);
    CLEANUP(mem_free) char *empty = buf_take(&b, &len);
    assert_string_equal(empty, "");
    assert_int_equal(len, 0);
    buf_puts(&b, "text");
    CLEANUP(mem_free) char *text = buf_take(&b, NULL);
    assert_string_equal(text, "text");
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_puts(&b, "again"), 0);
    assert_string_equal(text, "text");
}

static void test_wipe(void **state)
{
    (void) state;
    struct buf b;
    buf_init(&b, 100);
    buf_puts(&b, "secret");
    buf_wipe(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.data, "");
    buf_wipe(&b);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),  cmocka_unit_test(test_maximum),
        cmocka_unit_test(test_zero_max), cmocka_unit_test(test_huge_append),
        cmocka_unit_test(test_reserve), cmocka_unit_test(test_consume),
        cmocka_unit_test(test_take),    cmocka_unit_test(test_wipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
