/* SPDX-License-Identifier: Apache-2.0 */

/* Many deadlines over one timer. */

#include "tests/unit/unit.h"

#include "core/base/text.h"
#include "core/dispatch/deadline.h"
#include "core/port/clock.h"

/* A clock with one timer, moved by hand. */
static int64_t now;
static int64_t timer_at;
static void (*timer_cb)(void *);
static void *timer_arg;
static int arms;

static int64_t clock_now(struct clock_port *c)
{
    (void) c;
    return now;
}

static struct clock_timer *clock_arm(struct clock_port *c, int64_t delay_us,
                                     void (*cb)(void *), void *arg)
{
    (void) c;
    assert_null(timer_cb);
    assert_true(delay_us >= 0);
    timer_at = now + delay_us;
    timer_cb = cb;
    timer_arg = arg;
    arms++;
    return (struct clock_timer *) (void *) &timer_at;
}

static void clock_cancel(struct clock_port *c, struct clock_timer *t)
{
    (void) c;
    (void) t;
    assert_non_null(timer_cb);
    timer_cb = NULL;
}

static struct clock_port clock_by_hand = {
    .now_mono = clock_now,
    .now_wall = clock_now,
    .timer_arm = clock_arm,
    .timer_cancel = clock_cancel,
};

/* Until this moment; each firing is a turn. */
static void run_to(int64_t t)
{
    while (timer_cb && timer_at <= t) {
        void (*cb)(void *) = timer_cb;

        if (timer_at > now)
            now = timer_at;
        timer_cb = NULL;
        cb(timer_arg);
    }
    now = t;
}

static char trail[64];
static int turns;
static struct deadlines *ds;
static struct deadline d[8];

static void after(void *arg)
{
    (void) arg;
    turns++;
}

static void note(void *arg)
{
    size_t n = strlen(trail);

    text_copy(trail + n, arg, sizeof trail - n);
}

static char label[8][8];

static void set(int i, int64_t at, void (*fn)(void *), const char *text)
{
    text_copy(label[i], text, sizeof label[i]);
    deadline_set(ds, &d[i], at, fn, label[i]);
}

static void note_and_set(void *arg)
{
    note(arg);
    set(0, now, note, "again");
}

static int setup(void **state)
{
    (void) state;
    now = 1000;
    timer_cb = NULL;
    arms = turns = 0;
    trail[0] = '\0';
    memset(d, 0, sizeof d);
    ds = deadlines_create(&clock_by_hand, after, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void) state;
    deadlines_destroy(ds);
    assert_null(timer_cb);
    return 0;
}

static void in_order_of_time_then_of_arming(void **state)
{
    (void) state;
    set(0, 1300, note, "c");
    set(1, 1100, note, "a");
    set(2, 1200, note, "b");
    set(3, 1300, note, "d");
    set(4, 1150, note, "x");
    deadline_stop(ds, &d[4]);
    set(5, 5000, note, "e");
    set(5, 1300, note, "e"); /* moved */
    run_to(1250);
    assert_string_equal(trail, "ab");
    assert_false(deadline_armed(&d[2]));
    assert_true(deadline_armed(&d[3]));
    run_to(9999);
    assert_string_equal(trail, "abcde");
}

/* What is armed by a deadline that fires waits for the next turn: nobody can
 * keep the loop to himself. */
static void a_turn_is_finite(void **state)
{
    (void) state;
    set(1, 1100, note_and_set, "1");
    set(2, 1100, note, "2");
    run_to(1100);
    assert_string_equal(trail, "12again");
    assert_int_equal(turns, 2);
}

static void soon_is_one_turn_for_many(void **state)
{
    (void) state;
    for (int i = 0; i < 100; i++)
        deadlines_soon(ds);
    run_to(1000);
    assert_int_equal(turns, 1);
    deadlines_soon(ds);
    run_to(1000);
    assert_int_equal(turns, 2);
}

static void moving_away_costs_the_port_nothing(void **state)
{
    (void) state;
    set(0, 2000, note, "x");
    for (int i = 0; i < 1000; i++)
        set(0, 2000 + i, note, "x");
    assert_int_equal(arms, 1);
    run_to(2500);
    assert_string_equal(trail, "");
    run_to(2999);
    assert_string_equal(trail, "x");
}

/* Against a plain array, with thousands of moves. */
static void agrees_with_a_simple_model(void **state)
{
    enum { N = 64 };
    static struct deadline many[N];
    static char nothing[1];
    int64_t due[N];
    uint32_t r = 1;

    (void) state;
    memset(many, 0, sizeof many);
    for (int i = 0; i < N; i++)
        due[i] = 0;
    for (int step = 0; step < 20000; step++) {
        r = r * 1664525 + 1013904223;
        int i = (int) (r >> 8) % N;

        if (r >> 28 == 0) {
            deadline_stop(ds, &many[i]);
            due[i] = 0;
        } else {
            due[i] = now + 1 + (int64_t) (r >> 16) % 50;
            deadline_set(ds, &many[i], due[i], note, nothing);
        }
        if (step % 7 == 0)
            run_to(now + 3);
        for (int k = 0; k < N; k++) {
            if (due[k] <= now)
                due[k] = 0;
            assert_int_equal(deadline_armed(&many[k]), due[k] != 0);
        }
    }
    for (int i = 0; i < N; i++)
        deadline_stop(ds, &many[i]);
}

/* The process stood still for an hour. Whoever reads the clock first, the reply
 * to a request or the timer, hears nothing of it, and it never goes back. */
static void a_stop_is_no_time(void **state)
{
    const int64_t hour = INT64_C(3600000000);
    void (*cb)(void *);
    int64_t before, woken;

    (void) state;
    set(0, 2000000, note, "a");
    set(1, 9000000, note, "b");
    now = 1500000;
    before = deadlines_now(ds);
    assert_int_equal(before, 1500000);
    now += hour;
    woken = deadlines_now(ds);
    assert_in_range(woken, before, 2000000);
    now += 100;
    assert_in_range(deadlines_now(ds), woken, woken + 100);
    cb = timer_cb;
    timer_cb = NULL;
    cb(timer_arg);
    assert_in_range(deadlines_now(ds), woken, woken + 100);
    assert_string_equal(trail, "a");
    run_to(hour + 8000000);
    assert_string_equal(trail, "a");
    run_to(hour + 9100000);
    assert_string_equal(trail, "ab");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(in_order_of_time_then_of_arming), T(a_turn_is_finite),
        T(soon_is_one_turn_for_many), T(moving_away_costs_the_port_nothing),
        T(agrees_with_a_simple_model), T(a_stop_is_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
