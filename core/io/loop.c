/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The event loop: libuv with three small things on top.
 *
 * Timers live in one binary heap ordered by (due time, sequence) behind a
 * single uv_timer, so that arming and cancelling allocate no handle and need
 * no close callback. libuv counts in whole milliseconds of a clock that it
 * reads once per turn; the due time is therefore rounded up on that clock's
 * own scale, and a timer never fires early.
 *
 * Deferred calls, and timers that are due at once, run from one uv_idle
 * handle, which is active only while there is such work. The handle runs once
 * per turn, and what a call defers runs in the next one: a chain of deferred
 * calls never starves descriptors.
 *
 * Posted calls go into an array under a mutex; the loop is woken only when
 * the array was empty, and takes it whole.
 *
 * Everything here runs on the loop thread but loop_post and loop_stop. The
 * worker pools are in loop_pool.c.
 */

#include "core/io/loop.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uv.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/vec.h"

enum { SIGNALS_MAX = 8 };

struct call {
    void (*fn)(void *arg);
    void *arg;
};

typedef VEC(struct call) call_list;

struct loop_timer {
    struct loop *loop;
    int64_t due_us;
    uint64_t seq;
    size_t at; /* index in the heap */
    void (*fn)(void *arg);
    void *arg;
};

struct sig {
    uv_signal_t uv;
    void (*fn)(void *arg, int signum);
    void *arg;
};

struct loop {
    uv_loop_t uv;
    uv_async_t async;
    uv_idle_t idle;
    uv_timer_t timer;
    struct sig sigs[SIGNALS_MAX];
    unsigned n_sigs;

    VEC(struct loop_timer *) heap;
    uint64_t seq;
    call_list deferred, deferred_now;

    pthread_mutex_t lock;
    call_list posted; /* guarded by lock */
    call_list posted_now;
    atomic_bool stop;
};

/* --- calls ---------------------------------------------------------------*/

/* Run what is in `from` now; calls that are added meanwhile stay in it. */
static void run_calls(call_list *from, call_list *spare)
{
    call_list now = *from;

    *from = *spare;
    for (size_t i = 0; i < now.n; i++)
        now.v[i].fn(now.v[i].arg);
    VEC_CLEAR(&now);
    *spare = now;
}

static void wake_idle(struct loop *l);

void loop_defer(struct loop *l, void (*fn)(void *arg), void *arg)
{
    VEC_PUSH(&l->deferred, (struct call) { fn, arg });
    wake_idle(l);
}

void loop_post(struct loop *l, void (*fn)(void *arg), void *arg)
{
    bool first;

    pthread_mutex_lock(&l->lock);
    first = l->posted.n == 0;
    VEC_PUSH(&l->posted, (struct call) { fn, arg });
    pthread_mutex_unlock(&l->lock);
    if (first)
        uv_async_send(&l->async);
}

static void run_posted(struct loop *l)
{
    call_list now;

    pthread_mutex_lock(&l->lock);
    now = l->posted;
    l->posted = l->posted_now;
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < now.n; i++)
        now.v[i].fn(now.v[i].arg);
    VEC_CLEAR(&now);
    l->posted_now = now;
}

static void on_async(uv_async_t *h)
{
    struct loop *l = h->data;

    run_posted(l);
    if (atomic_exchange(&l->stop, false))
        uv_stop(&l->uv);
}

/* --- timers --------------------------------------------------------------*/

static bool before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->seq < b->seq;
}

static void heap_put(struct loop *l, size_t i, struct loop_timer *t)
{
    l->heap.v[i] = t;
    t->at = i;
}

static void heap_up(struct loop *l, size_t i)
{
    struct loop_timer *t = l->heap.v[i];

    for (; i > 0 && before(t, l->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
        heap_put(l, i, l->heap.v[(i - 1) / 2]);
    heap_put(l, i, t);
}

static void heap_down(struct loop *l, size_t i)
{
    struct loop_timer *t = l->heap.v[i];
    size_t n = l->heap.n, child;

    while ((child = 2 * i + 1) < n) {
        if (child + 1 < n && before(l->heap.v[child + 1], l->heap.v[child]))
            child++;
        if (!before(l->heap.v[child], t))
            break;
        heap_put(l, i, l->heap.v[child]);
        i = child;
    }
    heap_put(l, i, t);
}

static void heap_remove(struct loop_timer *t)
{
    struct loop *l = t->loop;
    struct loop_timer *last = l->heap.v[--l->heap.n];
    size_t i = t->at;

    if (last == t)
        return;
    heap_put(l, i, last);
    heap_up(l, i);
    heap_down(l, last->at);
}

static void on_timer(uv_timer_t *h);

/* Make libuv wake us for the earliest timer. */
static void aim_timer(struct loop *l)
{
    int64_t due_ms, now_ms;

    if (l->heap.n == 0) {
        uv_timer_stop(&l->timer);
        return;
    }
    due_ms = (l->heap.v[0]->due_us + 999) / 1000;
    now_ms = (int64_t) uv_now(&l->uv);
    if (l->heap.v[0]->due_us <= loop_now_us(l))
        wake_idle(l);
    else
        uv_timer_start(&l->timer, on_timer,
                       due_ms > now_ms ? (uint64_t) (due_ms - now_ms) : 1, 0);
}

/* Timers armed by a timer wait for the next turn even when already due. */
static void run_timers(struct loop *l)
{
    int64_t now = loop_now_us(l);
    uint64_t seq = l->seq;

    while (l->heap.n > 0 && l->heap.v[0]->due_us <= now &&
           l->heap.v[0]->seq < seq) {
        struct loop_timer t = *l->heap.v[0];

        loop_timer_cancel(l->heap.v[0]);
        t.fn(t.arg);
    }
    aim_timer(l);
}

static void on_timer(uv_timer_t *h)
{
    run_timers(h->data);
}

struct loop_timer *loop_timer_arm(struct loop *l, int64_t delay_us,
                                  void (*fn)(void *arg), void *arg)
{
    struct loop_timer *t = MEM_NEW(struct loop_timer);

    assert(delay_us >= 0);
    t->loop = l;
    /* A delay beyond a century is as good as for ever, and cannot overflow. */
    if (delay_us > (int64_t) 1 << 52)
        delay_us = (int64_t) 1 << 52;
    t->due_us = loop_now_us(l) + delay_us;
    t->seq = l->seq++;
    t->fn = fn;
    t->arg = arg;
    VEC_PUSH(&l->heap, t);
    heap_up(l, l->heap.n - 1);
    if (t->at == 0)
        aim_timer(l);
    return t;
}

void loop_timer_cancel(struct loop_timer *t)
{
    struct loop *l;

    if (!t)
        return;
    l = t->loop;
    heap_remove(t);
    free(t);
    if (l->heap.n == 0)
        aim_timer(l);
}

/* --- the idle handle -----------------------------------------------------*/

static void on_idle(uv_idle_t *h)
{
    struct loop *l = h->data;

    uv_idle_stop(h);
    run_calls(&l->deferred, &l->deferred_now);
    if (l->deferred.n > 0)
        wake_idle(l);
    run_timers(l);
}

static void wake_idle(struct loop *l)
{
    uv_idle_start(&l->idle, on_idle);
}

/* --- signals -------------------------------------------------------------*/

static void on_signal(uv_signal_t *h, int signum)
{
    struct sig *s = h->data;

    s->fn(s->arg, signum);
}

int loop_signal(struct loop *l, int signum, void (*fn)(void *arg, int signum),
                void *arg, struct err *err)
{
    struct sig *s = &l->sigs[l->n_sigs];
    int rc;

    if (l->n_sigs == SIGNALS_MAX)
        return err_set(err, ERR_INTERNAL, "too many signals are watched");
    if ((rc = uv_signal_init(&l->uv, &s->uv)) < 0)
        return err_set_errno(err, -rc, "watching signal %d", signum);
    l->n_sigs++; /* the handle exists: loop_destroy closes it */
    s->uv.data = s;
    s->fn = fn;
    s->arg = arg;
    if ((rc = uv_signal_start(&s->uv, on_signal, signum)) < 0)
        return err_set_errno(err, -rc, "watching signal %d", signum);
    return 0;
}

/* --- life ----------------------------------------------------------------*/

struct loop *loop_create(struct err *err)
{
    struct loop *l = MEM_NEW(struct loop);
    int rc;

    /* A peer that closed its end must be an error code, not our death. */
    signal(SIGPIPE, SIG_IGN);
    if ((rc = uv_loop_init(&l->uv)) < 0) {
        err_set_errno(err, -rc, "event loop");
        free(l);
        return NULL;
    }
    if ((rc = uv_async_init(&l->uv, &l->async, on_async)) < 0) {
        err_set_errno(err, -rc, "event loop");
        uv_loop_close(&l->uv);
        free(l);
        return NULL;
    }
    uv_idle_init(&l->uv, &l->idle);
    uv_timer_init(&l->uv, &l->timer);
    l->async.data = l->idle.data = l->timer.data = l;
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

static void assert_closing(uv_handle_t *h, void *arg)
{
    (void) arg;
    assert(uv_is_closing(h)); /* somebody forgot a handle */
}

/* Callbacks that are waiting may own memory: let them happen. */
static void run_rest(struct loop *l)
{
    do {
        run_calls(&l->deferred, &l->deferred_now);
        run_posted(l);
    } while (l->deferred.n > 0 || l->posted.n > 0);
}

void loop_destroy(struct loop *l)
{
    if (!l)
        return;
    run_rest(l);
    assert(l->heap.n == 0); /* somebody forgot a timer */
    uv_close((uv_handle_t *) &l->async, NULL);
    uv_close((uv_handle_t *) &l->idle, NULL);
    uv_close((uv_handle_t *) &l->timer, NULL);
    for (unsigned i = 0; i < l->n_sigs; i++)
        uv_close((uv_handle_t *) &l->sigs[i].uv, NULL);
    uv_walk(&l->uv, assert_closing, NULL);
    while (uv_loop_close(&l->uv) == UV_EBUSY)
        uv_run(&l->uv, UV_RUN_ONCE);
    VEC_FINI(&l->heap);
    VEC_FINI(&l->deferred);
    VEC_FINI(&l->deferred_now);
    VEC_FINI(&l->posted);
    VEC_FINI(&l->posted_now);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

int loop_run(struct loop *l)
{
    uv_run(&l->uv, UV_RUN_DEFAULT);
    return 0;
}

void loop_stop(struct loop *l)
{
    atomic_store(&l->stop, true);
    uv_async_send(&l->async);
}

struct uv_loop_s *loop_uv(struct loop *l)
{
    return &l->uv;
}

int64_t loop_now_us(struct loop *l)
{
    (void) l;
    return (int64_t) (uv_hrtime() / 1000);
}
