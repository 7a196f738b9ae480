/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What runs on an instance: a stream of events, or looks.
 *
 * The stream (`--watch`) names everything alive, says `sync`, then tells each
 * change as it happens, and a beat now and then. A look (`--list`) tells
 * everything alive at one moment. Both end in the same place: settle(), which
 * compares what was named with what we have on the books. A runner that knows
 * no `--watch` is looked at again and again, often just after a start.
 *
 * What an absence means depends on when the look began:
 *   - the start command had ended before, or the process had been seen: it is
 *     over;
 *   - the attempt was revoked before: no payload of it lives or can come;
 *   - else: unseen. It may still start; release.c takes it from there.
 *
 * The end of a stream means unknown, never exit. Every command has a deadline;
 * a look that is not answered closes the session. (When looks are due because
 * nothing is heard, silence.c says.)
 *
 * Loop thread only.
 */

#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/logger.h"
#include "core/base/text.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/probe.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/run.h"
#include "core/dispatch/runner_cmd.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/stats.h"
#include "core/dispatch/worker.h"
#include "core/model/dispatch_cfg.h"

enum {
    LIST_FIRST_US = 1000000, /* between looks, after something happened */
};

static void on_stale(void *arg)
{
    struct run *r = arg;
    struct worker *w = r->w;

    if (r->state != RUN_STALE || w->behavior != DISPATCH_RUN)
        return;
    worker_log(w, LOG_WARN, "a dead supervisor's lock stays held", r->uuid);
    worker_set_behavior(w, DISPATCH_DRAIN, "a process on it lost its "
                                           "supervisor");
}

/* A process of this container that is not r's: nothing of r was sent yet, or
 * it is of another attempt, whose start command came late. The server refuses
 * it, and it ends by itself. */
static bool is_another(const struct run *r, int64_t attempt)
{
    return r->state == RUN_PREPARING ||
           (attempt > 0 && r->attempt > 0 && attempt != r->attempt);
}

/* A process was named. */
static void seen(struct worker *w, const char *uuid, int64_t attempt,
                 bool stale)
{
    struct dispatch *d = w->d;
    struct run *r = run_find(w, uuid);

    if (r && is_another(r, attempt))
        return;
    if (!r) {
        r = run_create(w, uuid, attempt);
        run_bind(r, cqueue_need(d->queue, uuid));
        log_event(d->lg, LOG_INFO, "crunch-run process detected",
                  "ContainerUUID", uuid, "Instance", w->id, NULL);
        worker_runs_changed(w);
    }
    if (r->attempt == 0)
        r->attempt = attempt;
    /* A look names no attempts: it may be the late process of an older one,
     * while the start command of this one is still to come. */
    if (attempt > 0 || r->attempt <= 1)
        r->settled = true;
    r->seen_us = core_now(d);
    enum run_state now = stale ? RUN_STALE : RUN_LIVE;

    if (r->state == now)
        return;
    if (stale)
        deadline_set(d->deadlines, &r->stale_timer, core_now(d) +
                     d->cfg->timeout_stale_run_lock_ms * 1000, on_stale, r);
    else
        deadline_stop(d->deadlines, &r->stale_timer);
    r->state = now;
    if (r->q)
        cqueue_mark(r->q);
}

/* A run was not named by a look that began at `begun`. */
static void absent(struct run *r, int64_t begun)
{
    struct qent *q = r->q;

    if (r->state == RUN_PREPARING)
        return;
    if (r->state == RUN_SENT && r->ended_us == 0 && r->in_flight)
        return; /* its command is still out: nothing to conclude */
    if (r->ended_us > begun && r->seen_us == 0) {
        watch_look(r->w); /* the look is older than the start */
        return;
    }
    if (r->settled && r->ended_us <= begun) {
        if (r->seen_us == 0 && r->code != 0)
            run_end(r); /* it never started */
        else if (r->seen_us == 0 && !r->started)
            run_vanished(r, "the instance was rebooted before it was seen");
        else
            run_exited(r, "not listed any more");
    } else if (q && q->revoked_us > 0 && q->revoked_us <= begun &&
               r->attempt <= q->revoked_upto) {
        run_vanished(r, "absent after its attempt was revoked");
    } else if (r->state != RUN_UNSEEN) {
        r->state = RUN_UNSEEN;
        log_event(r->d->lg, LOG_WARN, "process out of sight", "ContainerUUID",
                  r->uuid, "Instance", r->w->id, NULL);
        if (q) {
            cqueue_doubt(q);
            cqueue_mark(q);
        }
    }
}

/* A look that began at `begun` is complete: every process that was alive then
 * has been seen since. */
static void settle(struct worker *w, int64_t begun)
{
    for (size_t i = w->runs.n; i-- > 0;)
        if (w->runs.v[i]->seen_us < begun)
            absent(w->runs.v[i], begun);
    if (begun > w->looked_us)
        w->looked_us = begun;
    w->synced = true;
    worker_alive(w);
    sched_mark(w->d);
}

static void broken(struct worker *w)
{
    if (w->broken)
        return;
    w->broken = true;
    worker_log(w, LOG_WARN, "instance reports itself broken", NULL);
    if (w->behavior == DISPATCH_RUN)
        worker_set_behavior(w, DISPATCH_DRAIN, "it reports itself broken");
    sched_mark(w->d);
}

/* --- looks --------------------------------------------------------------- */

static void look_now(struct worker *w);

static void on_list_timer(void *arg)
{
    look_now(arg);
}

static void look_in(struct worker *w, int64_t us)
{
    deadline_set(w->d->deadlines, &w->list_timer, core_now(w->d) + us,
                 on_list_timer, w);
}

/* Without a stream: the longer nothing happened, the rarer. */
static int64_t look_pause(const struct worker *w)
{
    int64_t most = w->d->cfg->probe_ms * 1000;
    int64_t quiet = core_now(w->d) - w->event_us;

    if (quiet < LIST_FIRST_US)
        quiet = LIST_FIRST_US;
    return quiet < most ? quiet : most;
}

/* What a look names that is not on the books may have ended since it began:
 * its exit was told by the stream meanwhile. Then look again. */
static bool outdated(struct worker *w, const char *uuid)
{
    return w->exit_us >= w->list_us && !run_find(w, uuid);
}

static void take_list(struct worker *w, const struct probe_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (outdated(w, l->v[i].uuid))
            w->list_wanted = true;
        else
            seen(w, l->v[i].uuid, 0, l->v[i].stale);
    }
    settle(w, w->list_us);
    if (l->broken)
        broken(w);
}

static void on_list(void *arg, const struct exec_result *res)
{
    struct worker *w = arg;
    struct probe_list l = {0};
    struct err err;

    core_op_end(w->d);
    w->channels--;
    w->list_in_flight = false;
    if (worker_unref(w))
        return;
    bool ok = res->r.outcome == OP_DONE && res->code == 0 &&
              res->out_len < EXEC_OUT_MAX &&
              probe_parse_list(res->out, res->out_len,
                               w->d->cfg->cluster_id, &l, &err) == 0;

    stats_probe(w, ok, core_now(w->d) - w->list_us);
    if (ok) {
        take_list(w, &l);
        probe_list_fini(&l);
        boot_go(w);
    } else if (res->r.outcome != OP_DONE) {
        session_close(w, "a look was not answered");
        return;
    } else if (res->code != 0) {
        w->deployed = false; /* perhaps it was cleaned up */
        w->list_wanted = true;
        boot_go(w);
        return;
    }
    if (w->list_wanted || !ok)
        look_in(w, ok ? 0 : LIST_FIRST_US);
    else if (w->no_watch && session_up(w))
        look_in(w, look_pause(w));
}

static bool may_look(const struct worker *w)
{
    return session_up(w) && w->deployed && !w->dead && !w->list_in_flight &&
           core_acts(w->d);
}

static void look_now(struct worker *w)
{
    struct dispatch *d = w->d;
    CLEANUP(buf_fini) struct buf cmd = {0};
    struct exec_req req = {.deadline_ms = d->cfg->exec_deadline_ms};

    int64_t now = core_now(d), next = 0;

    buf_init(&cmd, RUNNER_CMD_MAX);
    if (!may_look(w))
        return;
    if (!pace_take(&d->pool->probes, now, &next)) {
        look_in(w, next - now);
        return;
    }
    runner_cmd_list(d->cfg, worker_command_user(w), &cmd);
    req.command = cmd.data;
    w->list_wanted = false;
    w->list_in_flight = true;
    w->list_us = core_now(d);
    w->channels++;
    worker_ref(w);
    core_op_begin(d);
    d->port.exec->exec(d->port.exec, w->session, &req, on_list, w);
}

void watch_look(struct worker *w)
{
    w->list_wanted = true;
    w->event_us = core_now(w->d);
    if (!w->list_in_flight && session_up(w) && w->deployed)
        look_in(w, 0);
}

/* --- the stream ---------------------------------------------------------- */

static void on_run_gone(struct worker *w, const struct probe_event *e)
{
    struct run *r = run_find(w, e->uuid);

    w->exit_us = core_now(w->d);
    /* An exit of an older attempt is not the exit of this one. */
    if (!r || r->state == RUN_PREPARING ||
        (e->attempt > 0 && r->attempt > 0 && e->attempt != r->attempt))
        return;
    run_exited(r, "exit reported");
}

static void on_event(struct worker *w, const struct probe_event *e)
{
    switch (e->kind) {
    case PROBE_HELLO:
        w->watch_hello = true;
        if (w->boot_id[0] != '\0' && strcmp(w->boot_id, e->boot) != 0)
            watch_rebooted(w);
        text_copy(w->boot_id, e->boot, sizeof w->boot_id);
        break;
    case PROBE_RUN:
    case PROBE_START:
        seen(w, e->uuid, e->attempt, false);
        break;
    case PROBE_STALE:
        seen(w, e->uuid, e->attempt, true);
        break;
    case PROBE_SYNC:
        settle(w, w->watch_us);
        holdoff_clear(&w->watch_hold);
        boot_go(w);
        break;
    case PROBE_EXIT:
        on_run_gone(w, e);
        break;
    case PROBE_BROKEN:
        broken(w);
        break;
    case PROBE_BEAT:
    case PROBE_OTHER:
        break;
    }
}

static void on_line(void *arg, const char *line, size_t n)
{
    struct worker *w = arg;
    struct probe_event e;
    struct err err;

    if (w->dead || w->watch_stopped || !core_acts(w->d))
        return;
    if (probe_parse_event(line, n, w->d->cfg->cluster_id, &e, &err) == -1) {
        log_failure(w->d->lg, LOG_DEBUG, &err, "strange line from instance",
                    "Instance", w->id, NULL);
        return;
    }
    worker_alive(w);
    on_event(w, &e);
}

static void on_watch_timer(void *arg)
{
    watch_go(arg);
}

/* Two streams that end without a word: this runner has no such option. */
static void judge_runner(struct worker *w, const struct op_result *r)
{
    if (w->watch_hello || r->outcome != OP_DONE || ++w->watch_refused < 2)
        return;
    w->no_watch = true;
    worker_log(w, LOG_INFO, "its runner has no --watch: polling", NULL);
}

static void on_end(void *arg, const struct op_result *r)
{
    struct worker *w = arg;
    struct dispatch *d = w->d;
    bool stopped = w->watch_stopped;
    struct err err;

    core_op_end(d);
    w->watch = NULL;
    w->watch_stopped = false;
    if (worker_unref(w) || !session_up(w) || !core_acts(d))
        return;
    if (stopped) {
        boot_go(w);
        return;
    }
    judge_runner(w, r);
    w->synced = false;
    watch_look(w);
    if (w->no_watch)
        return;
    err_set(&err, ERR_TRANSIENT, "the stream of events ended");
    holdoff_hit(&w->watch_hold, &err, core_now(d), core_random(d));
    deadline_set(d->deadlines, &w->watch_timer, w->watch_hold.until_us,
                 on_watch_timer, w);
}

void watch_stop(struct worker *w)
{
    struct exec_port *x = w->d->port.exec;

    deadline_stop(w->d->deadlines, &w->watch_timer);
    deadline_stop(w->d->deadlines, &w->list_timer);
    if (w->watch && !w->watch_stopped) {
        w->watch_stopped = true;
        x->op_cancel(x, w->watch);
    }
}

static void open_stream(struct worker *w)
{
    struct dispatch *d = w->d;
    CLEANUP(buf_fini) struct buf cmd;

    buf_init(&cmd, RUNNER_CMD_MAX);
    runner_cmd_watch(d->cfg, worker_command_user(w), &cmd);
    w->watch_hello = false;
    w->watch_us = core_now(d);
    worker_ref(w);
    core_op_begin(d);
    w->watch = d->port.exec->stream(d->port.exec, w->session, cmd.data,
                                    on_line, on_end, w);
}

void watch_go(struct worker *w)
{
    if (!session_up(w) || w->dead || !core_acts(w->d) || !w->deployed)
        return;
    if (w->no_watch) {
        if (!w->list_in_flight && !deadline_armed(&w->list_timer))
            look_in(w, 0);
        return;
    }
    if (!w->watch)
        open_stream(w);
}

/* The machine started anew: nothing of before lives, no command of before
 * can still take effect. */
void watch_rebooted(struct worker *w)
{
    worker_log(w, LOG_WARN, "instance was rebooted", NULL);
    for (size_t i = 0; i < w->runs.n; i++) {
        struct run *r = w->runs.v[i];

        if (r->state != RUN_PREPARING && !r->in_flight)
            r->settled = true;
    }
}
