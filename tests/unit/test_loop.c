/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop: order of calls, timers that are never early and never starve one
 * another, calls from other threads, signals, pools with stuck threads.
 */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/io/loop.h"
#include "tests/unit/unit.h"

struct world {
    struct loop *l;
    char trace[64];
    int n;
    int64_t due_us;
    struct loop_timer *t;
    struct loop_pool *pool;
    atomic_int entered;
    atomic_int returned; /* the last that hang() does with a world */
    atomic_bool release;
};

static int setup(void **state)
{
    struct world *w = MEM_NEW(struct world);

    w->l = loop_create(NULL);
    *state = w;
    return w->l ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;

    loop_destroy(w->l);
    free(w);
    return 0;
}

static void stop(void *arg)
{
    loop_stop(((struct world *) arg)->l);
}

static void mark(struct world *w, char c)
{
    size_t n = strlen(w->trace);

    if (n + 1 < sizeof w->trace)
        w->trace[n] = c;
}

static void mark_a(void *arg) { mark(arg, 'a'); }
static void mark_b(void *arg) { mark(arg, 'b'); }
static void mark_c(void *arg) { mark(arg, 'c'); }

static void defer_more(void *arg)
{
    struct world *w = arg;

    mark(w, '1');
    loop_defer(w->l, mark_b, w);
    loop_defer(w->l, stop, w);
    mark(w, '2');
}

static void deferred_calls_keep_their_order(void **state)
{
    struct world *w = *state;

    loop_defer(w->l, defer_more, w);
    loop_defer(w->l, mark_a, w);
    assert_string_equal(w->trace, "");
    loop_run(w->l);
    assert_string_equal(w->trace, "12ab");
}

static void timers_fire_in_order_of_time(void **state)
{
    struct world *w = *state;

    loop_timer_arm(w->l, 12000, stop, w);
    loop_timer_arm(w->l, 8000, mark_c, w);
    loop_timer_arm(w->l, 2000, mark_a, w);
    w->t = loop_timer_arm(w->l, 3000, mark_a, w);
    loop_timer_arm(w->l, 4000, mark_b, w);
    loop_timer_cancel(w->t);
    loop_timer_cancel(NULL);
    loop_run(w->l);
    assert_string_equal(w->trace, "abc");
}

static void check_late(void *arg)
{
    struct world *w = arg;

    assert_true(loop_now_us(w->l) >= w->due_us);
    if (++w->n == 20) {
        loop_stop(w->l);
        return;
    }
    w->due_us = loop_now_us(w->l) + 100 + w->n * 37;
    loop_timer_arm(w->l, 100 + w->n * 37, check_late, w);
}

static void a_timer_is_never_early(void **state)
{
    struct world *w = *state;

    loop_timer_arm(w->l, 0, check_late, w);
    loop_run(w->l);
    assert_int_equal(w->n, 20);
}

static void again(void *arg)
{
    struct world *w = arg;

    w->n++;
    w->t = loop_timer_arm(w->l, 0, again, w);
}

/* Neither a chain of timers that are due at once nor one of deferred calls
 * may keep others from running. */
static void defer_again(void *arg)
{
    struct world *w = arg;

    if (w->t)
        loop_defer(w->l, defer_again, w);
}

static void *post_stop(void *arg)
{
    struct world *w = arg;

    loop_post(w->l, stop, w);
    return NULL;
}

static void chains_starve_nobody(void **state)
{
    struct world *w = *state;
    pthread_t th;

    again(w);
    loop_defer(w->l, defer_again, w);
    loop_timer_arm(w->l, 1000, mark_a, w);
    loop_timer_arm(w->l, 20000, stop, w);
    loop_run(w->l);
    assert_string_equal(w->trace, "a");
    assert_true(w->n > 2);
    pthread_create(&th, NULL, post_stop, w);
    loop_run(w->l); /* the posted call gets through as well */
    pthread_join(th, NULL);
    loop_timer_cancel(w->t);
    w->t = NULL;
}

static void many_timers_keep_the_heap(void **state)
{
    struct world *w = *state;
    struct loop_timer *t[300];
    unsigned x = 7;

    for (int i = 0; i < 300; i++) {
        x = x * 1103515245 + 12345;
        t[i] = loop_timer_arm(w->l, 1000 + x % 5000, check_late, w);
    }
    w->n = -1000; /* check_late must not be reached */
    for (int i = 0; i < 300; i += 3)
        loop_timer_cancel(t[i]);
    for (int i = 299; i >= 0; i--)
        if (i % 3)
            loop_timer_cancel(t[i]);
    loop_timer_arm(w->l, 9000, stop, w);
    loop_run(w->l);
    assert_int_equal(w->n, -1000);
}

enum { POSTS = 20000, POSTERS = 3 };

static void count(void *arg)
{
    struct world *w = arg;

    if (++w->n == POSTS * POSTERS)
        loop_stop(w->l);
}

static void *poster(void *arg)
{
    struct world *w = arg;

    for (int i = 0; i < POSTS; i++)
        loop_post(w->l, count, w);
    return NULL;
}

static void no_posted_call_is_lost(void **state)
{
    struct world *w = *state;
    pthread_t th[POSTERS];

    for (int i = 0; i < POSTERS; i++)
        pthread_create(&th[i], NULL, poster, w);
    loop_run(w->l);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(th[i], NULL);
    assert_int_equal(w->n, POSTS * POSTERS);
}

static void calls_left_at_destroy_still_run(void **state)
{
    struct world *w = *state;

    loop_defer(w->l, defer_more, w);
    loop_post(w->l, mark_c, w);
    loop_destroy(w->l);
    assert_string_equal(w->trace, "12cb");
    w->l = NULL;
}

static void got_signal(void *arg, int signum)
{
    struct world *w = arg;

    w->n = signum;
    loop_stop(w->l);
}

static void signals_arrive_on_the_loop(void **state)
{
    struct world *w = *state;

    assert_int_equal(loop_signal(w->l, SIGUSR1, got_signal, w, NULL), 0);
    raise(SIGUSR1);
    loop_run(w->l);
    assert_int_equal(w->n, SIGUSR1);
    assert_int_equal(loop_signal(w->l, SIGKILL, got_signal, w, NULL), -1);
    for (int i = 0; i < 6; i++)
        assert_int_equal(loop_signal(w->l, SIGUSR2, got_signal, w, NULL), 0);
    assert_int_equal(loop_signal(w->l, SIGUSR2, got_signal, w, NULL), -1);
}

static void work(void *arg)
{
    struct world *w = arg;
    sigset_t now;

    pthread_sigmask(SIG_SETMASK, NULL, &now);
    if (sigismember(&now, SIGTERM))
        atomic_fetch_add(&w->entered, 1);
}

static void work_done(void *arg)
{
    struct world *w = arg;

    if (++w->n == 50)
        loop_stop(w->l);
}

static void a_pool_does_every_job(void **state)
{
    struct world *w = *state;
    struct loop_pool *p = loop_pool_create(w->l, 3, 50);

    for (int i = 0; i < 50; i++)
        assert_int_equal(loop_pool_submit(p, work, work_done, w, NULL), 0);
    loop_run(w->l);
    assert_int_equal(w->entered, 50);
    loop_pool_destroy(p);
    loop_pool_destroy(NULL);
}

static void hang(void *arg)
{
    struct world *w = arg;

    atomic_fetch_add(&w->entered, 1);
    while (!atomic_load(&w->release))
        usleep(500);
    atomic_fetch_add(&w->returned, 1);
}

static void hang_done(void *arg) { mark(arg, 'h'); }

static void await_entered(struct world *w, int n)
{
    while (atomic_load(&w->entered) < n)
        usleep(200);
}

static void a_full_queue_refuses(void **state)
{
    struct world *w = *state;
    struct loop_pool *p = loop_pool_create(w->l, 1, 2);
    struct err err;

    assert_int_equal(loop_pool_submit(p, hang, hang_done, w, NULL), 0);
    await_entered(w, 1);
    assert_int_equal(loop_pool_submit(p, work, mark_a, w, NULL), 0);
    assert_int_equal(loop_pool_submit(p, work, stop, w, NULL), 0);
    assert_int_equal(loop_pool_submit(p, work, mark_c, w, &err), -1);
    assert_int_equal(err.class, ERR_TRANSIENT);
    atomic_store(&w->release, true);
    loop_run(w->l);
    assert_string_equal(w->trace, "ha");
    loop_pool_destroy(p);
}

static void a_stuck_thread_is_replaced(void **state)
{
    struct world *w = *state;
    struct loop_pool *p = loop_pool_create(w->l, 1, 9);

    loop_pool_replace_stuck(p); /* nobody is busy: no effect */
    loop_pool_submit(p, hang, hang_done, w, NULL);
    await_entered(w, 1);
    loop_pool_submit(p, work, stop, w, NULL);
    loop_pool_replace_stuck(p);
    loop_run(w->l); /* would hang for ever without the new thread */
    assert_string_equal(w->trace, "");

    /* The written-off one comes back and still delivers. */
    loop_timer_arm(w->l, 20000, stop, w);
    atomic_store(&w->release, true);
    loop_run(w->l);
    assert_string_equal(w->trace, "h");
    loop_pool_destroy(p);
}

static void destroy_does_not_wait_for_the_stuck(void **state)
{
    struct world *w = *state;
    struct loop_pool *p = loop_pool_create(w->l, 2, 9);

    loop_pool_submit(p, hang, hang_done, w, NULL);
    await_entered(w, 1);
    loop_pool_replace_stuck(p);
    loop_pool_destroy(p);
    atomic_store(&w->release, true);
    while (atomic_load(&w->returned) < 1)
        usleep(200);
    usleep(5000); /* lets the thread free the pool, for leak checkers */
    assert_string_equal(w->trace, "");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(deferred_calls_keep_their_order),
        T(timers_fire_in_order_of_time),
        T(a_timer_is_never_early),
        T(chains_starve_nobody),
        T(many_timers_keep_the_heap),
        T(no_posted_call_is_lost),
        T(calls_left_at_destroy_still_run),
        T(signals_arrive_on_the_loop),
        T(a_pool_does_every_job),
        T(a_full_queue_refuses),
        T(a_stuck_thread_is_replaced),
        T(destroy_does_not_wait_for_the_stuck),
    };

    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
