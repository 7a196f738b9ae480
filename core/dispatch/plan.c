/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pass: containers in order against instances that are, or will be.
 *
 * For each container in turn: is there an instance it fits on? Ready ones
 * first, then the fullest, then the cheapest, then the oldest. A locked
 * container on a ready instance is started; on one that still boots it keeps
 * its place there; a queued one is locked first. If nothing fits, an instance
 * of the cheapest eligible type that may be created is asked for, and counts
 * from then on as a place for the containers after it.
 *
 * Four limits, never mixed: placement onto what exists is never gated by a
 * quota; creates have budgets of their own; the number of processes is
 * limited by what the API server bears; supervisors have a share, so that
 * they cannot fill every slot and wait for children that never start.
 *
 * Beyond what has a place, `lock_ahead` more are kept locked: when a slot
 * becomes free, its next container has been locked already. Nobody is ever
 * unlocked for want of a quota; a kept lock costs no attempt.
 *
 * Cost: containers of one shape fail together (`memo`), so that a pass is
 * O(containers + shapes x instances), with a few nanoseconds for each
 * container that waits. And unless somebody wants reasons, it ends at the
 * first queued container when no more lock calls may be made: all that are
 * locked come before it. Pure; called by sched.c on the loop.
 */

#include "core/dispatch/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/itypes.h"

struct pass {
    struct plan *p;
    struct plan_limits left;
    int64_t processes, supervisors;
    int64_t ahead;
    int64_t want_quota; /* containers that only our or their quota stops */
    uint32_t position;
};

static void act(struct plan *p, struct plan_action a)
{
    if (p->n_actions == p->cap_actions) {
        p->cap_actions = p->cap_actions ? 2 * p->cap_actions : 32;
        p->actions = mem_realloc(p->actions, p->cap_actions,
                                 sizeof *p->actions);
    }
    p->actions[p->n_actions++] = a;
}

static bool worker_takes(const struct plan_worker *w,
                         const struct plan_shape *s)
{
    if (!w->usable || !w->type || (w->limit > 0 && w->n >= w->limit))
        return false;
    if (!(s->eligible[w->type_index / 8] & 1u << w->type_index % 8))
        return false;
    return need_fits(&w->free, &s->need);
}

/* Is a the better place? Equal ranks keep the earlier one. */
static bool worker_better(const struct plan_worker *a,
                          const struct plan_worker *b)
{
    if (a->ready != b->ready)
        return a->ready;
    if (a->n != b->n)
        return a->n > b->n;
    return a->type->price < b->type->price;
}

static struct plan_worker *find_place(struct plan *p, struct plan_shape *s)
{
    struct plan_worker *best = NULL;
    size_t from = 0;

    if (s->memo.pass != p->pass) {
        s->memo.pass = p->pass;
        s->memo.full_at = 0;
        s->memo.blocked = -1;
    } else {
        from = s->memo.full_at; /* those before were full already */
    }
    for (size_t i = from; i < p->n_workers; i++) {
        struct plan_worker *w = &p->workers[i];

        if (worker_takes(w, s) && (!best || worker_better(w, best)))
            best = w;
    }
    if (!best)
        s->memo.full_at = p->n_workers;
    return best;
}

static void map_onto(struct plan_worker *w, const struct plan_shape *s)
{
    need_sub(&w->free, &s->need);
    w->n++;
    w->mapped++;
}

static enum plan_why type_blocked(struct pass *x, const struct itype *it)
{
    struct plan *p = x->p;
    size_t i = (size_t) (it - p->itypes);

    if (p->block[i] == 0)
        p->block[i] = (uint8_t) (1 + x->left.blocked(x->left.arg, it));
    return (enum plan_why) (p->block[i] - 1);
}

/* The cheapest type that may be created; NULL: none, and why not the
 * cheapest of all. */
static const struct itype *find_type(struct pass *x, struct plan_shape *s,
                                     enum plan_why *ret_why)
{
    *ret_why = PLAN_NONE;
    if (s->memo.blocked != -1) {
        *ret_why = (enum plan_why) s->memo.blocked;
        return NULL;
    }
    for (size_t i = 0; i < s->n_types; i++) {
        enum plan_why why = type_blocked(x, s->types[i]);

        if (why == PLAN_NONE)
            return s->types[i];
        if (*ret_why == PLAN_NONE)
            *ret_why = why;
    }
    s->memo.blocked = *ret_why;
    return NULL;
}

/* Room for one more instance in our books, made or merely foreseen. */
static void foresee(struct pass *x, const struct itype *it,
                    const struct plan_shape *s)
{
    struct plan *p = x->p;
    struct plan_worker *w = &p->workers[p->n_workers++];

    *w = (struct plan_worker) {
        .type = it, .type_index = (size_t) (it - p->itypes),
        .usable = true, .pending = true,
        .limit = x->left.max_per_instance,
    };
    need_capacity(it, &w->free);
    map_onto(w, s);
    if (x->left.instances > 0)
        x->left.instances--;
}

/* A lock call for container i, if one may be made. */
static void want_lock(struct pass *x, size_t i, struct plan_ctr *c)
{
    c->reason.why = c->held ? PLAN_BUSY : PLAN_LOCKING;
    if (c->held || x->left.locks == 0)
        return;
    x->left.locks--;
    act(x->p, (struct plan_action) {.verb = PLAN_LOCK, .ctr = i});
}

static void place_found(struct pass *x, size_t i, struct plan_ctr *c,
                        struct plan_worker *w)
{
    map_onto(w, c->shape);
    c->reason.worker = w->serial;
    c->reason.type = w->type;
    if (!c->locked) {
        want_lock(x, i, c);
    } else if (c->held) {
        c->reason.why = PLAN_BUSY;
    } else if (!w->ready) {
        c->reason.why = !w->pending                  ? PLAN_BOOTING
                        : w->serial > 0 || w->asked ? PLAN_CREATE
                                                    : PLAN_NEXT_CREATE;
        x->p->mapped_not_ready++;
    } else {
        c->reason.why = PLAN_STARTING;
        if (x->left.starts == 0)
            return;
        x->left.starts--;
        act(x->p, (struct plan_action) {
            .verb = PLAN_START, .ctr = i, .worker = w});
    }
}

/* No place and no type: it waits, but the first few are locked ahead. */
static void no_place(struct pass *x, size_t i, struct plan_ctr *c,
                     enum plan_why why)
{
    x->p->no_place++;
    x->want_quota += why == PLAN_MAX_INSTANCES || why == PLAN_QUOTA;
    c->reason.type = c->shape->n_types > 0 ? c->shape->types[0] : NULL;
    if (x->ahead >= x->left.lock_ahead) {
        c->reason.why = why;
        return;
    }
    x->ahead++;
    if (!c->locked)
        want_lock(x, i, c);
    c->reason.why = why;
}

static void place_new(struct pass *x, size_t i, struct plan_ctr *c)
{
    enum plan_why why = PLAN_NONE;
    const struct itype *it = find_type(x, c->shape, &why);

    if (it && x->left.instances == 0) {
        it = NULL;
        why = PLAN_MAX_INSTANCES;
    }
    if (!it) {
        no_place(x, i, c, why == PLAN_NONE ? PLAN_BEHIND : why);
        return;
    }
    foresee(x, it, c->shape);
    c->reason.type = it;
    if (!c->locked) {
        want_lock(x, i, c);
    } else if (c->held) {
        c->reason.why = PLAN_BUSY;
    } else if (x->left.creates == 0) {
        c->reason.why = PLAN_NEXT_CREATE;
    } else {
        x->left.creates--;
        x->p->workers[x->p->n_workers - 1].asked = true;
        c->reason.why = PLAN_CREATE;
        x->p->mapped_not_ready++;
        act(x->p, (struct plan_action) {
            .verb = PLAN_MAKE, .ctr = i, .type = it});
    }
}

/* Limits on how many may have a process at all. */
static bool over_limit(struct pass *x, struct plan_ctr *c)
{
    const struct plan_limits *l = &x->left;

    if (c->supervisor && l->supervisors > 0 &&
        x->supervisors >= l->supervisors) {
        c->reason.why = PLAN_SUPERVISORS;
    } else if (l->processes > 0 && x->processes >= l->processes) {
        c->reason.why = PLAN_API_LIMIT;
    } else {
        x->processes++;
        x->supervisors += c->supervisor;
        return false;
    }
    x->p->no_place++;
    return true;
}

static void judge(struct pass *x, size_t i)
{
    struct plan_ctr *c = x->p->ctrs[i];
    struct plan_worker *w;

    c->reason = (struct plan_reason) {.why = PLAN_NONE};
    if (c->process) {
        c->reason.why = PLAN_RUNNING;
        return;
    }
    if (c->on_hold) {
        c->reason.why = PLAN_ON_HOLD;
        return;
    }
    if (!over_limit(x, c)) {
        w = find_place(x->p, c->shape);
        if (w)
            place_found(x, i, c, w);
        else
            place_new(x, i, c);
    }
    if (plan_why_waits(c->reason.why))
        c->reason.position = ++x->position;
}

/* Somebody waits for a quota that idle instances use up: end as many of those
 * that nobody was mapped to, the last made first. */
static void make_room(struct pass *x)
{
    struct plan *p = x->p;

    for (size_t i = p->n_workers; i-- > 0 && x->want_quota > 0;) {
        struct plan_worker *w = &p->workers[i];

        if (!w->removable || w->n > 0 || w->serial == 0)
            continue;
        x->want_quota--;
        act(p, (struct plan_action) {.verb = PLAN_SHUTDOWN, .worker = w});
    }
}

/* From here on only queued ones follow, and none may be locked now. */
static bool pointless(const struct pass *x, const struct plan_ctr *c)
{
    return !x->left.whole && x->left.locks == 0 && !c->locked && !c->process;
}

void plan_run(struct plan *p, const struct plan_limits *lim)
{
    struct pass x = {.p = p, .left = *lim};

    p->pass++;
    p->n_actions = 0;
    p->mapped_not_ready = p->no_place = 0;
    if (!p->block)
        p->block = mem_zalloc(p->n_itypes);
    memset(p->block, 0, p->n_itypes);
    for (size_t i = 0; i < p->n_ctrs; i++) {
        x.processes += p->ctrs[i]->process;
        x.supervisors += p->ctrs[i]->process && p->ctrs[i]->supervisor;
    }
    p->cut = false;
    for (size_t i = 0; i < p->n_ctrs && !p->cut; i++) {
        if (pointless(&x, p->ctrs[i]))
            p->cut = true;
        else
            judge(&x, i);
    }
    p->at_quota = x.want_quota > 0;
    if (!p->cut)
        make_room(&x);
}

void plan_fini(struct plan *p)
{
    free(p->actions);
    free(p->block);
    p->actions = NULL;
    p->block = NULL;
    p->n_actions = p->cap_actions = 0;
}

bool plan_why_waits(enum plan_why why)
{
    static const bool waits[] = {
#define X(name, w) w,
        PLAN_WHYS(X)
#undef X
    };

    return waits[why];
}
