/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One container at a time: gather what is known, let verdict.c decide, begin
 * what it says.
 *
 * Called by cqueue at the end of each turn for every entry that was marked:
 * a record arrived, a request was answered, a run changed, an instance left.
 * Each verdict is one step; when its outcome arrives, the entry is marked
 * again and the next step follows. Nothing here waits.
 *
 * Loop thread only.
 */

#include "core/dispatch/reconcile.h"

#include "core/base/logger.h"
#include "core/base/text.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/jr.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/run.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/starts.h"
#include "core/dispatch/worker.h"

enum {
    LOST_MAX = 3,            /* instances that may die under one container
                              * before its lock is given up */
    FINAL_GRACE_US = 5000000 /* for the runner to end after its last write */
};

static void count_runs(struct qent *q, struct reconcile_view *v)
{
    for (const struct run *r = q->runs; r; r = r->next_of_ctr) {
        if (run_lost(r))
            v->lost++;
        else
            v->alive++;
    }
}

bool reconcile_fresh(const struct qent *q)
{
    return q->doubt_us == 0 && q->read_us >= q->exit_us &&
           q->read_us >= q->gone_us && q->read_us >= q->revoked_us &&
           q->read_us > 0;
}

static struct reconcile_view view_of(struct qent *q)
{
    struct reconcile_view v = {
        .state = q->c.state,
        .ours = qent_ours(q),
        .missing = q->missing,
        .wanted = q->c.priority > 0,
        .impossible = q->impossible || q->c.invalid[0] != '\0',
        .admitted = q->admitted,
        .fresh = reconcile_fresh(q),
        .attempt_open = qent_attempt_open(q),
        .has_token = q->token != NULL,
        .all_known = pool_all_known(q->d->pool),
        .burnt = q->burns >= LOST_MAX,
        .overdue = q->final_us > 0 &&
                   core_now(q->d) - q->final_us >= FINAL_GRACE_US,
    };

    count_runs(q, &v);
    v.exited = q->exit_us > 0 && v.alive == 0 && v.lost == 0;
    v.gone = q->gone_us > 0 && v.alive == 0 && v.lost == 0;
    return v;
}

static void on_later(void *arg)
{
    struct qent *q = arg;

    cqueue_mark(q);
    sched_mark(q->d);
    /* The same deadline also serves the end of a back-off. */
    if (core_now(q->d) < q->hold.until_us)
        deadline_set(q->d->deadlines, &q->retry, q->hold.until_us, on_later,
                     q);
}

static void mark_at(struct qent *q, int64_t at_us)
{
    if (!deadline_armed(&q->retry) || at_us < q->retry.at_us)
        deadline_set(q->d->deadlines, &q->retry, at_us, on_later, q);
}

static void note_final(struct qent *q)
{
    if (!ctr_state_final(q->c.state)) {
        q->final_us = 0;
        return;
    }
    if (q->final_us == 0)
        q->final_us = core_now(q->d);
    if (q->runs && core_now(q->d) < q->final_us + FINAL_GRACE_US)
        mark_at(q, q->final_us + FINAL_GRACE_US);
}

/* Processes of attempts that a newer one has superseded: the server refuses
 * them; they only take up room. */
static void end_superseded(struct qent *q)
{
    for (struct run *r = q->runs, *next; r; r = next) {
        next = r->next_of_ctr;
        if (r->attempt == 0 || r->attempt >= q->c.attempt ||
            r->attempt > q->revoked_upto || r->state == RUN_PREPARING)
            continue;
        if (run_lost(r))
            run_end(r);
        else
            run_kill(r, "superseded by a newer attempt");
    }
}

/* What says nothing about the present attempt: the exit of a superseded one
 * (its start command came late, and was refused); in the queue again,
 * everything before (the reply to our unlock may have been lost); and while
 * it is locked, the absence of a revoked one: the lock is kept and used again,
 * a start that never came about costs no attempt. */
static void forget_past(struct qent *q)
{
    if (q->exit_us > 0 && q->exit_attempt > 0 &&
        q->exit_attempt < q->c.attempt)
        q->exit_us = q->exit_attempt = 0;
    if (q->runs || !reconcile_fresh(q))
        return;
    if (q->c.state == CTR_QUEUED) {
        q->exit_us = q->exit_attempt = q->gone_us = 0;
        qent_forget_token(q);
    } else if (q->c.state == CTR_LOCKED && q->exit_attempt > 0 &&
               q->exit_attempt <= q->revoked_upto) {
        q->exit_us = q->exit_attempt = 0;
    }
}

/* A request that still waits at the gate, but is not right any more. */
static void withdraw(struct qent *q, enum reconcile_verdict verdict)
{
    bool right = q->op == QENT_REVOKE   ? verdict == RECONCILE_REVOKE
                 : q->op == QENT_UNLOCK ? verdict == RECONCILE_UNLOCK
                 : q->op == QENT_UPDATE
                     ? verdict == RECONCILE_CANCEL_LOST ||
                           verdict == RECONCILE_CANCEL_IMPOSSIBLE
                     : true;

    if (!right && !q->op_sent && gate_withdraw(q->d->gate, &q->gate))
        q->op = QENT_IDLE;
}

static void kill_all(struct qent *q, const char *why)
{
    for (struct run *r = q->runs, *next; r; r = next) {
        next = r->next_of_ctr;
        run_kill(r, why);
    }
}

static const char unwanted[] = "priority is 0";

/* Wanted again before it was hit. */
static void spare_all(struct qent *q)
{
    bool wanted = qent_ours(q) && q->c.priority > 0;

    for (struct run *r = q->runs; wanted && r; r = r->next_of_ctr)
        run_spare(r, unwanted);
}

static const char *kill_reason(const struct qent *q)
{
    if (q->missing)
        return "the container does not exist any more";
    if (ctr_state_final(q->c.state))
        return "the container has ended";
    if (q->c.state == CTR_QUEUED)
        return "the container was put back into the queue";
    return qent_ours(q) ? unwanted : "the container is not ours";
}

static void forget_lost(struct qent *q)
{
    for (struct run *r = q->runs, *next; r; r = next) {
        next = r->next_of_ctr;
        if (run_lost(r))
            run_end(r);
    }
}

static void look(struct qent *q)
{
    for (struct run *r = q->runs; r; r = r->next_of_ctr)
        if (r->w->state < WORKER_SHUTDOWN && r->w->list_us < q->revoked_us)
            watch_look(r->w);
}

static void start_prepared(struct qent *q)
{
    for (struct run *r = q->runs, *next; r; r = next) {
        next = r->next_of_ctr;
        if (r->state == RUN_PREPARING)
            start_go(r);
    }
}

static void cancel_impossible(struct qent *q)
{
    const char *text = q->c.invalid[0] != '\0' ? q->c.invalid : q->impossible;

    log_event(q->d->lg, LOG_WARN, "container can never run", "ContainerUUID",
              q->c.uuid, "Reason", text, NULL);
    qent_cancel(q, text, true);
}

/* Verdicts that are requests to the API server. */
static void request(struct qent *q, enum reconcile_verdict verdict)
{
    if (!qent_free_to_ask(q))
        return; /* marked again when it can be asked */
    switch (verdict) {
    case RECONCILE_READ_MOUNTS:
        qent_get(q);
        break;
    case RECONCILE_LOCK:
        qent_lock(q);
        break;
    case RECONCILE_PREPARE:
        qent_attempt(q);
        break;
    case RECONCILE_REVOKE:
        qent_revoke(q);
        break;
    case RECONCILE_UNLOCK:
        qent_unlock(q);
        break;
    case RECONCILE_CANCEL_IMPOSSIBLE:
        cancel_impossible(q);
        break;
    case RECONCILE_CANCEL_LOST:
        qent_cancel(q, "the process that supervised this container ended, or "
                       "was lost, before it recorded a result", false);
        break;
    default:
        break;
    }
}

void reconcile(struct qent *q)
{
    if (!core_acts(q->d) || q->d->phase < CORE_WORKING ||
        (q->read_us == 0 && !q->missing))
        return;
    note_final(q);
    end_superseded(q);
    forget_past(q);
    start_prepared(q);
    struct reconcile_view v = view_of(q);
    enum reconcile_verdict verdict = reconcile_decide(&v);

    withdraw(q, verdict);
    switch (verdict) {
    case RECONCILE_NOTHING:
        spare_all(q);
        break;
    case RECONCILE_DROP:
        cqueue_drop(q);
        break;
    case RECONCILE_READ:
        if (q->doubt_us == 0)
            cqueue_doubt(q);
        break;
    case RECONCILE_KILL:
        kill_all(q, kill_reason(q));
        break;
    case RECONCILE_FORGET_LOST:
        forget_lost(q);
        break;
    case RECONCILE_LOOK:
        look(q);
        break;
    default:
        request(q, verdict);
    }
}

void reconcile_instance_lost(struct qent *q)
{
    struct journal_rec rec = {.kind = JOURNAL_QUEUE};

    q->lost++;
    q->burns++;
    q->lost_recorded = true;
    text_copy(rec.key, q->c.uuid, sizeof rec.key);
    text_copy(rec.uuid, q->c.uuid, sizeof rec.uuid);
    rec.at_us = q->first_seen_us;
    rec.count = q->lost;
    jr_put(q->d->jr, &rec, NULL, NULL, NULL);
}
