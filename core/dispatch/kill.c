/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ending a process on an instance.
 *
 * SIGTERM to the runner at once, then every TimeoutSignal, until the process
 * is seen to have ended. Never SIGKILL: it would leave a payload without its
 * supervisor. After TimeoutTERM the process counts as unkillable and its
 * instance is drained; when nothing but unkillable ones is left there, the
 * instance is destroyed, and that ends it.
 *
 * The kill command's exit status 0 says that the supervisor is gone, not
 * that the tree is: the look that follows decides.
 *
 * A run that was not sent yet is simply dropped. Loop thread only.
 */

#include "core/base/buf.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/run.h"
#include "core/dispatch/runner_cmd.h"
#include "core/dispatch/worker.h"

enum { SIGTERM_NUMBER = 15, BUSY_US = 100000 };

static void kill_step(void *arg);

static void again(struct run *r, int64_t us)
{
    struct dispatch *d = r->d;

    deadline_set(d->deadlines, &r->kill_timer, core_now(d) + us, kill_step,
                 r);
}

static void give_up(struct run *r)
{
    struct worker *w = r->w;

    r->unkillable = true;
    log_event(r->d->lg, LOG_WARN, "process cannot be ended", "ContainerUUID",
              r->uuid, "Instance", w->id, "Reason", r->kill_why, NULL);
    if (w->behavior == DISPATCH_RUN)
        worker_set_behavior(w, DISPATCH_DRAIN,
                            "a process on it cannot be ended");
    worker_runs_changed(w);
}

static void on_killed(void *arg, const struct exec_result *res)
{
    struct run *r = arg;
    struct worker *w = r->w;

    core_op_end(r->d);
    r->kill_in_flight = false;
    w->channels--;
    bool over = run_op_done(r);

    if (worker_unref(w) || res->r.outcome != OP_DONE)
        return;
    worker_alive(w);
    if (!over && res->code == 0)
        watch_look(w);
}

static void send_term(struct run *r)
{
    struct dispatch *d = r->d;
    struct worker *w = r->w;
    CLEANUP(buf_fini) struct buf cmd;
    struct exec_req req = {.deadline_ms = d->cfg->exec_deadline_ms};

    buf_init(&cmd, RUNNER_CMD_MAX);
    runner_cmd_kill(d->cfg, worker_command_user(w), SIGTERM_NUMBER, r->uuid,
                    &cmd);
    req.command = cmd.data;
    if (r->kill_since_us == 0)
        r->kill_since_us = core_now(d);
    r->kill_in_flight = true;
    w->channels++;
    worker_ref(w);
    core_op_begin(d);
    d->port.exec->exec(d->port.exec, w->session, &req, on_killed, r);
}

static void kill_step(void *arg)
{
    struct run *r = arg;
    struct dispatch *d = r->d;
    int64_t since = r->kill_since_us;

    if (!core_acts(d) || r->over)
        return;
    if (!r->unkillable && since > 0 &&
        core_now(d) - since >= d->cfg->timeout_term_ms * 1000)
        give_up(r);
    if (r->over)
        return;
    /* A start command that is still out: there may be nothing to hit yet. */
    if (r->in_flight || r->kill_in_flight || !session_up(r->w)) {
        again(r, BUSY_US);
        return;
    }
    again(r, d->cfg->timeout_signal_ms * 1000);
    send_term(r);
}

void run_kill(struct run *r, const char *why)
{
    struct dispatch *d = r->d;

    if (r->over)
        return;
    if (r->state == RUN_PREPARING && !r->in_flight) {
        run_end(r);
        return;
    }
    if (r->kill_why)
        return;
    r->kill_why = why;
    log_event(d->lg, LOG_INFO, "ending process", "ContainerUUID", r->uuid,
              "Instance", r->w->id, "Reason", why, NULL);
    again(r, 0);
}

void run_spare(struct run *r, const char *why)
{
    if (r->kill_why != why || r->kill_since_us > 0)
        return;
    r->kill_why = NULL;
    deadline_stop(r->d->deadlines, &r->kill_timer);
}
