/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests about one container.
 *
 * One at a time per container, each through the gate. The answer changes the
 * entry and marks it; what follows is for reconcile to say. Three kinds of
 * trouble: refused because the state is not what we believed (read it again),
 * overloaded or broken (back off), outcome unknown (read it again: if it is
 * locked by our token, our lock was a success).
 *
 * A record that arrives while a write is under way is dropped by cqueue, and
 * so is one whose request began before the write ended: it may be older.
 *
 * Loop thread only. Tokens live here and in run.token, and nowhere else.
 */

#include "core/dispatch/qent.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/fault.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/sched.h"
#include "core/port/api.h"

bool qent_free_to_ask(const struct qent *q)
{
    return core_acts(q->d) && q->op == QENT_IDLE &&
           core_now(q->d) >= q->hold.until_us;
}

bool qent_attempt_open(const struct qent *q)
{
    int64_t last = q->attempt > q->c.attempt ? q->attempt : q->c.attempt;

    return last > q->revoked_upto;
}

void qent_forget_token(struct qent *q)
{
    secret_free(q->token);
    q->token = NULL;
    q->attempt = 0;
}

static void ask(struct qent *q, enum qent_op op, enum gate_rank rank,
                void (*go)(void *arg))
{
    q->op = op;
    q->op_sent = false;
    gate_enter(q->d->gate, &q->gate, rank, go, q);
}

static void sent(struct qent *q)
{
    q->op_sent = true;
    q->op_us = core_now(q->d);
    core_op_begin(q->d);
}

static void on_retry(void *arg)
{
    struct qent *q = arg;

    cqueue_mark(q);
    sched_mark(q->d);
}

/* Common end of every request. */
static void answered(struct qent *q, const struct op_result *r,
                     const char *what)
{
    struct dispatch *d = q->d;

    core_op_end(d);
    q->op = QENT_IDLE;
    gate_leave(d->gate, r);
    cqueue_mark(q);
    sched_mark(d);
    if (r->outcome == OP_DONE) {
        holdoff_clear(&q->hold);
        return;
    }
    log_failure(d->lg, LOG_DEBUG, &r->err, what, "ContainerUUID", q->c.uuid,
                NULL);
    cqueue_doubt(q);
    holdoff_hit_short(&q->hold, &r->err, core_now(d),
                      core_random(d), CORE_API_RETRY_MS);
    deadline_set(d->deadlines, &q->retry, q->hold.until_us, on_retry, q);
}

static void on_got(void *arg, const struct api_ctr_result *r)
{
    struct qent *q = arg;
    struct ctr c = r->c;

    answered(q, &r->r, "cannot read container");
    if (r->r.outcome == OP_DONE)
        cqueue_saw(q->d->queue, &c, q->op_us);
    else if (r->r.err.class == ERR_NOT_FOUND)
        q->missing = true;
}

static void go_get(void *arg)
{
    struct qent *q = arg;
    struct api_port *api = q->d->port.api;

    sent(q);
    api->get(api, q->c.uuid, q->d->cfg->api_deadline_ms, on_got, q);
}

void qent_get(struct qent *q)
{
    ask(q, QENT_GET, GATE_READ, go_get);
}

static void on_locked(void *arg, const struct api_ctr_result *r)
{
    struct qent *q = arg;

    answered(q, &r->r, "cannot lock container");
    if (r->r.outcome != OP_DONE)
        return;
    cqueue_wrote(q, r);
    if (qent_ours(q) && q->c.state == CTR_LOCKED)
        log_event(q->d->lg, LOG_INFO, "container locked", "ContainerUUID",
                  q->c.uuid, NULL);
}

static void go_lock(void *arg)
{
    struct qent *q = arg;
    struct api_port *api = q->d->port.api;

    sent(q);
    api->lock(api, q->c.uuid, q->d->cfg->api_deadline_ms, on_locked, q);
}

void qent_lock(struct qent *q)
{
    ask(q, QENT_LOCK, GATE_LOCK, go_lock);
}

static void on_unlocked(void *arg, const struct api_ctr_result *r)
{
    struct qent *q = arg;

    answered(q, &r->r, "cannot unlock container");
    if (r->r.outcome != OP_DONE)
        return;
    qent_forget_token(q);
    q->exit_us = q->gone_us = 0;
    q->burns = 0; /* the server has counted it */
    cqueue_wrote(q, r);
    log_event(q->d->lg, LOG_INFO, "container unlocked", "ContainerUUID",
              q->c.uuid, "State", ctr_state_name(q->c.state), NULL);
}

static void go_unlock(void *arg)
{
    struct qent *q = arg;
    struct api_port *api = q->d->port.api;

    sent(q);
    api->unlock(api, q->c.uuid, q->d->cfg->api_deadline_ms, on_unlocked, q);
}

void qent_unlock(struct qent *q)
{
    ask(q, QENT_UNLOCK, GATE_END, go_unlock);
}

static void on_attempt(void *arg, const struct api_attempt_result *r)
{
    struct qent *q = arg;

    fault_hit(FAULT_AFTER_ATTEMPT);
    answered(q, &r->r, "cannot make an attempt");
    if (r->r.outcome != OP_DONE)
        return;
    qent_forget_token(q);
    q->attempt = r->attempt;
    q->token = mem_strdup(r->api_token);
    if (q->c.attempt < r->attempt)
        q->c.attempt = r->attempt;
    /* It revoked every earlier one. */
    q->revoked_upto = r->attempt - 1;
    q->revoked_us = core_now(q->d);
    q->wrote_us = q->revoked_us;
}

static void go_attempt(void *arg)
{
    struct qent *q = arg;
    struct api_port *api = q->d->port.api;

    sent(q);
    api->attempt(api, q->c.uuid, q->d->cfg->api_deadline_ms, on_attempt, q);
}

void qent_attempt(struct qent *q)
{
    ask(q, QENT_ATTEMPT, GATE_START, go_attempt);
}

static void on_revoked(void *arg, const struct op_result *r)
{
    struct qent *q = arg;
    struct dispatch *d = q->d;

    answered(q, r, "cannot revoke the attempt");
    if (r->outcome != OP_DONE)
        return;
    qent_forget_token(q);
    /* It covers the attempts that we knew when we asked; c.attempt cannot
     * have grown meanwhile: only we make attempts, one request at a time. */
    q->revoked_upto = q->c.attempt;
    q->revoked_us = core_now(d);
    q->wrote_us = q->revoked_us;
    cqueue_doubt(q);
    log_event(d->lg, LOG_INFO, "attempt revoked", "ContainerUUID", q->c.uuid,
              NULL);
}

static void go_revoke(void *arg)
{
    struct qent *q = arg;
    struct api_port *api = q->d->port.api;

    sent(q);
    api->revoke(api, q->c.uuid, q->d->cfg->api_deadline_ms, on_revoked, q);
}

void qent_revoke(struct qent *q)
{
    ask(q, QENT_REVOKE, GATE_END, go_revoke);
}

static void on_cancelled(void *arg, const struct api_ctr_result *r)
{
    struct qent *q = arg;

    answered(q, &r->r, "cannot cancel container");
    if (r->r.outcome != OP_DONE)
        return;
    cqueue_wrote(q, r);
    log_event(q->d->lg, LOG_INFO, "container cancelled", "ContainerUUID",
              q->c.uuid, "Reason", q->cancel_text, NULL);
}

static void go_cancel(void *arg)
{
    struct qent *q = arg;
    struct api_port *api = q->d->port.api;
    struct api_update_req req = {
        .uuid = q->c.uuid,
        .set_cancelled = true,
        .error = q->cancel_text,
        .no_retry = q->cancel_no_retry,
        .deadline_ms = q->d->cfg->api_deadline_ms,
    };

    sent(q);
    api->update(api, &req, on_cancelled, q);
}

void qent_cancel(struct qent *q, const char *error, bool no_retry)
{
    if (q->cancel_text != error)
        mem_set_str(&q->cancel_text, error);
    q->cancel_no_retry = no_retry;
    ask(q, QENT_UPDATE, GATE_END, go_cancel);
}
