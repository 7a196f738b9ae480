/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs: processes on instances, as far as we know.
 *
 *   PREPARING -> SENT -> LIVE -> (over)
 *                  \       \-> STALE -> (over)
 *                   \-> UNSEEN -> LIVE | (over)
 *
 * A run ends (run_end) on evidence only: its exit was seen; its start command
 * was never sent; its instance is gone; or its attempt was revoked and it was
 * looked for since (release.c). Until then it holds its place on the
 * instance and its START record in the journal.
 *
 * An operation may still be in flight when the evidence arrives (the exit of
 * a short job overtakes the reply to its own start command). The run is then
 * taken out of the books at once and freed when the last operation ends.
 *
 * Loop thread only.
 */

#include "core/dispatch/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/worker.h"

const char *run_state_label(enum run_state s)
{
    static const char *const labels[] = {
#define X(name, label) label,
        RUN_STATES(X)
#undef X
    };

    return labels[s];
}

struct run *run_create(struct worker *w, const char *uuid, int64_t attempt)
{
    struct run *r = MEM_NEW(struct run);

    r->d = w->d;
    r->w = w;
    r->attempt = attempt;
    text_copy(r->uuid, uuid, sizeof r->uuid);
    VEC_PUSH(&w->runs, r);
    text_copy(w->last_uuid, uuid, sizeof w->last_uuid);
    return r;
}

static void unbind(struct run *r)
{
    if (!r->q)
        return;
    for (struct run **p = &r->q->runs; *p; p = &(*p)->next_of_ctr)
        if (*p == r) {
            *p = r->next_of_ctr;
            break;
        }
    r->q = NULL;
}

/* Needs are fixed at admission: what is taken is what will be given back. */
static void take_need(struct run *r)
{
    if (!r->q->shape)
        return;
    r->need = r->q->shape->need;
    r->need_known = true;
}

void run_bind(struct run *r, struct qent *q)
{
    if (r->q == q)
        return;
    unbind(r);
    r->q = q;
    r->next_of_ctr = q->runs;
    q->runs = r;
    take_need(r);
}

void run_admitted(struct qent *q)
{
    for (struct run *r = q->runs; r; r = r->next_of_ctr)
        if (!r->need_known) {
            take_need(r);
            worker_runs_changed(r->w);
        }
}

void run_free(struct run *r)
{
    struct deadlines *ds = r->d->deadlines;

    unbind(r);
    deadline_stop(ds, &r->kill_timer);
    deadline_stop(ds, &r->stale_timer);
    jr_forget(r->d->jr, &r->wait);
    secret_free(r->token);
    free(r);
}

static void journal_over(struct run *r)
{
    char key[320];

    if (!r->intent)
        return;
    r->intent = false;
    snprintf(key, sizeof key, "%s/%" PRId64, r->uuid, r->attempt);
    jr_delete(r->d->jr, JOURNAL_START, key);
}

void run_end(struct run *r)
{
    struct worker *w = r->w;
    struct qent *q = r->q;

    if (r->over)
        return;
    r->over = true;
    journal_over(r);
    jr_forget(r->d->jr, &r->wait);
    deadline_stop(r->d->deadlines, &r->kill_timer);
    deadline_stop(r->d->deadlines, &r->stale_timer);
    for (size_t i = 0; i < w->runs.n; i++)
        if (w->runs.v[i] == r) {
            VEC_REMOVE(&w->runs, i);
            break;
        }
    unbind(r);
    if (q)
        cqueue_mark(q);
    worker_runs_changed(w);
    if (!r->in_flight && !r->kill_in_flight) {
        run_free(r);
        return;
    }
    /* The last callback frees it: run_op_done(). */
    r->next_of_ctr = r->d->pool->limbo;
    r->d->pool->limbo = r;
}

void run_free_limbo(struct pool *p)
{
    while (p->limbo) {
        struct run *r = p->limbo;

        p->limbo = r->next_of_ctr;
        run_free(r);
    }
}

bool run_op_done(struct run *r)
{
    if (!r->over || r->in_flight || r->kill_in_flight)
        return r->over;
    for (struct run **p = &r->d->pool->limbo; *p; p = &(*p)->next_of_ctr)
        if (*p == r) {
            *p = r->next_of_ctr;
            break;
        }
    run_free(r);
    return true;
}

void run_exited(struct run *r, const char *how)
{
    struct qent *q = r->q;

    log_event(r->d->lg, LOG_INFO, "crunch-run process ended",
              "ContainerUUID", r->uuid, "Instance", r->w->id, "Reason", how,
              NULL);
    if (q) {
        q->exit_us = core_now(r->d);
        q->exit_attempt = r->attempt;
        cqueue_doubt(q);
    }
    run_end(r);
}

void run_vanished(struct run *r, const char *how)
{
    struct qent *q = r->q;

    log_event(r->d->lg, LOG_INFO, "crunch-run process is gone",
              "ContainerUUID", r->uuid, "Instance", r->w->id, "Reason", how,
              NULL);
    if (q) {
        q->gone_us = core_now(r->d);
        cqueue_doubt(q);
    }
    run_end(r);
}

struct run *run_find(const struct worker *w, const char *uuid)
{
    for (size_t i = 0; i < w->runs.n; i++)
        if (strcmp(w->runs.v[i]->uuid, uuid) == 0)
            return w->runs.v[i];
    return NULL;
}

bool run_lost(const struct run *r)
{
    return r->state == RUN_UNSEEN || r->w->state >= WORKER_SHUTDOWN;
}
