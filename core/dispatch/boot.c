/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a trusted session to service, in three steps:
 *
 *   probe    the configured command says that the machine has booted
 *   deploy   the runner is there, checked by its sum, or is sent
 *   sync     the runner told what runs already (watch.c)
 *
 * A machine that we made is probed first. One that we found (after a restart)
 * is looked at first: what runs there matters more than whether its boot
 * probe likes it, and deploying does no harm. The steps are repeated with a
 * back-off until TimeoutBooting ends the hope; they are done again on a new
 * session only as far as needed (the runner may have been cleaned up).
 *
 * One boot command is in flight at a time. Loop thread only.
 */

#include <stdlib.h>

#include "core/base/buf.h"
#include "core/base/logger.h"
#include "core/base/text.h"
#include "core/dispatch/runner_cmd.h"
#include "core/dispatch/worker.h"
#include "core/model/dispatch_cfg.h"

enum { RETRY_US = 100000, RETRY_MAX_US = 1600000 };

enum boot_step { BOOT_PROBE, BOOT_CHECK, BOOT_SEND };

static void on_boot_timer(void *arg)
{
    boot_go(arg);
}

static void failed(struct worker *w, const struct err *why)
{
    struct dispatch *d = w->d;
    int64_t now = core_now(d);
    int64_t most = w->boot_hold.level < 4 ? RETRY_US << w->boot_hold.level
                                          : RETRY_MAX_US;

    worker_trouble(w, why);
    holdoff_hit(&w->boot_hold, why, now, core_random(d));
    if (w->boot_hold.until_us > now + most)
        w->boot_hold.until_us = now + most;
    deadline_set(d->deadlines, &w->boot_timer, w->boot_hold.until_us,
                 on_boot_timer, w);
}

static void probed(struct worker *w, const struct exec_result *res)
{
    struct err err;

    if (res->code == 0) {
        w->probed = true;
        worker_log(w, LOG_INFO, "boot probe succeeded", NULL);
        return;
    }
    err_set(&err, ERR_TRANSIENT, "boot probe failed with exit code %d: %.200s",
            res->code, res->errout);
    failed(w, &err);
}

static void sent(struct worker *w, const struct exec_result *res)
{
    struct err err;

    if (res->code == 0) {
        w->deployed = true;
        worker_log(w, LOG_INFO, "runner deployed", NULL);
        return;
    }
    err_set(&err, ERR_CONFIG, "cannot deploy the runner: exit code %d: "
            "%.200s", res->code, res->errout);
    failed(w, &err);
}

static void on_step(void *arg, const struct exec_result *res)
{
    struct worker *w = arg;

    core_op_end(w->d);
    w->channels--;
    w->boot_in_flight = false;
    if (worker_unref(w))
        return;
    if (res->r.outcome != OP_DONE) {
        failed(w, &res->r.err);
        return;
    }
    worker_alive(w);
    switch ((enum boot_step) w->boot_step) {
    case BOOT_PROBE:
        probed(w, res);
        break;
    case BOOT_CHECK:
        if (res->code == 0 && runner_cmd_deployed(w->d->cfg, res->out))
            w->deployed = true;
        else
            w->must_send = true;
        break;
    case BOOT_SEND:
        w->must_send = false;
        sent(w, res);
        break;
    }
    if (!deadline_armed(&w->boot_timer))
        boot_go(w);
}

static void run_step(struct worker *w, enum boot_step step)
{
    struct dispatch *d = w->d;
    CLEANUP(buf_fini) struct buf cmd;
    struct exec_req req = {.deadline_ms = d->cfg->exec_deadline_ms};
    char nonce[9];
    uint32_t random = core_random(d);

    buf_init(&cmd, RUNNER_CMD_MAX);
    switch (step) {
    case BOOT_PROBE:
        runner_cmd_boot_probe(d->cfg, &cmd);
        break;
    case BOOT_CHECK:
        runner_cmd_check(d->cfg, &cmd);
        break;
    case BOOT_SEND:
        text_hex(&random, sizeof random, nonce);
        runner_cmd_deploy(d->cfg, worker_command_user(w), nonce, &cmd);
        req.input = d->cfg->runner;
        req.input_len = d->cfg->runner_size;
        req.input_kept = true;
        break;
    }
    req.command = cmd.data;
    w->boot_step = step;
    w->boot_in_flight = true;
    w->channels++;
    worker_ref(w);
    core_op_begin(d);
    d->port.exec->exec(d->port.exec, w->session, &req, on_step, w);
}

void boot_reset(struct worker *w)
{
    deadline_stop(w->d->deadlines, &w->boot_timer);
    w->synced = false;
    w->deployed = false;
    w->must_send = false;
    watch_stop(w);
}

void boot_go(struct worker *w)
{
    bool look_first = w->state == WORKER_UNKNOWN;

    if (w->boot_in_flight || !session_up(w) || w->dead || !core_acts(w->d))
        return;
    if (core_now(w->d) < w->boot_hold.until_us &&
        deadline_armed(&w->boot_timer))
        return;
    deadline_stop(w->d->deadlines, &w->boot_timer);
    if (!w->d->cfg->runner)
        w->deployed = true;
    if (!w->probed && !look_first) {
        run_step(w, BOOT_PROBE);
    } else if (!w->deployed) {
        run_step(w, w->must_send ? BOOT_SEND : BOOT_CHECK);
    } else if (!w->synced) {
        watch_go(w);
    } else if (!w->probed) {
        run_step(w, BOOT_PROBE);
    } else {
        holdoff_clear(&w->boot_hold);
        worker_event(w, WORKER_EV_IN_SERVICE, NULL);
    }
}
