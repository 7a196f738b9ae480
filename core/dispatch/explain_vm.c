/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why each instance is up, or going.
 *
 * The reasons for which an instance is needed are an open list: what runs on
 * it, what is mapped to it, idle time that is left, hold, a boot in progress,
 * a fault that is being judged. Creates under way are shown too, with an
 * empty id: they may cost money already.
 *
 * Called by the management API through dispatch.h. Reads only.
 */

#include <inttypes.h>
#include <stdio.h>

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/dispatch/core.h"
#include "core/dispatch/creates.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/run.h"
#include "core/dispatch/worker.h"
#include "core/model/itypes.h"

enum { REASON_MAX = 700 };

static const char *ago(struct dispatch *d, int64_t since_us, char out[24])
{
    int64_t s = (core_now(d) - since_us) / 1000000;

    return s > 0 ? text_format_duration(s * 1000, out, 24) : "0s";
}

static const char *until(struct dispatch *d, int64_t at_us, char out[24])
{
    int64_t s = (at_us - core_now(d)) / 1000000;

    return s > 0 ? text_format_duration(s * 1000, out, 24) : "0s";
}

static void tell_booting(struct worker *w, char *out)
{
    struct dispatch *d = w->d;
    char t[24], left[24];

    snprintf(out, REASON_MAX, "%s since %s, given up in %s: %s%s",
             w->state == WORKER_UNKNOWN ? "found after a restart, being "
                                          "looked at"
                                        : "booting",
             ago(d, w->created_us, t), until(d, w->boot_limit.at_us, left),
             w->address[0] == '\0'     ? "it has no address yet"
             : w->link_err.text[0] != 0 ? w->link_err.text
                                         : "connecting",
             w->behavior == DISPATCH_HOLD ? " (on hold)" : "");
}

static void tell_idle(struct worker *w, char *out)
{
    struct dispatch *d = w->d;
    char t[24], left[24];

    if (w->behavior == DISPATCH_HOLD)
        snprintf(out, REASON_MAX, "on hold, idle since %s",
                 ago(d, w->idle_us, t));
    else if (!session_up(w))
        snprintf(out, REASON_MAX, "idle, out of contact since %s: %s",
                 ago(d, w->good_us, t), w->link_err.text);
    else
        snprintf(out, REASON_MAX, "idle since %s, ends in %s unless it is "
                 "needed", ago(d, w->idle_us, t),
                 until(d, w->idle_timer.at_us, left));
}

static void tell_running(struct worker *w, char *out)
{
    struct dispatch *d = w->d;
    char t[24];
    int n = snprintf(out, REASON_MAX, "%zu container%s on it", w->runs.n,
                     w->runs.n == 1 ? "" : "s");

    if (w->behavior == DISPATCH_DRAIN)
        snprintf(out + n, REASON_MAX - (size_t) n, ", draining: %s",
                 w->why_down ? w->why_down : "asked for");
    else if (w->behavior == DISPATCH_HOLD)
        snprintf(out + n, REASON_MAX - (size_t) n, ", on hold");
    else if (!session_up(w))
        snprintf(out + n, REASON_MAX - (size_t) n, ", out of contact since "
                 "%s: %s", ago(d, w->good_us, t), w->link_err.text);
}

static void tell_going(struct worker *w, char *out)
{
    char t[24];
    const char *why = w->why_down ? w->why_down : "not needed";

    if (w->destroyed)
        snprintf(out, REASON_MAX, "%s; destroyed %s ago, still listed or not "
                 "yet confirmed gone", why, ago(w->d, w->destroy_us, t));
    else
        snprintf(out, REASON_MAX, "%s; being destroyed", why);
}

static void tell_worker(struct worker *w, char *out)
{
    switch (w->state) {
    case WORKER_UNKNOWN:
    case WORKER_BOOTING:
        tell_booting(w, out);
        break;
    case WORKER_IDLE:
        tell_idle(w, out);
        break;
    case WORKER_RUNNING:
        tell_running(w, out);
        break;
    default:
        tell_going(w, out);
    }
}

static const char *behavior_label(enum dispatch_behavior b)
{
    static const char *const labels[] = {"run", "hold", "drain"};

    return labels[b];
}

static void show_worker(struct worker *w,
                        void (*cb)(void *arg,
                                   const struct dispatch_instance *i),
                        void *arg)
{
    char reason[REASON_MAX];
    VEC(const char *) running = {0};

    for (size_t i = 0; i < w->runs.n; i++)
        VEC_PUSH(&running, w->runs.v[i]->uuid);
    tell_worker(w, reason);
    struct dispatch_instance out = {
        .backend = w->b->cfg->name, .id = w->id, .name = w->name,
        .address = w->address, .itype = w->type_name,
        .provider_type = w->type ? w->type->provider_type : "",
        .price = w->price > 0 ? w->price : 0,
        .state = worker_state_label(w->state),
        .idle_behavior = behavior_label(w->behavior),
        .reason = reason, .last_uuid = w->last_uuid,
        .running = running.v, .n_running = running.n,
        .last_busy_us = w->busy_wall_us, .created_us = w->created_wall_us,
    };

    cb(arg, &out);
    VEC_FINI(&running);
}

static void show_create(struct create *c,
                        void (*cb)(void *arg,
                                   const struct dispatch_instance *i),
                        void *arg)
{
    struct dispatch_instance out = {
        .backend = c->b->cfg->name, .id = "", .name = c->token,
        .address = "", .itype = c->type ? c->type->name : "",
        .provider_type = c->type ? c->type->provider_type : "",
        .price = c->type ? c->type->price : 0,
        .state = worker_state_label(WORKER_BOOTING),
        .idle_behavior = "run",
        .reason = c->state == CREATE_UNKNOWN
                      ? "the outcome of its create call is not known yet"
                      : "being created",
        .last_uuid = "",
    };

    cb(arg, &out);
}

void dispatch_each_instance(struct dispatch *d,
                            void (*cb)(void *arg,
                                       const struct dispatch_instance *i),
                            void *arg)
{
    const char *key = NULL;
    struct create *c;

    for (size_t i = 0; i < d->pool->list.n; i++)
        show_worker(d->pool->list.v[i], cb, arg);
    while ((c = map_next(d->pool->creates, &key)))
        if (c->seen < c->count)
            show_create(c, cb, arg);
}
