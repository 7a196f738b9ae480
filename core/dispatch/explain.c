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

/* What keeps it waiting that is not on its way already. */
static void tell_limit(const struct qent *q, char *out)
{
    const struct plan_reason *r = &q->pc.reason;
    struct dispatch *d = q->d;
    char says[600];
    const char *type = type_name(r->type);
    unsigned n = r->position;

    switch (r->why) {
    case PLAN_SUPERVISORS:
        snprintf(out, TEXT_MAX, "position %u: as many workflow supervisors "
                 "run as SupervisorFraction allows", n);
        break;
    case PLAN_API_LIMIT:
        snprintf(out, TEXT_MAX, "position %u: the API server is overloaded, "
                 "no more containers are started for now", n);
        break;
    case PLAN_MAX_INSTANCES:
        snprintf(out, TEXT_MAX, "position %u: waiting for room on an "
                 "instance; MaxInstances (%" PRId64 ") is reached", n,
                 d->cfg->max_instances);
        break;
    case PLAN_QUOTA:
        snprintf(out, TEXT_MAX, "position %u: the cloud account allows no "
                 "more instances%s", n,
                 cloud_says(d, r->type, says, sizeof says));
        break;
    case PLAN_CAPACITY:
        snprintf(out, TEXT_MAX, "position %u: the cloud has no more instances "
                 "of type %s%s", n, type,
                 cloud_says(d, r->type, says, sizeof says));
        break;
    case PLAN_CLOUD_BUSY:
        snprintf(out, TEXT_MAX, "position %u: create calls are held off "
                 "after an error%s", n,
                 cloud_says(d, r->type, says, sizeof says));
        break;
    case PLAN_CLOUD_DOWN:
        snprintf(out, TEXT_MAX, "position %u: no cloud can be asked for an "
                 "instance of type %s%s", n, type,
                 cloud_says(d, r->type, says, sizeof says));
        break;
    case PLAN_JOURNAL:
        snprintf(out, TEXT_MAX, "position %u: the dispatcher cannot write its "
                 "journal", n);
        break;
    case PLAN_BEHIND:
        snprintf(out, TEXT_MAX, "position %u: other containers go first", n);
        break;
    default: /* tell_why() */
        break;
    }
}

static void tell_why(const struct qent *q, char *out)
{
    const struct plan_reason *r = &q->pc.reason;
    struct dispatch *d = q->d;
    const char *type = type_name(r->type);
    unsigned n = r->position;

    out[0] = '\0';
    switch (r->why) {
    case PLAN_RUNNING:
        break;
    case PLAN_STARTING:
        snprintf(out, TEXT_MAX, "being started on instance %s",
                 worker_name(d, r->worker));
        break;
    case PLAN_ON_HOLD:
        snprintf(out, TEXT_MAX, "on hold: its priority is 0");
        break;
    case PLAN_NONE:
    case PLAN_BUSY:
        tell_busy(q, out);
        break;
    case PLAN_OLD_PROCESS:
        snprintf(out, TEXT_MAX, "waiting for an earlier process of it to end");
        break;
    case PLAN_LOCKING:
        snprintf(out, TEXT_MAX, "about to be locked; next is an instance of "
                 "type %s", type);
        break;
    case PLAN_BOOTING:
        snprintf(out, TEXT_MAX, "waiting for instance %s of type %s to come "
                 "into service", worker_name(d, r->worker), type);
        break;
    case PLAN_CREATE:
        snprintf(out, TEXT_MAX, "waiting for a new instance of type %s that "
                 "is being created", type);
        break;
    case PLAN_NEXT_CREATE:
        snprintf(out, TEXT_MAX, "position %u: waiting for a new instance of "
                 "type %s; %" PRId64 " create calls are in flight, the limit "
                 "is %" PRId64, n, type, d->pool->creates_in_flight,
                 d->cfg->max_create_ops);
        break;
    default:
        tell_limit(q, out);
        break;
    }
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
        out.process = run_state_label(q->runs->state);
        if (q->c.state == CTR_QUEUED || q->c.state == CTR_LOCKED)
            snprintf(status, TEXT_MAX, "being started on instance %s",
                     out.instance);
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
    tell_container(q, cb, arg);
    return true;
}
