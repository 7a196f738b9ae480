/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a place in the plan to a process:
 *
 *   assigned -> attempt -> durable START record -> start command
 *
 * The attempt is usually there already: reconcile asks for it as soon as a
 * container is locked. It revokes whatever came before it. The record names
 * container, attempt and instance before anything is sent there; without it
 * a crash would leave nobody to look on that instance. The token travels by
 * stdin and is wiped once it is sent.
 *
 * What the command's end proves: status 0, the process exists; another
 * status, it does not, once a look that began afterwards confirms that;
 * never sent, nothing happened; anything else, it may still come (UNSEEN).
 *
 * Failures are charged to the instance: it gets no further starts for a
 * while, and after several in a row it is drained.
 *
 * Loop thread only.
 */

#include "core/dispatch/starts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/fault.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/run.h"
#include "core/dispatch/runner_cmd.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/stats.h"
#include "core/dispatch/worker.h"
#include "core/model/dispatch_cfg.h"

enum {
    FAILURES_MAX = 5,    /* in a row: drain */
    SPARE_CHANNELS = 2,  /* kept for looks and kills */
    SEEN_WITHIN_US = 5000000
};

bool start_begin(struct qent *q, struct worker *w)
{
    if (!core_acts_durably(q->d) || !worker_ready(w) || q->runs)
        return false;
    struct run *r = run_create(w, q->c.uuid, 0);

    q->exit_us = q->gone_us = 0;
    run_bind(r, q);
    worker_runs_changed(w);
    start_go(r);
    return true;
}

/* May it still be started? */
static bool still_wanted(const struct run *r)
{
    const struct qent *q = r->q;

    return q && q->c.state == CTR_LOCKED && qent_ours(q) &&
           q->c.priority > 0 && !q->missing;
}

static void give_back_token(struct run *r)
{
    struct qent *q = r->q;

    if (!q || q->token || r->attempt == 0 || r->attempt < q->c.attempt)
        return;
    q->attempt = r->attempt;
    q->token = r->token;
    r->token = NULL;
}

/* Nothing was sent: as if it had never been assigned. */
static void call_off(struct run *r)
{
    give_back_token(r);
    run_end(r);
}

static bool channel_free(const struct worker *w)
{
    int64_t max = w->d->cfg->max_ssh_per_instance;

    return max <= 0 || w->channels + SPARE_CHANNELS < max || w->channels == 0;
}

static void charge(struct worker *w, const struct err *why)
{
    struct dispatch *d = w->d;

    holdoff_hit(&w->start_hold, why, core_now(d), core_random(d));
    sched_wake_us(d, w->start_hold.until_us);
    if (++w->start_failures >= FAILURES_MAX && w->behavior == DISPATCH_RUN)
        worker_set_behavior(w, DISPATCH_DRAIN,
                            "containers cannot be started on it");
}

static void ended(struct run *r, const struct exec_result *res)
{
    struct worker *w = r->w;
    struct err err = res->r.err;

    r->ended_us = core_now(r->d);
    r->code = res->code;
    r->settled = r->settled || res->r.outcome == OP_DONE;
    if (res->r.outcome == OP_DONE && res->code == 0) {
        r->started = true;
        w->start_failures = 0;
        holdoff_clear(&w->start_hold);
        stats_started(r->q);
        log_event(r->d->lg, LOG_INFO, "crunch-run process started",
                  "ContainerUUID", r->uuid, "Instance", w->id, NULL);
        return;
    }
    if (res->r.outcome == OP_DONE)
        err_set(&err, ERR_TRANSIENT, "start command failed with exit code "
                "%d: %.200s", res->code, res->errout);
    log_failure(r->d->lg, LOG_WARN, &err, "cannot start container",
                "ContainerUUID", r->uuid, "Instance", w->id, NULL);
    charge(w, &err);
}

static void on_not_seen(void *arg)
{
    struct run *r = arg;

    if (r->state == RUN_SENT)
        watch_look(r->w);
}

static void on_started(void *arg, const struct exec_result *res)
{
    struct run *r = arg;
    struct worker *w = r->w;
    struct dispatch *d = r->d;

    core_op_end(d);
    r->in_flight = false;
    w->channels--;
    bool over = run_op_done(r);

    if (worker_unref(w))
        return;
    if (res->r.outcome == OP_DONE)
        worker_alive(w);
    start_next(w);
    if (over)
        return;
    ended(r, res);
    if (res->r.outcome == OP_REFUSED || res->r.outcome == OP_CANCELLED) {
        run_end(r); /* it was never sent */
        return;
    }
    if (r->state != RUN_SENT)
        return;
    if (r->code == 0 && res->r.outcome == OP_DONE)
        deadline_set(d->deadlines, &r->stale_timer,
                     core_now(d) + (w->no_watch ? 0 : SEEN_WITHIN_US),
                     on_not_seen, r);
    else
        watch_look(w);
}

static void send(struct run *r)
{
    struct dispatch *d = r->d;
    struct worker *w = r->w;
    CLEANUP(buf_fini) struct buf cmd;
    CLEANUP(buf_wipe) struct buf input;
    size_t ca = d->cfg->ca_bundle ? strlen(d->cfg->ca_bundle) : 0;
    struct exec_req req = {.deadline_ms = d->cfg->exec_deadline_ms};

    buf_init(&cmd, RUNNER_CMD_MAX);
    buf_init(&input, 2 * RUNNER_STDIN_MAX + 6 * ca);
    runner_cmd_start(d->cfg, worker_command_user(w), r->uuid, &cmd);
    if (runner_cmd_stdin(d->cfg, w->type, r->token, r->attempt, &input) ==
        -1) {
        struct err err;

        err_set(&err, ERR_CONFIG, "the start command's input is too long");
        log_failure(d->lg, LOG_ERROR, &err, "cannot start container",
                    "ContainerUUID", r->uuid, NULL);
        charge(w, &err);
        run_end(r);
        return;
    }
    req.command = cmd.data;
    req.input = input.data;
    req.input_len = input.len;
    r->state = RUN_SENT;
    r->in_flight = true;
    w->channels++;
    worker_ref(w);
    core_op_begin(d);
    d->port.exec->exec(d->port.exec, w->session, &req, on_started, r);
    secret_free(r->token);
    r->token = NULL;
    fault_hit(FAULT_AFTER_START);
}

static void on_intent(void *arg)
{
    struct run *r = arg;

    fault_hit(FAULT_AFTER_START_INTENT);
    start_go(r);
}

static void put_intent(struct run *r)
{
    struct journal_rec rec = {.kind = JOURNAL_START, .attempt = r->attempt};

    snprintf(rec.key, sizeof rec.key, "%s/%" PRId64, r->uuid, r->attempt);
    text_copy(rec.uuid, r->uuid, sizeof rec.uuid);
    text_copy(rec.backend, r->w->b->cfg->name, sizeof rec.backend);
    text_copy(rec.instance, r->w->id, sizeof rec.instance);
    rec.at_us = core_wall(r->d);
    r->intent = true;
    jr_put(r->d->jr, &rec, &r->wait, on_intent, r);
}

/* Take the attempt that is ready, or see to it that there will be one. */
static bool take_attempt(struct run *r)
{
    struct qent *q = r->q;

    if (!q->token) {
        if (qent_free_to_ask(q))
            qent_attempt(q);
        return false;
    }
    r->attempt = q->attempt;
    r->token = q->token;
    q->token = NULL;
    q->attempt = 0;
    return true;
}

void start_go(struct run *r)
{
    if (r->over || r->state != RUN_PREPARING || r->wait.pending ||
        !core_acts(r->d))
        return;
    if (!still_wanted(r) || r->w->state >= WORKER_SHUTDOWN ||
        r->w->behavior != DISPATCH_RUN) {
        call_off(r);
        return;
    }
    if (r->attempt == 0 && !take_attempt(r))
        return; /* reconcile calls again when the attempt is there */
    if (!r->intent) {
        put_intent(r);
        return;
    }
    if (!session_up(r->w) || !r->w->synced) {
        call_off(r);
        return;
    }
    if (channel_free(r->w))
        send(r);
}

void start_next(struct worker *w)
{
    for (size_t i = 0; i < w->runs.n; i++) {
        struct run *r = w->runs.v[i];

        if (r->state == RUN_PREPARING && r->intent) {
            start_go(r);
            if (i >= w->runs.n || w->runs.v[i] != r)
                i--;
        }
    }
}
