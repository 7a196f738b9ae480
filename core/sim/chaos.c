/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trouble by chance.
 *
 * Each seed has a profile: every rated fault is off, rare or frequent. On top
 * of that, every few seconds an event fault strikes something that a die
 * picks. A strike that finds no target does nothing and counts nothing. The
 * dispatcher is killed by way of crash_wanted, at the next turn's end, or at
 * the next passage through a random point.
 */

#include "core/sim/chaos.h"

#include "core/sim/api.h"
#include "core/sim/cloud.h"
#include "core/sim/journal.h"
#include "core/sim/net.h"
#include "core/sim/vm.h"
#include "core/sim/vm_impl.h"

struct sim_chaos {
    struct sim *w;
    struct sim_rng rng;
    int64_t until_us;
    struct sim_event *event;
};

static const bool rated[] = {
#define X(name, label, rate, help) rate,
    SIM_FAULTS(X)
#undef X
};

static int64_t draw(struct sim_chaos *x, int64_t lo, int64_t hi)
{
    return sim_rng_range(&x->rng, lo, hi);
}

/* A machine that is up, or NULL. */
static struct sim_machine *pick_machine(struct sim_chaos *x)
{
    struct sim_net *n = x->w->net;
    VEC(struct sim_machine *) up = {0};
    struct sim_machine *m = NULL;

    for (size_t i = 0; i < n->machines.n; i++)
        if (sim_machine_up(n->machines.v[i]) && !n->machines.v[i]->vm->foreign)
            VEC_PUSH(&up, n->machines.v[i]);
    if (up.n > 0)
        m = up.v[draw(x, 0, (int64_t) up.n - 1)];
    VEC_FINI(&up);
    return m;
}

static struct sim_ctr *pick_ctr(struct sim_chaos *x)
{
    struct sim_api *a = x->w->api;
    VEC(struct sim_ctr *) open = {0};
    struct sim_ctr *c = NULL;

    for (size_t i = 0; i < a->ctrs.n; i++)
        if (a->ctrs.v[i]->final_us == 0 && a->ctrs.v[i]->rec.priority > 0)
            VEC_PUSH(&open, a->ctrs.v[i]);
    if (open.n > 0)
        c = open.v[draw(x, 0, (int64_t) open.n - 1)];
    VEC_FINI(&open);
    return c;
}

static void strike_session(struct sim_chaos *x, struct sim_machine *m)
{
    struct exec_session *s = sim_net_session(x->w->net, m);

    if (!s)
        return;
    sim_fault_note(x->w, SIM_FAULT_SESSION_BREAK);
    sim_session_break(s, "connection reset");
}

static void strike_watch(struct sim_chaos *x, struct sim_machine *m)
{
    if (m->streams.n == 0)
        return;
    sim_fault_note(x->w, SIM_FAULT_WATCH_END);
    sim_watch_close_all(m);
}

static void strike_machine(struct sim_chaos *x, int64_t die)
{
    struct sim *w = x->w;
    struct sim_machine *m = pick_machine(x);

    if (!m)
        return;
    if (die < 2) {
        sim_vm_die(m->vm);
    } else if (die < 5) {
        sim_fault_note(w, SIM_FAULT_HANG_SHORT);
        sim_machine_hang(m, draw(x, 2 * SIM_S, w->silence_us / 2));
    } else if (die < 6) {
        sim_fault_note(w, SIM_FAULT_HANG_LONG);
        sim_machine_hang(m, w->silence_us +
                                draw(x, 30 * SIM_S, 120 * (int64_t) SIM_S));
    } else if (die < 8) {
        sim_machine_cut(m, draw(x, 5 * SIM_S, w->silence_us * 3 / 2));
    } else if (die < 9) {
        if (sim_rng_chance(&x->rng, 5000))
            sim_machine_break(m);
        else
            sim_machine_reboot(m);
    } else if (die < 12) {
        strike_session(x, m);
    } else {
        strike_watch(x, m);
    }
}

static void strike_user(struct sim_chaos *x, bool cancel)
{
    struct sim_ctr *c = pick_ctr(x);

    if (!c)
        return;
    if (cancel)
        sim_api_user_cancel(x->w->api, c);
    else
        sim_api_user_hold(x->w->api, c, draw(x, SIM_S, 90 * (int64_t) SIM_S));
}

static void strike_core(struct sim_chaos *x)
{
    struct sim *w = x->w;

    if (sim_rng_chance(&x->rng, 2500))
        w->crash_wanted = true;
    else if (sim_rng_chance(&x->rng, 3000))
        sim_point_arm(w, SIM_POINT_APPEND, 1);
    else
        sim_point_arm(w, (enum sim_point) draw(x, 0, SIM_POINT_COUNT - 1),
                      (unsigned) draw(x, 1, 2));
}

static void strike_clock(struct sim_chaos *x)
{
    struct sim *w = x->w;

    sim_fault_note(w, SIM_FAULT_CLOCK_JUMP);
    w->wall_base_us += draw(x, -3600, 3600) * SIM_S;
}

static void strike(void *arg);

static void strike_again(struct sim_chaos *x)
{
    x->event = sim_at(x->w, draw(x, 2 * SIM_S, 25 * SIM_S), strike, x);
}

static void strike(void *arg)
{
    struct sim_chaos *x = arg;
    struct sim *w = x->w;
    int64_t die = draw(x, 0, 22);

    x->event = NULL;
    if (w->now_us >= x->until_us) {
        sim_calm(w);
        return;
    }
    if (die < 14)
        strike_machine(x, die);
    else if (die < 15)
        strike_user(x, true);
    else if (die < 16)
        strike_user(x, false);
    else if (die < 17)
        sim_api_down(w->api, draw(x, SIM_S, 60 * (int64_t) SIM_S));
    else if (die < 18)
        sim_journal_fail(w->journal, draw(x, SIM_S / 10, 20 * SIM_S));
    else if (die < 19)
        strike_clock(x);
    else if (die < 20)
        sim_freeze(w, draw(x, SIM_S, 2 * w->silence_us));
    else
        strike_core(x);
    strike_again(x);
}

struct sim_chaos *sim_chaos_create(struct sim *w, int64_t for_us)
{
    static const int64_t rates[] = {0, 0, 60, 250, 250, 900};
    struct sim_chaos *x = MEM_NEW(struct sim_chaos);

    x->w = w;
    x->until_us = w->now_us + for_us;
    sim_rng_init(&x->rng, w->seed, "chaos");
    for (unsigned f = 0; f < SIM_FAULT_COUNT; f++)
        if (rated[f])
            w->faults[f].rate = rates[draw(x, 0, 5)];
    /* Their opportunities are rare. */
    w->faults[SIM_FAULT_STALE_LONG].rate = 4000;
    w->faults[SIM_FAULT_RUNNER_CRASH_LATE].rate *= 2;
    w->faults[SIM_FAULT_TAGS_LOST].rate *= 4;
    strike_again(x);
    return x;
}

void sim_chaos_destroy(struct sim_chaos *x)
{
    if (!x)
        return;
    sim_cancel(x->w, x->event);
    free(x);
}
