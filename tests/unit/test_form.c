/* SPDX-License-Identifier: Apache-2.0 */

/* Form fields: order, decoding, limits. */

#include "core/base/mem.h"
#include "core/io/form.h"
#include "tests/unit/unit.h"

static struct form *parse(const char *s, struct err *err)
{
    return form_parse(s, strlen(s), 4, err);
}

static void fields_are_decoded(void **state)
{
    CLEANUP(form_cleanup) struct form *f =
        parse("a=1&b=x+y%26z&&c&a=2", NULL);

    (void) state;
    assert_int_equal(form_count(f), 4);
    assert_string_equal(form_get(f, "a"), "1");
    assert_string_equal(form_get(f, "b"), "x y&z");
    assert_string_equal(form_get(f, "c"), "");
    assert_null(form_get(f, "d"));
    assert_string_equal(form_name(f, 3), "a");
    assert_string_equal(form_value(f, 3), "2");
}

static void odd_inputs_are_fine(void **state)
{
    CLEANUP(form_cleanup) struct form *none = parse("", NULL);
    CLEANUP(form_cleanup) struct form *odd = parse("=&a==b", NULL);

    (void) state;
    assert_int_equal(form_count(none), 0);
    assert_int_equal(form_count(NULL), 0);
    assert_null(form_get(NULL, "a"));
    assert_string_equal(form_get(odd, ""), "");
    assert_string_equal(form_get(odd, "a"), "=b");
    form_free(NULL);
}

static void bad_inputs_are_refused(void **state)
{
    struct err err;

    (void) state;
    assert_null(parse("a=%4", &err));
    assert_int_equal(err.class, ERR_INVALID);
    assert_null(parse("%zz=1", &err));
    assert_null(parse("a=%00", &err));
    assert_null(parse("a&b&c&d&e", &err));
    assert_non_null(strstr(err.text, "4"));
    assert_null(form_parse("a\0b", 3, 4, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_decoded),
        cmocka_unit_test(odd_inputs_are_fine),
        cmocka_unit_test(bad_inputs_are_refused),
    };

    return cmocka_run_group_tests_name("form", tests, NULL, NULL);
}
