/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A heap of deadlines, and the one timer that serves its earliest.
 *
 * There are tens of thousands of things to wait for (idle times, back-offs,
 * silence, repeated signals), and most are moved long before they fire.
 * Moving one is O(log n) here and costs the port nothing unless the earliest
 * one came nearer. The timer may fire early for what has been stopped since;
 * it is armed again then.
 *
 * A timer that is more than a second late says that the process stood still.
 * That time is taken out of the clock of the whole dispatcher, whoever reads it
 * first (a reply may be handled before the timer fires); else a dispatcher that
 * was suspended would find every instance silent, and give up all of them. The
 * clock never goes back.
 *
 * The same timer, armed with no delay, is what makes "one pass per turn":
 * whoever changes something calls deadlines_soon().
 *
 * Loop thread only.
 */

#include "core/dispatch/deadline.h"

#include <stdlib.h>

#include "core/base/vec.h"
#include "core/port/clock.h"

enum { LATE_US = 1000000 };

struct deadlines {
    struct clock_port *clock;
    void (*after)(void *arg);
    void *arg;
    VEC(struct deadline *) heap;
    uint64_t next_seq;
    struct clock_timer *timer;
    int64_t timer_at; /* what it is armed for; valid while timer */
    int64_t due_us;   /* when it should fire: timer_at, if that is not past */
    int64_t lost_us; /* how long the process stood still so far */
    int64_t read_us; /* what deadlines_now() said last */
    bool soon;
    bool firing;
};

static void on_timer(void *arg);

static bool earlier(const struct deadline *a, const struct deadline *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

static void put(struct deadlines *ds, size_t i, struct deadline *d)
{
    ds->heap.v[i] = d;
    d->slot = i + 1;
}

static void sift_up(struct deadlines *ds, size_t i)
{
    struct deadline *d = ds->heap.v[i];

    while (i > 0 && earlier(d, ds->heap.v[(i - 1) / 2])) {
        put(ds, i, ds->heap.v[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(ds, i, d);
}

static void sift_down(struct deadlines *ds, size_t i)
{
    struct deadline *d = ds->heap.v[i];
    size_t n = ds->heap.n;

    for (size_t c = 2 * i + 1; c < n; c = 2 * i + 1) {
        if (c + 1 < n && earlier(ds->heap.v[c + 1], ds->heap.v[c]))
            c++;
        if (!earlier(ds->heap.v[c], d))
            break;
        put(ds, i, ds->heap.v[c]);
        i = c;
    }
    put(ds, i, d);
}

struct deadlines *deadlines_create(struct clock_port *clock,
                                   void (*after)(void *arg), void *arg)
{
    struct deadlines *ds = MEM_NEW(struct deadlines);

    ds->clock = clock;
    ds->after = after;
    ds->arg = arg;
    return ds;
}

void deadlines_destroy(struct deadlines *ds)
{
    if (!ds)
        return;
    if (ds->timer)
        ds->clock->timer_cancel(ds->clock, ds->timer);
    VEC_FINI(&ds->heap);
    free(ds);
}

int64_t deadlines_now(struct deadlines *ds)
{
    int64_t now = ds->clock->now_mono(ds->clock) - ds->lost_us;

    if (ds->timer && now - ds->due_us > LATE_US) {
        int64_t stood = ds->due_us > ds->read_us ? ds->due_us : ds->read_us;

        ds->lost_us += now - stood;
        now = stood;
    }
    ds->read_us = now;
    return now;
}

/* Let the timer fire no later than the first thing to do. */
static void arm(struct deadlines *ds)
{
    int64_t now = deadlines_now(ds);
    int64_t at;

    if (ds->firing)
        return;
    if (ds->soon)
        at = now;
    else if (ds->heap.n > 0)
        at = ds->heap.v[0]->at_us;
    else
        return;
    if (ds->timer && ds->timer_at <= at)
        return;
    if (ds->timer)
        ds->clock->timer_cancel(ds->clock, ds->timer);
    ds->timer_at = at;
    ds->due_us = at > now ? at : now;
    ds->timer = ds->clock->timer_arm(ds->clock, at > now ? at - now : 0,
                                     on_timer, ds);
}

static void on_timer(void *arg)
{
    struct deadlines *ds = arg;
    int64_t now = deadlines_now(ds);

    ds->timer = NULL;
    ds->firing = true;
    /* Those armed from here on wait for the next turn, even if due. */
    uint64_t last = ds->next_seq;

    while (ds->heap.n > 0 && ds->heap.v[0]->at_us <= now &&
           ds->heap.v[0]->seq < last) {
        struct deadline *d = ds->heap.v[0];

        deadline_stop(ds, d);
        d->fn(d->arg);
    }
    ds->soon = false;
    ds->after(ds->arg);
    ds->firing = false;
    arm(ds);
}

void deadline_set(struct deadlines *ds, struct deadline *d, int64_t at_us,
                  void (*fn)(void *arg), void *arg)
{
    if (d->slot != 0)
        deadline_stop(ds, d);
    d->at_us = at_us;
    d->seq = ds->next_seq++;
    d->fn = fn;
    d->arg = arg;
    VEC_PUSH(&ds->heap, d);
    sift_up(ds, ds->heap.n - 1);
    if (ds->heap.v[0] == d)
        arm(ds);
}

void deadline_stop(struct deadlines *ds, struct deadline *d)
{
    size_t i = d->slot;

    if (i == 0)
        return;
    d->slot = 0;
    struct deadline *last = ds->heap.v[--ds->heap.n];

    if (last == d)
        return;
    put(ds, i - 1, last);
    sift_up(ds, i - 1);
    sift_down(ds, last->slot - 1);
}

void deadlines_soon(struct deadlines *ds)
{
    if (ds->soon)
        return;
    ds->soon = true;
    arm(ds);
}
