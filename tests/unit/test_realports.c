/* SPDX-License-Identifier: Apache-2.0 */

/* The clock and entropy ports of a real program. */

#include "core/io/loop.h"
#include "core/io/realports.h"
#include "core/port/clock.h"
#include "core/port/entropy.h"
#include "tests/unit/unit.h"

struct world {
    struct loop *l;
    struct clock_port clock;
    int fired;
};

static void fire(void *arg)
{
    struct world *w = arg;

    w->fired++;
    loop_stop(w->l);
}

static void timers_follow_the_clock(void **state)
{
    struct world w = {.l = loop_create(NULL)};
    struct clock_timer *t;
    int64_t start;

    (void) state;
    realports_clock(&w.clock, w.l);
    start = w.clock.now_mono(&w.clock);
    t = w.clock.timer_arm(&w.clock, 1000, fire, &w);
    w.clock.timer_arm(&w.clock, 5000, fire, &w);
    w.clock.timer_cancel(&w.clock, t);
    loop_run(w.l);
    assert_int_equal(w.fired, 1);
    assert_true(w.clock.now_mono(&w.clock) - start >= 5000);
    /* After 2020, in microseconds. */
    assert_true(w.clock.now_wall(&w.clock) > 1577836800000000);
    loop_destroy(w.l);
}

static void entropy_differs(void **state)
{
    struct entropy_port e;
    char a[32] = "", b[32] = "";

    (void) state;
    realports_entropy(&e);
    e.bytes(&e, a, sizeof a);
    e.bytes(&e, b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_follow_the_clock),
        cmocka_unit_test(entropy_differs),
    };

    return cmocka_run_group_tests_name("realports", tests, NULL, NULL);
}
