/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pass: snapshot, plan, acts.
 *
 * However much happened in a turn, there is one pass at its end, and only if
 * something changed that the plan looks at. The snapshot is a list of
 * pointers for containers (their part of the plan lives in the entry) and one
 * flat array for instances and creates under way.
 *
 * The plan's actions are carried out in its order. What they change is what
 * the plan has accounted for already, so they do not cause another pass; an
 * action that could not be begun does.
 *
 * Loop thread only.
 */

#include "core/dispatch/sched.h"

#include <stdlib.h>

#include "core/base/map.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/creates.h"
#include "core/dispatch/gate.h"
#include "core/dispatch/guard.h"
#include "core/dispatch/jr.h"
#include "core/dispatch/plan.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/reconcile.h"
#include "core/dispatch/run.h"
#include "core/dispatch/starts.h"
#include "core/dispatch/worker.h"
#include "core/model/itypes.h"

enum { STARTS_PER_PASS = 256, AHEAD_MIN = 4, AHEAD_MAX = 64 };

struct sched {
    struct dispatch *d;
    struct plan plan;
    size_t cap_ctrs, cap_workers;
    struct guard_backend *gb;
    struct guard_in guard;
    bool dirty;
    bool in_pass;
    bool again;          /* an action could not be begun */
    struct deadline wake;
    int64_t processes;
};

struct sched *sched_create(struct dispatch *d)
{
    struct sched *s = MEM_NEW(struct sched);

    s->d = d;
    s->plan.itypes = d->cfg->itypes.v;
    s->plan.n_itypes = d->cfg->itypes.n;
    s->gb = mem_calloc(d->cfg->n_backends, sizeof *s->gb);
    return s;
}

void sched_destroy(struct sched *s)
{
    if (!s)
        return;
    deadline_stop(s->d->deadlines, &s->wake);
    plan_fini(&s->plan);
    free(s->plan.ctrs);
    free(s->plan.workers);
    free(s->gb);
    free(s);
}

int64_t sched_not_ready(const struct sched *s)
{
    return s->plan.mapped_not_ready;
}

int64_t sched_no_place(const struct sched *s)
{
    return s->plan.no_place;
}

int64_t sched_processes(const struct sched *s)
{
    return s->processes;
}

bool sched_at_quota(const struct sched *s)
{
    return s->plan.at_quota;
}

void sched_mark(struct dispatch *d)
{
    struct sched *s = d->sched;

    if (s->dirty || s->in_pass)
        return;
    s->dirty = true;
    deadlines_soon(d->deadlines);
}

static void on_wake(void *arg)
{
    sched_mark(((struct sched *) arg)->d);
}

void sched_wake_us(struct dispatch *d, int64_t at_us)
{
    struct sched *s = d->sched;

    if (!deadline_armed(&s->wake) || at_us < s->wake.at_us)
        deadline_set(d->deadlines, &s->wake, at_us, on_wake, s);
}

void sched_wake_at(struct dispatch *d, const struct holdoff_entry *e)
{
    if (e)
        sched_wake_us(d, e->h.until_us);
}

/* --- the snapshot -------------------------------------------------------- */

static void snap_ctr(struct qent *q, int64_t now)
{
    struct plan_ctr *c = &q->pc;

    c->locked = q->c.state == CTR_LOCKED;
    c->process = q->runs || q->exit_us > 0 || q->c.state == CTR_RUNNING;
    c->supervisor = q->c.supervisor;
    c->on_hold = q->c.priority <= 0;
    c->held = (q->op != QENT_IDLE && q->op != QENT_ATTEMPT) ||
              now < q->hold.until_us || q->impossible ||
              (q->gone_us > 0 && !reconcile_fresh(q));
}

static void snap_ctrs(struct sched *s)
{
    size_t n;
    struct qent *const *order = cqueue_order(s->d->queue, &n);
    int64_t now = core_now(s->d);

    if (n > s->cap_ctrs) {
        s->cap_ctrs = 2 * n;
        s->plan.ctrs = mem_realloc(s->plan.ctrs, s->cap_ctrs,
                                   sizeof *s->plan.ctrs);
    }
    s->processes = 0;
    for (size_t i = 0; i < n; i++) {
        snap_ctr(order[i], now);
        s->processes += order[i]->pc.process;
        s->plan.ctrs[i] = &order[i]->pc;
    }
    s->plan.n_ctrs = n;
}

static size_t type_index(const struct sched *s, const struct itype *it)
{
    return it ? (size_t) (it - s->plan.itypes) : 0;
}

static void snap_worker(struct sched *s, struct worker *w)
{
    bool idle = w->state == WORKER_IDLE || w->state == WORKER_BOOTING;
    int64_t next = worker_changes_us(w);

    if (next > 0)
        sched_wake_us(s->d, next);
    s->plan.workers[s->plan.n_workers++] = (struct plan_worker) {
        .serial = w->serial,
        .owner = w,
        .type = w->type,
        .type_index = type_index(s, w->type),
        .usable = worker_usable(w),
        .ready = worker_ready(w),
        .removable = idle && w->behavior != DISPATCH_HOLD && worker_empty(w),
        .free = w->free,
        .n = (int64_t) w->runs.n,
        .limit = s->d->cfg->max_per_instance,
    };
}

static void snap_create(struct sched *s, struct create *c)
{
    struct plan_worker *pw;

    if (!c->type || c->seen >= c->count)
        return;
    pw = &s->plan.workers[s->plan.n_workers++];
    *pw = (struct plan_worker) {
        .serial = c->serial,
        .owner = c,
        .type = c->type,
        .type_index = type_index(s, c->type),
        .usable = true,
        .pending = true,
        .limit = s->d->cfg->max_per_instance,
    };
    need_capacity(c->type, &pw->free);
}

static void snap_workers(struct sched *s)
{
    struct pool *p = s->d->pool;
    size_t room = p->list.n + map_count(p->creates) + s->plan.n_ctrs;
    const char *key = NULL;
    struct create *c;

    if (room > s->cap_workers) {
        s->cap_workers = 2 * room;
        s->plan.workers = mem_realloc(s->plan.workers, s->cap_workers,
                                      sizeof *s->plan.workers);
    }
    s->plan.n_workers = 0;
    for (size_t i = 0; i < p->list.n; i++)
        snap_worker(s, p->list.v[i]);
    while ((c = map_next(p->creates, &key)))
        snap_create(s, c);
}

/* --- limits -------------------------------------------------------------- */

static void fill_guard(struct sched *s)
{
    struct pool *p = s->d->pool;

    for (size_t i = 0; i < p->n; i++)
        pool_guard_view(&p->b[i], &s->gb[i]);
    s->guard = (struct guard_in) {
        .now_us = core_now(s->d),
        .journal_ok = jr_ok(s->d->jr),
        .stopping = !core_acts(s->d),
        .backends = s->gb,
        .n_backends = p->n,
    };
}

static enum plan_why blocked(void *arg, const struct itype *it)
{
    struct sched *s = arg;
    struct guard_place place;
    enum plan_why why = guard_create(&s->guard, it, &place);

    if (why != PLAN_NONE && place.until_us > 0)
        sched_wake_us(s->d, place.until_us);
    return why;
}

static int64_t all_instances(const struct pool *p)
{
    int64_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        n += p->b[i].instances;
    return n;
}

/* How many instances may be added: -1 = any. */
static int64_t room_for_instances(const struct sched *s)
{
    const struct dispatch_cfg *cfg = s->d->cfg;
    int64_t n = all_instances(s->d->pool);
    int64_t room = -1;

    if (cfg->max_instances > 0)
        room = n < cfg->max_instances ? cfg->max_instances - n : 0;
    /* Up to the estimate at once, beyond it one by one: each success is the
     * proof that the next may be tried. */
    if (cfg->initial_quota > 0 && room != 0) {
        int64_t sure = cfg->initial_quota - n;

        if (sure <= 0)
            sure = s->d->pool->creates_in_flight > 0 ? 0 : 1;
        room = room < 0 || sure < room ? sure : room;
    }
    return room;
}

static int64_t supervisor_share(const struct sched *s, int64_t processes)
{
    double f = s->d->cfg->supervisor_fraction;
    int64_t base = processes > 0 ? processes : s->d->cfg->max_instances;

    if (processes <= 0 && s->d->cfg->initial_quota > 0)
        base = s->d->cfg->initial_quota;
    if (f <= 0 || base <= 0)
        return 0;
    return (int64_t) ((double) base * f) > 1 ? (int64_t) ((double) base * f)
                                              : 1;
}

static struct plan_limits limits(struct sched *s)
{
    struct dispatch *d = s->d;
    const struct dispatch_cfg *cfg = d->cfg;
    int64_t processes = gate_processes(d->gate, s->processes);
    int64_t ahead = s->processes;
    int64_t creates = cfg->max_create_ops > 0
                          ? cfg->max_create_ops - d->pool->creates_in_flight
                          : INT64_MAX;

    if (ahead < AHEAD_MIN)
        ahead = AHEAD_MIN;
    return (struct plan_limits) {
        .starts = jr_ok(d->jr) ? STARTS_PER_PASS : 0,
        .locks = gate_room(d->gate),
        .creates = creates > 0 ? creates : 0,
        .instances = room_for_instances(s),
        .processes = processes,
        .supervisors = supervisor_share(s, processes),
        .lock_ahead = ahead < AHEAD_MAX ? ahead : AHEAD_MAX,
        .max_per_instance = cfg->max_per_instance,
        .blocked = blocked,
        .arg = s,
    };
}

/* --- acts ---------------------------------------------------------------- */

static struct qent *qent_at(const struct sched *s, size_t i)
{
    return MEM_CONTAINER(s->plan.ctrs[i], struct qent, pc);
}

static void make(struct sched *s, const struct itype *it)
{
    struct pool *p = s->d->pool;
    struct guard_place place;
    int64_t next = 0;

    fill_guard(s); /* the creates before this one count */
    if (guard_create(&s->guard, it, &place) != PLAN_NONE)
        return;
    struct backend *b = &p->b[place.backend];

    if (pace_take(&b->pace, core_now(s->d), &next))
        create_begin(b, it, place.placement);
    else
        sched_wake_us(s->d, next);
}

static void carry_out(struct sched *s, const struct plan_action *a)
{
    struct qent *q;

    switch (a->verb) {
    case PLAN_LOCK:
        q = qent_at(s, a->ctr);
        if (qent_free_to_ask(q))
            qent_lock(q);
        break;
    case PLAN_START:
        if (!start_begin(qent_at(s, a->ctr), a->worker->owner))
            s->again = true;
        break;
    case PLAN_MAKE:
        make(s, a->type);
        break;
    case PLAN_SHUTDOWN:
        worker_event(a->worker->owner, WORKER_EV_UNNEEDED,
                     "its quota is needed for another type");
        break;
    }
}

static void note_one(struct create *c, bool mapped, bool cut)
{
    c->wanted = mapped || (cut && c->wanted);
}

/* A create of unknown outcome is repeated only while it is wanted. */
static void note_wanted(struct sched *s)
{
    for (size_t i = 0; i < s->plan.n_workers; i++) {
        const struct plan_worker *w = &s->plan.workers[i];

        if (w->pending && w->owner)
            note_one(w->owner, w->mapped > 0, s->plan.cut);
    }
}

static void make_plan(struct sched *s, bool whole)
{
    snap_ctrs(s);
    snap_workers(s);
    fill_guard(s);
    struct plan_limits lim = limits(s);

    lim.whole = whole;
    plan_run(&s->plan, &lim);
}

void sched_explain(struct dispatch *d)
{
    if (d->phase == CORE_WORKING && (d->sched->plan.cut || d->sched->dirty))
        make_plan(d->sched, true); /* and nothing is carried out */
}

void sched_work(struct dispatch *d)
{
    struct sched *s = d->sched;

    if (!s->dirty || d->phase != CORE_WORKING)
        return;
    s->dirty = false;
    s->in_pass = true;
    s->again = false;
    make_plan(s, false);
    note_wanted(s);
    for (size_t i = 0; i < s->plan.n_actions; i++)
        carry_out(s, &s->plan.actions[i]);
    s->in_pass = false;
    if (s->again)
        sched_wake_us(d, core_now(d) + 100000);
}
