/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The dispatcher as one object: its start, its turns, its end.
 *
 *   NEW -> REPLAY -> HELLO -> LOOKING -> WORKING -> STOPPING -> STOPPED
 *
 * REPLAY reads the journal: what we were about to do. HELLO asks the API
 * server who we are (the owner of every lock is compared with that). LOOKING
 * opens and lists the clouds and polls the queue, so that the first plan
 * knows what exists. WORKING acts.
 *
 * A turn: callbacks of ports and deadlines record what happened and mark it;
 * then, once, marked containers are reconciled, the plan is made and carried
 * out, and the journal gets what was written meanwhile.
 *
 * Stopping begins nothing new and waits for what is in flight (each operation
 * has a deadline); containers and instances are left as they are. Destroying
 * in mid-flight is legal when the ports have dropped their callbacks.
 *
 * Loop thread only.
 */

#include "core/dispatch/dispatch.h"

#include <stdlib.h>

#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/dispatch/core.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/gate.h"
#include "core/dispatch/holdoff.h"
#include "core/dispatch/jr.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/stats.h"
#include "core/port/api.h"
#include "core/port/clock.h"
#include "core/port/entropy.h"

int64_t core_now(struct dispatch *d)
{
    return deadlines_now(d->deadlines);
}

int64_t core_wall(struct dispatch *d)
{
    return d->port.clock->now_wall(d->port.clock);
}

uint32_t core_random(struct dispatch *d)
{
    uint32_t r;

    d->port.entropy->bytes(d->port.entropy, &r, sizeof r);
    return r;
}

bool core_acts(const struct dispatch *d)
{
    return d->phase >= CORE_HELLO && d->phase < CORE_STOPPING;
}

bool core_acts_durably(const struct dispatch *d)
{
    return core_acts(d) && jr_ok(d->jr);
}

static void on_finish(void *arg)
{
    struct dispatch *d = arg;

    if (d->ops > 0 || d->phase != CORE_STOPPING)
        return;
    d->phase = CORE_STOPPED;
    log_event(d->lg, LOG_INFO, "dispatcher stopped", NULL);
    if (d->stopped)
        d->stopped(d->stopped_arg);
}

void core_op_begin(struct dispatch *d)
{
    d->ops++;
}

void core_op_end(struct dispatch *d)
{
    d->ops--;
    if (d->ops == 0 && d->phase == CORE_STOPPING)
        deadline_set(d->deadlines, &d->finish, core_now(d), on_finish, d);
}

void core_fatal(struct dispatch *d, const struct err *err)
{
    if (d->fatal_said || d->phase >= CORE_STOPPING)
        return;
    d->fatal_said = true;
    log_failure(d->lg, LOG_ERROR, err, "cannot go on", NULL);
    if (d->fatal)
        d->fatal(d->arg, err);
}

static void on_turn(void *arg)
{
    struct dispatch *d = arg;

    if (core_acts(d)) {
        cqueue_work(d->queue);
        sched_work(d);
    }
    if (d->phase != CORE_STOPPED)
        jr_flush(d->jr);
}

struct dispatch *dispatch_create(const struct dispatch_cfg *cfg,
                                 const struct dispatch_ports *ports,
                                 struct logger *lg, struct metrics *metrics)
{
    struct dispatch *d = MEM_NEW(struct dispatch);

    d->cfg = cfg;
    d->port = *ports;
    d->lg = lg;
    d->deadlines = deadlines_create(ports->clock, on_turn, d);
    d->stats = stats_create(metrics);
    d->jr = jr_create(d);
    d->gate = gate_create(d);
    d->sched = sched_create(d);
    d->queue = cqueue_create(d);
    d->pool = pool_create(d);
    return d;
}

void dispatch_destroy(struct dispatch *d)
{
    if (!d)
        return;
    d->phase = CORE_STOPPED;
    pool_destroy(d->pool);
    cqueue_destroy(d->queue);
    sched_destroy(d->sched);
    gate_destroy(d->gate);
    jr_destroy(d->jr);
    stats_destroy(d->stats);
    deadline_stop(d->deadlines, &d->hello_retry);
    deadline_stop(d->deadlines, &d->finish);
    deadlines_destroy(d->deadlines);
    VEC_FINI(&d->replay);
    free(d);
}

/* --- start --------------------------------------------------------------- */

static bool all_looked(const struct dispatch *d)
{
    for (size_t i = 0; i < d->pool->n; i++)
        if (!d->pool->b[i].looked)
            return false;
    return true;
}

void core_look_done(struct dispatch *d)
{
    if (d->phase != CORE_LOOKING || !all_looked(d))
        return;
    d->phase = CORE_WORKING;
    log_event(d->lg, LOG_INFO, "dispatcher is working", NULL);
    cqueue_mark_all(d->queue);
    sched_mark(d);
    if (d->ready)
        d->ready(d->arg);
}

static void hello(void *arg);

static void on_whoami(void *arg, const struct api_whoami_result *res)
{
    struct dispatch *d = arg;
    struct err err = res->r.err;

    core_op_end(d);
    if (d->phase != CORE_HELLO)
        return;
    if (res->r.outcome == OP_DONE && !(res->features & API_ATTEMPTS))
        err_set(&err, ERR_UNSUPPORTED, "this API server has no attempts: "
                "containers could not be released safely");
    if (res->r.outcome == OP_DONE && (res->features & API_ATTEMPTS)) {
        text_copy(d->token_uuid, res->token_uuid, sizeof d->token_uuid);
        d->features = res->features;
        d->api_ok = true;
        d->phase = CORE_LOOKING;
        cqueue_start(d->queue);
        pool_start(d->pool);
        core_look_done(d);
    } else if (res->r.outcome == OP_DONE || err.class == ERR_AUTH) {
        core_fatal(d, &err);
    } else {
        log_failure(d->lg, LOG_WARN, &err, "API server does not answer",
                    NULL);
        deadline_set(d->deadlines, &d->hello_retry, core_now(d) +
                     1000 * holdoff_delay_ms(err.class, d->hello_level++,
                                             err.retry_ms, core_random(d)),
                     hello, d);
    }
}

static void hello(void *arg)
{
    struct dispatch *d = arg;
    struct api_port *api = d->port.api;

    if (d->phase != CORE_HELLO)
        return;
    core_op_begin(d);
    api->whoami(api, d->cfg->api_deadline_ms, on_whoami, d);
}

static void on_replay_rec(void *arg, const struct journal_rec *rec)
{
    struct dispatch *d = arg;

    /* They come ordered by kind, CREATE and START first; instances are needed
     * before what refers to them. */
    VEC_PUSH(&d->replay, *rec);
}

static void replay(struct dispatch *d, enum journal_kind kind)
{
    for (size_t i = 0; i < d->replay.n; i++) {
        if (d->replay.v[i].kind != kind)
            continue;
        if (kind == JOURNAL_QUEUE)
            cqueue_replay(d->queue, &d->replay.v[i]);
        else
            pool_replay(d->pool, &d->replay.v[i]);
    }
}

static void on_replay_end(void *arg, const struct op_result *r)
{
    struct dispatch *d = arg;

    if (d->phase != CORE_REPLAY)
        return;
    if (r->outcome != OP_DONE) {
        core_fatal(d, &r->err);
        return;
    }
    d->phase = CORE_HELLO;
    replay(d, JOURNAL_QUEUE);
    replay(d, JOURNAL_INSTANCE);
    replay(d, JOURNAL_START);
    replay(d, JOURNAL_CREATE);
    VEC_FINI(&d->replay);
    hello(d);
}

void dispatch_start(struct dispatch *d, void (*ready)(void *arg),
                    void (*fatal)(void *arg, const struct err *err),
                    void *arg)
{
    d->ready = ready;
    d->fatal = fatal;
    d->arg = arg;
    d->phase = CORE_REPLAY;
    jr_replay(d->jr, on_replay_rec, on_replay_end, d);
}

/* --- stop ---------------------------------------------------------------- */

void dispatch_stop(struct dispatch *d, void (*stopped)(void *arg), void *arg)
{
    if (d->phase >= CORE_STOPPING)
        return;
    d->phase = CORE_STOPPING;
    d->stopped = stopped;
    d->stopped_arg = arg;
    log_event(d->lg, LOG_INFO, "dispatcher stops", NULL);
    deadline_stop(d->deadlines, &d->hello_retry);
    cqueue_stop(d->queue);
    pool_stop(d->pool);
    if (d->ops == 0)
        deadline_set(d->deadlines, &d->finish, core_now(d), on_finish, d);
}
