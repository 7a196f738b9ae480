/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock and entropy of the simulated world.
 *
 * A timer is an event that lives as long as its dispatcher. The wall clock is
 * the virtual clock plus a base that a fault may move; the monotonic clock
 * never jumps. Entropy is its own seeded stream, so the create tokens of a
 * run are the same in every repetition.
 */

#include "core/sim/clock.h"

#include "core/sim/world.h"

struct clock_timer {
    struct sim *w;
    struct sim_event *event;
    struct clock_timer *prev, *next;
    void (*cb)(void *arg);
    void *arg;
};

static void timer_free(struct clock_timer *t)
{
    if (t->prev)
        t->prev->next = t->next;
    else
        t->w->timers = t->next;
    if (t->next)
        t->next->prev = t->prev;
    free(t);
}

static void on_timer(void *arg)
{
    struct clock_timer *t = arg;

    if (!sim_awake(t->w)) {
        t->event = sim_at(t->w, sim_wake_in(t->w), on_timer, t);
        return;
    }
    void (*cb)(void *) = t->cb;
    void *cb_arg = t->arg;

    timer_free(t);
    cb(cb_arg);
}

static struct clock_timer *timer_arm(struct clock_port *c, int64_t delay_us,
                                     void (*cb)(void *arg), void *arg)
{
    struct sim *w = c->impl;
    struct clock_timer *t = MEM_NEW(struct clock_timer);

    t->w = w;
    t->cb = cb;
    t->arg = arg;
    t->next = w->timers;
    if (t->next)
        t->next->prev = t;
    w->timers = t;
    t->event = sim_at(w, delay_us < 0 ? 0 : delay_us, on_timer, t);
    return t;
}

static void timer_cancel(struct clock_port *c, struct clock_timer *t)
{
    (void) c;
    if (!t)
        return;
    sim_cancel(t->w, t->event);
    timer_free(t);
}

static int64_t now_mono(struct clock_port *c)
{
    const struct sim *w = c->impl;

    /* An origin that nobody mistakes for "never". */
    return w->now_us + 1000 * (int64_t) SIM_S;
}

static int64_t now_wall(struct clock_port *c)
{
    const struct sim *w = c->impl;

    return w->now_us + w->wall_base_us;
}

static void bytes(struct entropy_port *e, void *out, size_t n)
{
    struct sim *w = e->impl;

    sim_rng_bytes(&w->entropy_rng, out, n);
}

void sim_clock_init(struct sim *w)
{
    w->clock = (struct clock_port){
        .now_mono = now_mono,
        .now_wall = now_wall,
        .timer_arm = timer_arm,
        .timer_cancel = timer_cancel,
        .impl = w,
    };
    w->entropy = (struct entropy_port){.bytes = bytes, .impl = w};
    sim_rng_init(&w->entropy_rng, w->seed, "entropy");
}

void sim_clock_crash(struct sim *w)
{
    while (w->timers)
        timer_cancel(&w->clock, w->timers);
}
