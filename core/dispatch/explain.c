/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why each container waits, and why each instance is up: the truth, in words.
 *
 * The plan leaves a reason code with every container that it judged; here the
 * code becomes a sentence with the names and figures of this moment. Nothing
 * is kept: texts are made when somebody asks, in a buffer on the stack.
 *
 * Called by the management API through dispatch.h. Reads only.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/dispatch/core.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/creates.h"
#include "core/dispatch/gate.h"
#include "core/dispatch/guard.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/run.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/worker.h"
#include "core/model/itypes.h"
#include "core/port/cloud.h"

enum { TEXT_MAX = 700 };

static const char *type_name(const struct itype *it)
{
    return it ? it->name : "suitable";
}

/* "for 12s" until a monotonic time; "" when that is not known. */
static const char *for_how_long(struct dispatch *d, int64_t until_us,
                                char out[40])
{
    char dur[24];
    int64_t left = until_us - core_now(d);

    out[0] = '\0';
    if (until_us > 0 && left > 0)
        snprintf(out, 40, ", next try in %s",
                 text_format_duration((left / 1000000 + 1) * 1000, dur,
                                      sizeof dur));
    return out;
}

/* What guard says at this moment about creating one of this type. */
static const char *cloud_says(struct dispatch *d, const struct itype *it,
                              char *out, size_t size)
{
    struct guard_backend gb[DISPATCH_BACKENDS];
    struct guard_in in = {.now_us = core_now(d), .journal_ok = true,
                          .backends = gb, .n_backends = d->pool->n};
    struct guard_place place = {.placement = ""};
    char when[40];

    for (size_t i = 0; i < d->pool->n; i++)
        pool_guard_view(&d->pool->b[i], &gb[i]);
    out[0] = '\0';
    if (!it || guard_create(&in, it, &place) == PLAN_NONE || !place.error)
        return out;
    snprintf(out, size, " (%s%s)", place.error->text,
             for_how_long(d, place.until_us, when));
    return out;
}

static const char *worker_name(struct dispatch *d, uint64_t serial)
{
    const struct worker *w = pool_by_serial(d->pool, serial);

    return w ? w->id : "";
}

/* A container that the plan did not see, or that is being dealt with. */
static void tell_busy(const struct qent *q, char *out)
{
    struct dispatch *d = q->d;
    char when[40];

    if (q->impossible)
        snprintf(out, TEXT_MAX, "can never run: %s", q->impossible);
    else if (core_now(d) < q->hold.until_us)
        snprintf(out, TEXT_MAX, "the API server refused or did not answer a "
                 "request about it%s",
                 for_how_long(d, q->hold.until_us, when));
    else if (d->phase < CORE_WORKING)
        snprintf(out, TEXT_MAX, "the dispatcher is starting");
    else
        snprintf(out, TEXT_MAX, "a request about it is under way");
}

/* One sentence per reason; {type}, {worker}, {cloud} (what the cloud said),
 * {creates}, {max} are filled in. Those that queue get their position put
 * before. */
static const struct {
    bool queues;
    const char *text;
} sentences[] = {
    [PLAN_NONE] = {false, NULL},
    [PLAN_BUSY] = {false, NULL},
    [PLAN_RUNNING] = {false, ""},
    [PLAN_STARTING] = {false, "being started on instance {worker}"},
    [PLAN_ON_HOLD] = {false, "on hold: its priority is 0"},
    [PLAN_LOCKING] = {false, "about to be locked, for an instance of type "
                             "{type}"},
    [PLAN_BOOTING] = {false, "waiting for instance {worker} of type {type} to "
                             "come into service"},
    [PLAN_CREATE] = {false, "waiting for a new instance of type {type} that is "
                            "being created"},
    [PLAN_NEXT_CREATE] = {true, "waiting for a new instance of type {type}; "
                                "{creates} create calls are in flight"},
    [PLAN_SUPERVISORS] = {true, "as many workflow supervisors run as "
                                "SupervisorFraction allows"},
    [PLAN_API_LIMIT] = {true, "the API server is overloaded, no more "
                              "containers are started for now"},
    [PLAN_MAX_INSTANCES] = {true, "waiting for room on an instance of type "
                                  "{type}; MaxInstances ({max}) is reached"},
    [PLAN_QUOTA] = {true, "the cloud account allows no more instances{cloud}"},
    [PLAN_CAPACITY] = {true, "the cloud has no more instances of type "
                             "{type}{cloud}"},
    [PLAN_CLOUD_BUSY] = {true, "create calls are held off after an "
                               "error{cloud}"},
    [PLAN_CLOUD_DOWN] = {true, "no cloud can be asked for an instance of type "
                               "{type}{cloud}"},
    [PLAN_JOURNAL] = {true, "the dispatcher cannot write its journal"},
    [PLAN_BEHIND] = {true, "other containers go first"},
};

static void put_value(const struct qent *q, const char *name, size_t n,
                      struct buf *out)
{
    const struct plan_reason *r = &q->pc.reason;
    struct dispatch *d = q->d;
    char says[600];

    if (n == 4 && memcmp(name, "type", n) == 0)
        buf_puts(out, type_name(r->type));
    else if (n == 6 && memcmp(name, "worker", n) == 0)
        buf_puts(out, worker_name(d, r->worker));
    else if (n == 5 && memcmp(name, "cloud", n) == 0)
        buf_puts(out, cloud_says(d, r->type, says, sizeof says));
    else if (n == 7 && memcmp(name, "creates", n) == 0)
        buf_printf(out, "%" PRId64, d->pool->creates_in_flight);
    else
        buf_printf(out, "%" PRId64, d->cfg->max_instances);
}

static void tell_why(const struct qent *q, char *out)
{
    const struct plan_reason *r = &q->pc.reason;
    const char *text = sentences[r->why].text;
    CLEANUP(buf_fini) struct buf b;

    buf_init(&b, TEXT_MAX - 1);
    out[0] = '\0';
    if (!text || q->impossible) {
        tell_busy(q, out);
        return;
    }
    if (sentences[r->why].queues)
        buf_printf(&b, "position %u: ", (unsigned) r->position);
    while (*text != '\0') {
        size_t n = strcspn(text, "{");

        buf_append(&b, text, n);
        text += n;
        if (*text == '\0')
            break;
        n = strcspn(text, "}");
        put_value(q, text + 1, n - 1, &b);
        text += n + 1;
    }
    text_copy(out, b.data, TEXT_MAX);
}

/* One that has, or may have, a process. */
static void tell_process(const struct qent *q, char *out)
{
    const struct run *r = q->runs;
    const char *where = r->w->id;

    if (r->kill_why)
        snprintf(out, TEXT_MAX, "being ended on instance %s: %s", where,
                 r->kill_why);
    else if (r->w->state >= WORKER_SHUTDOWN)
        snprintf(out, TEXT_MAX, "its instance %s is lost or ending; waiting "
                 "until no process of it can live there any more", where);
    else if (run_lost(r))
        snprintf(out, TEXT_MAX, "its process on instance %s is out of sight; "
                 "waiting until it is certain that none lives there", where);
    else if (q->c.state != CTR_RUNNING)
        snprintf(out, TEXT_MAX, "being started on instance %s", where);
    else if (!session_up(r->w))
        snprintf(out, TEXT_MAX, "instance %s, where it runs, is out of "
                 "contact", where);
}

static void tell_container(struct qent *q,
                           void (*cb)(void *arg,
                                      const struct dispatch_container *c),
                           void *arg)
{
    char status[TEXT_MAX];
    struct dispatch_container out = {
        .c = &q->c,
        .first_seen_us = q->first_seen_us,
        .status = status,
        .instance = "",
        .process = q->exit_us > 0 ? "exited" : "none",
    };
    static const struct need no_need;

    out.need = q->shape ? &q->shape->need : &no_need;
    out.types = q->shape ? q->shape->types : NULL;
    out.n_types = q->shape ? q->shape->n_types : 0;
    tell_why(q, status);
    if (q->runs) {
        out.instance = q->runs->w->id;
        out.process = run_lost(q->runs) ? "unseen"
                                        : run_state_label(q->runs->state);
        tell_process(q, status);
    } else if (q->exit_us > 0 && !ctr_state_final(q->c.state)) {
        snprintf(status, TEXT_MAX, "its process has ended; what became of the "
                                   "container is being found out");
    } else if (q->pc.reason.worker) {
        out.instance = worker_name(q->d, q->pc.reason.worker);
    }
    cb(arg, &out);
}

void dispatch_each_container(struct dispatch *d,
                             void (*cb)(void *arg,
                                        const struct dispatch_container *c),
                             void *arg)
{
    size_t n;
    struct qent *const *order = cqueue_order(d->queue, &n);

    sched_explain(d);
    for (size_t i = 0; i < n; i++)
        tell_container(order[i], cb, arg);
}

bool dispatch_find_container(struct dispatch *d, const char *uuid,
                             void (*cb)(void *arg,
                                        const struct dispatch_container *c),
                             void *arg)
{
    struct qent *q = cqueue_find(d->queue, uuid);

    if (!q)
        return false;
    sched_explain(d);
    tell_container(q, cb, arg);
    return true;
}
