/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated journal.
 *
 * append -> (durable) -> acknowledged. Durability is the op's effect and keeps
 * the order of the calls; the acknowledgement follows as an event of its own.
 * Two sets of records are kept: what is durable (that is replayed) and what
 * the living dispatcher was told is durable. Checkers ask the second: an
 * effect is right only when its intent was acknowledged before.
 *
 * While appends fail they change nothing, in order: a batch never fails with a
 * later one succeeding before it.
 */

#include "core/sim/journal.h"

#include "core/base/text.h"
#include "core/sim/op.h"

struct sim_batch {
    struct op op;
    struct sim_journal *j;
    struct journal_rec *v;
    size_t n;
    void (*cb)(void *arg, const struct op_result *r);
    void *arg;
};

struct replay {
    struct op op;
    struct sim_journal *j;
    void (*on_rec)(void *arg, const struct journal_rec *rec);
    void (*end)(void *arg, const struct op_result *r);
    void *arg;
};

/* --- records --------------------------------------------------------- */

static int rec_cmp(const struct journal_rec *rec, enum journal_kind kind,
                   const char *key)
{
    if (rec->kind != kind)
        return rec->kind < kind ? -1 : 1;
    return strcmp(rec->key, key);
}

static size_t recs_find(const struct journal_rec *v, size_t n,
                        enum journal_kind kind, const char *key)
{
    size_t lo = 0;

    while (lo < n) {
        size_t mid = lo + (n - lo) / 2;

        if (rec_cmp(&v[mid], kind, key) < 0)
            lo = mid + 1;
        else
            n = mid;
    }
    return lo;
}

#define RECS_APPLY(set, rec)                                                   \
    do {                                                                       \
        size_t at_ = recs_find((set)->v, (set)->n, (rec)->kind, (rec)->key);   \
        bool old_ = at_ < (set)->n &&                                          \
                    rec_cmp(&(set)->v[at_], (rec)->kind, (rec)->key) == 0;     \
                                                                               \
        if (old_ && (rec)->deleted)                                            \
            VEC_REMOVE(set, at_);                                              \
        else if (old_)                                                         \
            (set)->v[at_] = *(rec);                                            \
        else if (!(rec)->deleted)                                              \
            VEC_INSERT(set, at_, *(rec));                                      \
    } while (0)

const struct journal_rec *sim_journal_heard(const struct sim_journal *j,
                                            enum journal_kind kind,
                                            const char *key)
{
    size_t i = recs_find(j->heard.v, j->heard.n, kind, key);

    if (i < j->heard.n && rec_cmp(&j->heard.v[i], kind, key) == 0)
        return &j->heard.v[i];
    return NULL;
}

static bool batch_has(const struct sim_batch *b, enum journal_kind kind)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->v[i].kind == kind && !b->v[i].deleted)
            return true;
    return false;
}

/* --- append ---------------------------------------------------------- */

static void batch_fire(struct op *op, const struct op_result *r)
{
    struct sim_batch *b = (struct sim_batch *) op;
    struct sim_journal *j = b->j;

    if (r->outcome == OP_DONE)
        for (size_t i = 0; i < b->n; i++)
            RECS_APPLY(&j->heard, &b->v[i]);
    sim_trace(op->w, "journal append of %zu %s -> %s", b->n,
              b->n > 0 ? b->v[0].key : "",
              r->outcome == OP_DONE ? "durable" : "FAILED");
    b->cb(b->arg, r);
    if (batch_has(b, JOURNAL_CREATE))
        sim_point(op->w, SIM_POINT_INTENT_HEARD);
    if (batch_has(b, JOURNAL_START))
        sim_point(op->w, SIM_POINT_START_DURABLE_HEARD);
}

static void pending_remove(struct sim_journal *j, struct sim_batch *b)
{
    for (size_t i = 0; i < j->pending.n; i++) {
        if (j->pending.v[i] == b) {
            VEC_REMOVE(&j->pending, i);
            return;
        }
    }
}

static void batch_apply(struct sim_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        RECS_APPLY(&b->j->recs, &b->v[i]);
}

static void batch_effect(struct op *op)
{
    struct sim_batch *b = (struct sim_batch *) op;
    struct sim_journal *j = b->j;
    int64_t delay = sim_rng_range(&j->rng, 0, 200);

    pending_remove(j, b);
    if (op->gen != op->w->gen)
        return; /* settled at the crash */
    if (op->w->now_us < j->fail_until_us) {
        op_fail_in(op, delay, OP_REFUSED, ERR_TRANSIENT, 0,
                   "no space left on device");
        return;
    }
    batch_apply(b);
    op_done_in(op, delay);
    if (batch_has(b, JOURNAL_CREATE))
        sim_point(op->w, SIM_POINT_INTENT_DURABLE);
    if (batch_has(b, JOURNAL_START))
        sim_point(op->w, SIM_POINT_START_DURABLE);
}

static void batch_fini(struct op *op)
{
    struct sim_batch *b = (struct sim_batch *) op;

    pending_remove(b->j, b);
    free(b->v);
}

static struct op *append(struct journal_port *port,
                         const struct journal_rec *recs, size_t n,
                         void (*cb)(void *arg, const struct op_result *r),
                         void *arg)
{
    struct sim_journal *j = port->impl;
    struct sim *w = j->w;
    struct sim_batch *b = op_new(w, sizeof *b, "journal append");
    int64_t delay = sim_rng_range(&j->rng, j->latency_lo_us, j->latency_hi_us);

    b->j = j;
    b->v = n > 0 ? mem_dup(recs, n * sizeof *recs) : NULL;
    b->n = n;
    b->cb = cb;
    b->arg = arg;
    b->op.effect = batch_effect;
    b->op.fire = batch_fire;
    b->op.fini = batch_fini;
    if (w->crashing) {
        op_effect_in(&b->op, 0);
        return &b->op;
    }
    if (sim_fault(w, SIM_FAULT_JOURNAL_SLOW))
        delay += sim_rng_range(&j->rng, SIM_S, 5 * SIM_S);
    if (w->now_us + delay < j->last_us)
        delay = j->last_us - w->now_us;
    j->last_us = w->now_us + delay;
    VEC_PUSH(&j->pending, b);
    sim_point(w, SIM_POINT_APPEND);
    op_effect_in(&b->op, delay);
    return &b->op;
}

/* --- replay ---------------------------------------------------------- */

static void replay_fire(struct op *op, const struct op_result *r)
{
    struct replay *p = (struct replay *) op;
    struct sim_journal *j = p->j;

    sim_trace(op->w, "journal replays %zu records", j->recs.n);
    for (size_t i = 0; i < j->recs.n; i++)
        p->on_rec(p->arg, &j->recs.v[i]);
    p->end(p->arg, r);
}

static void replay_effect(struct op *op)
{
    op_done_in(op, 0);
}

static struct op *replay(struct journal_port *port,
                         void (*on_rec)(void *arg,
                                        const struct journal_rec *rec),
                         void (*end)(void *arg, const struct op_result *r),
                         void *arg)
{
    struct sim_journal *j = port->impl;
    struct replay *p = op_new(j->w, sizeof *p, "journal replay");

    p->j = j;
    p->on_rec = on_rec;
    p->end = end;
    p->arg = arg;
    p->op.effect = replay_effect;
    p->op.fire = replay_fire;
    op_effect_in(&p->op, sim_rng_range(&j->rng, 1000, 20000));
    return &p->op;
}

/* --- life ------------------------------------------------------------ */

void sim_journal_fail(struct sim_journal *j, int64_t for_us)
{
    sim_fault_note(j->w, SIM_FAULT_JOURNAL_FAIL);
    j->fail_until_us = j->w->now_us + for_us;
}

void sim_journal_crash(struct sim_journal *j)
{
    struct sim *w = j->w;
    size_t n = j->pending.n;
    size_t kept = 0;

    if (n > 0 && w->now_us >= j->fail_until_us)
        kept = (size_t) sim_rng_range(&w->crash_rng, 0, (int64_t) n);
    for (size_t i = 0; i < kept; i++)
        batch_apply(j->pending.v[i]);
    if (kept > 0)
        sim_fault_note(w, SIM_FAULT_CRASH_KEEPS);
    if (kept < n)
        sim_fault_note(w, SIM_FAULT_CRASH_LOSES);
    VEC_CLEAR(&j->pending);
    VEC_CLEAR(&j->heard);
    for (size_t i = 0; i < j->recs.n; i++)
        VEC_PUSH(&j->heard, j->recs.v[i]);
    j->last_us = w->now_us;
}

struct sim_journal *sim_journal_create(struct sim *w)
{
    struct sim_journal *j = MEM_NEW(struct sim_journal);

    j->w = w;
    j->port =
        (struct journal_port){.replay = replay, .append = append, .impl = j};
    j->latency_lo_us = 500;
    j->latency_hi_us = 8000;
    sim_rng_init(&j->rng, w->seed, "journal");
    return j;
}

void sim_journal_destroy(struct sim_journal *j)
{
    if (!j)
        return;
    VEC_FINI(&j->recs);
    VEC_FINI(&j->heard);
    VEC_FINI(&j->pending);
    free(j);
}
