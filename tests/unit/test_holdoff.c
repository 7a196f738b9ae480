/* SPDX-License-Identifier: Apache-2.0 */

/* Back-off: growth, spread, floors, and one hold-off per key. */

#include "tests/unit/unit.h"

#include "core/dispatch/holdoff.h"

enum { S = 1000000 };

static struct err why(enum err_class class, int64_t retry_ms)
{
    struct err err;

    err_set(&err, class, "no");
    err.retry_ms = retry_ms;
    return err;
}

static void delays_grow_within_their_spread(void **state)
{
    (void) state;
    for (unsigned level = 0; level < 40; level++) {
        int64_t lo = holdoff_delay_ms(ERR_TRANSIENT, level, 0, 0);
        int64_t hi = holdoff_delay_ms(ERR_TRANSIENT, level, 0, UINT32_MAX);
        int64_t mid = level < 7 ? INT64_C(500) << level : 60000;

        assert_int_equal(lo, mid * 3 / 4);
        assert_in_range(hi, mid * 5 / 4 - 2, mid * 5 / 4);
    }
    assert_int_equal(holdoff_delay_ms(ERR_QUOTA, 0, 0, 0), 7500);
    assert_int_equal(holdoff_delay_ms(ERR_QUOTA, 99, 0, UINT32_MAX) / 1000,
                     374);
    /* not in the table */
    assert_int_equal(holdoff_delay_ms(ERR_INTERNAL, 0, 0, 0), 375);
}

static void what_the_peer_asks_for_is_a_floor(void **state)
{
    (void) state;
    assert_int_equal(holdoff_delay_ms(ERR_RATE_LIMITED, 0, 7000, 0), 7000);
    assert_int_equal(holdoff_delay_ms(ERR_RATE_LIMITED, 9, 7000, 0), 90000);
}

static void a_shorter_one_never_replaces_a_longer(void **state)
{
    struct holdoff h = {0};
    struct err longer = why(ERR_RATE_LIMITED, 60000);
    struct err shorter = why(ERR_TRANSIENT, 0);

    (void) state;
    holdoff_hit(&h, &longer, 0, 0);
    assert_int_equal(h.until_us, 60 * S);
    holdoff_hit(&h, &shorter, S, 0);
    assert_int_equal(h.until_us, 60 * S);
    assert_int_equal(h.level, 2);
    holdoff_clear(&h);
    assert_int_equal(h.until_us, 0);
}

static void short_ones_are_capped_but_for_the_peers_wish(void **state)
{
    struct holdoff h = {.level = 30};
    struct err err = why(ERR_TRANSIENT, 0), asked = why(ERR_TRANSIENT, 9000);

    (void) state;
    holdoff_hit_short(&h, &err, 0, 0, 5000);
    assert_int_equal(h.until_us, 5 * S);
    holdoff_hit_short(&h, &asked, 0, 0, 5000);
    assert_int_equal(h.until_us, 9 * S);
}

static void keys_are_apart(void **state)
{
    struct holdoffs *hs = holdoffs_create();
    struct err quota = why(ERR_QUOTA, 0), cap = why(ERR_CAPACITY, 0);

    (void) state;
    holdoffs_hit(hs, "a", &quota, 0, 0);
    holdoffs_hit(hs, "b", &cap, 0, 0);
    assert_non_null(holdoffs_get(hs, "a", 7 * S));
    assert_null(holdoffs_get(hs, "a", 8 * S));
    assert_null(holdoffs_get(hs, "c", 0));
    /* several calls that fail together are one failure */
    holdoffs_hit(hs, "a", &quota, S, 0);
    assert_int_equal(holdoffs_get(hs, "a", S)->h.level, 1);
    holdoffs_hit(hs, "a", &quota, 8 * S, 0);
    assert_int_equal(holdoffs_get(hs, "a", 8 * S)->h.level, 2);
    assert_non_null(holdoffs_get(hs, "a", 22 * S));
    /* something ended: try again, but remember how often it failed */
    holdoffs_relent(hs, ERR_QUOTA, 9 * S);
    assert_null(holdoffs_get(hs, "a", 9 * S));
    assert_non_null(holdoffs_get(hs, "b", 7 * S));
    holdoffs_hit(hs, "a", &quota, 9 * S, 0);
    assert_int_equal(holdoffs_get(hs, "a", 9 * S)->h.level, 3);
    holdoffs_clear(hs, "a");
    assert_null(holdoffs_get(hs, "a", 9 * S));
    holdoffs_destroy(hs);
    holdoffs_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_grow_within_their_spread),
        cmocka_unit_test(what_the_peer_asks_for_is_a_floor),
        cmocka_unit_test(a_shorter_one_never_replaces_a_longer),
        cmocka_unit_test(short_ones_are_capped_but_for_the_peers_wish),
        cmocka_unit_test(keys_are_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
