/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What operators may do, and how healthy we are.
 *
 * Hold, drain, run and kill go through the same events as everything else, so
 * that no order of an operator takes a path of its own.
 *
 * Called by the management API through dispatch.h, on the loop.
 */

#include <stdio.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/logger.h"
#include "core/base/map.h"
#include "core/dispatch/core.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/jr.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/run.h"
#include "core/dispatch/stats.h"
#include "core/dispatch/worker.h"

static struct worker *find(struct dispatch *d, const char *name)
{
    struct worker *w = map_get(d->pool->workers, name);

    for (size_t i = 0; !w && i < d->pool->list.n; i++)
        if (strcmp(d->pool->list.v[i]->id, name) == 0)
            w = d->pool->list.v[i];
    return w;
}

static int no_instance(const char *name, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no instance %s", name);
}

int dispatch_set_behavior(struct dispatch *d, const char *instance,
                          enum dispatch_behavior b, struct err *err)
{
    struct worker *w = find(d, instance);

    if (!w)
        return no_instance(instance, err);
    worker_set_behavior(w, b, "an operator asked for it");
    return 0;
}

int dispatch_kill_instance(struct dispatch *d, const char *instance,
                           const char *reason, struct err *err)
{
    struct worker *w = find(d, instance);

    if (!w)
        return no_instance(instance, err);
    log_event(d->lg, LOG_INFO, "instance is ended by an operator", "Instance",
              w->id, "Reason", reason, NULL);
    worker_event(w, WORKER_EV_KILL, reason);
    return 0;
}

int dispatch_kill_container(struct dispatch *d, const char *uuid,
                            const char *reason, struct err *err)
{
    struct qent *q = cqueue_find(d->queue, uuid);

    if (!q || !q->runs)
        return err_set(err, ERR_NOT_FOUND, "no process of container %s is "
                       "known", uuid);
    log_event(d->lg, LOG_INFO, "process is ended by an operator",
              "ContainerUUID", uuid, "Reason", reason, NULL);
    for (struct run *r = q->runs, *next; r; r = next) {
        next = r->next_of_ctr;
        run_kill(r, "an operator asked for it");
    }
    return 0;
}

static int64_t age_ms(struct dispatch *d, int64_t since_us)
{
    return since_us > 0 ? (core_now(d) - since_us) / 1000 : -1;
}

static int64_t oldest_list(struct dispatch *d)
{
    int64_t worst = -1;

    for (size_t i = 0; i < d->pool->n; i++) {
        int64_t age = age_ms(d, d->pool->b[i].listed_us);

        if (age < 0)
            return -1;
        if (age > worst)
            worst = age;
    }
    return worst;
}

static int64_t oldest_probe(struct dispatch *d)
{
    int64_t worst = -1;

    for (size_t i = 0; i < d->pool->list.n; i++) {
        const struct worker *w = d->pool->list.v[i];
        bool serves = w->state == WORKER_IDLE || w->state == WORKER_RUNNING;

        if (serves && age_ms(d, w->good_us) > worst)
            worst = age_ms(d, w->good_us);
    }
    return worst;
}

static const char *problem(struct dispatch *d,
                           const struct dispatch_health *h)
{
    const struct dispatch_cfg *cfg = d->cfg;

    if (d->phase < CORE_WORKING)
        return "starting";
    if (!h->journal_ok)
        return "the journal cannot be written";
    if (!h->api_ok)
        return "the API server does not answer";
    if (h->poll_age_ms < 0 || h->poll_age_ms > 12 * cfg->poll_ms + 60000)
        return "the queue was not polled for long";
    if (h->list_age_ms < 0 || h->list_age_ms > 3 * cfg->sync_ms + 60000)
        return "the instances were not listed for long";
    return "";
}

void dispatch_get_health(struct dispatch *d, struct dispatch_health *ret)
{
    *ret = (struct dispatch_health) {
        .poll_age_ms = age_ms(d, cqueue_polled_us(d->queue)),
        .list_age_ms = oldest_list(d),
        .probe_age_ms = oldest_probe(d),
        .journal_ok = jr_ok(d->jr),
        .api_ok = d->api_ok,
    };
    ret->problem = problem(d, ret);
}

void dispatch_update_metrics(struct dispatch *d)
{
    stats_update(d);
}
