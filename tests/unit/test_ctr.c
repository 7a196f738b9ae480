/* SPDX-License-Identifier: Apache-2.0 */

/*
 * State names and legal moves. The expected moves are spelled out here once
 * more, from the peer's documentation, so that an edit of the table shows.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/model/ctr.h"

static void names_go_both_ways(void **state)
{
    (void) state;
    for (int i = 0; i < CTR_STATE_COUNT; i++) {
        enum ctr_state s = CTR_STATE_COUNT;

        assert_int_equal(ctr_state_of(ctr_state_name(i), &s), 0);
        assert_int_equal(s, i);
    }
    for (int i = 0; i < CR_STATE_COUNT; i++) {
        enum cr_state s = CR_STATE_COUNT;

        assert_int_equal(cr_state_of(cr_state_name(i), &s), 0);
        assert_int_equal(s, i);
    }
    assert_string_equal(ctr_state_name(CTR_RUNNING), "Running");
    assert_string_equal(cr_state_name(CR_FINAL), "Final");
}

static void bad_names_leave_the_result_alone(void **state)
{
    enum ctr_state s = CTR_LOCKED;

    (void) state;
    assert_int_equal(ctr_state_of("running", &s), -1);
    assert_int_equal(ctr_state_of("", &s), -1);
    assert_int_equal(s, CTR_LOCKED);
    assert_string_equal(ctr_state_name(CTR_STATE_COUNT), "?");
    assert_string_equal(cr_state_name(99), "?");
}

static void moves_are_those_of_the_peer(void **state)
{
    static const char want[CTR_STATE_COUNT][CTR_STATE_COUNT + 1] = {
        /*               QLRCX */
        [CTR_QUEUED] = ".1..1",
        [CTR_LOCKED] = "1.1.1",
        [CTR_RUNNING] = "...11",
        [CTR_COMPLETE] = "....1",
        [CTR_CANCELLED] = ".....",
    };

    (void) state;
    for (int i = 0; i < CTR_STATE_COUNT; i++)
        for (int j = 0; j < CTR_STATE_COUNT; j++)
            assert_int_equal(ctr_move_allowed(i, j), want[i][j] == '1');
    assert_false(ctr_move_allowed(CTR_STATE_COUNT, CTR_QUEUED));
    assert_false(ctr_state_final(CTR_RUNNING));
    assert_true(ctr_state_final(CTR_COMPLETE));
    assert_true(ctr_state_final(CTR_CANCELLED));
    assert_false(ctr_state_final(CTR_STATE_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(bad_names_leave_the_result_alone),
        cmocka_unit_test(moves_are_those_of_the_peer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
