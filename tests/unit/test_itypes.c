/* SPDX-License-Identifier: Apache-2.0 */

/* Order and look-up of instance types. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/itypes.h"

static struct itypes make(const struct itype *v, size_t n)
{
    struct itypes its = {malloc(n * sizeof *v), n};

    assert_non_null(its.v);
    memcpy(its.v, v, n * sizeof *v);
    itypes_sort(&its);
    return its;
}

static void cheapest_first_then_largest(void **state)
{
    static const struct itype v[] = {
        {.name = "d", .price = 2, .ram = 4},
        {.name = "b", .price = 1, .ram = 4, .vcpus = 2},
        {.name = "c", .price = 1, .ram = 4, .vcpus = 1, .added_scratch = 1},
        {.name = "a", .price = 1, .ram = 8},
        {.name = "f", .price = 1, .ram = 4, .vcpus = 1},
        {.name = "e", .price = 1, .ram = 4, .vcpus = 1},
    };
    static const char *const want[] = {"a", "b", "c", "e", "f", "d"};
    struct itypes its = make(v, 6);

    (void) state;
    for (size_t i = 0; i < its.n; i++)
        assert_string_equal(its.v[i].name, want[i]);
    itypes_fini(&its);
    assert_int_equal(its.n, 0);
}

static void found_by_name(void **state)
{
    static const struct itype v[] = {
        {.name = "x", .price = 2}, {.name = "y", .price = 1}};
    struct itypes its = make(v, 2);

    (void) state;
    assert_ptr_equal(itypes_find(&its, "x"), &its.v[1]);
    assert_null(itypes_find(&its, "z"));
    itypes_fini(&its);
    itypes_sort(&its);
    assert_null(itypes_find(&its, "x"));
}

static void scratch_is_a_saturating_sum(void **state)
{
    struct itype it = {.included_scratch = 3, .added_scratch = 4};

    (void) state;
    assert_int_equal(itype_scratch(&it), 7);
    it.added_scratch = INT64_MAX;
    assert_true(itype_scratch(&it) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cheapest_first_then_largest),
        cmocka_unit_test(found_by_name),
        cmocka_unit_test(scratch_is_a_saturating_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
