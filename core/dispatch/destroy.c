/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Destroying an instance, as often as it takes.
 *
 * An accepted destroy is not an end: it is repeated every TimeoutShutdown
 * while lists still show the instance. A refused or unknown one is repeated
 * with a back-off, at a falling rate, and never stands in the way of others.
 *
 * Loop thread only.
 */

#include "core/base/logger.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/stats.h"
#include "core/dispatch/worker.h"
#include "core/port/cloud.h"

static void on_destroy_timer(void *arg)
{
    pool_destroy_instance(arg);
}

static void on_destroyed(void *arg, const struct op_result *r)
{
    struct worker *w = arg;
    struct dispatch *d = w->d;

    core_op_end(d);
    stats_cloud_op(d, "Destroy", r->outcome != OP_DONE);
    w->destroy_in_flight = false;
    if (worker_unref(w))
        return;
    int64_t now = core_now(d);

    if (r->outcome == OP_DONE) {
        w->destroyed = true;
        w->destroy_us = now;
        w->destroy_hold.until_us = now + d->cfg->timeout_shutdown_ms * 1000;
        w->b->list_fast = 0;
        pool_list_soon(w->b);
    } else {
        log_failure(d->lg, LOG_WARN, &r->err, "cannot destroy instance",
                    "Instance", w->id, NULL);
        holdoff_hit(&w->destroy_hold, &r->err, now, core_random(d));
    }
    deadline_set(d->deadlines, &w->destroy_timer, w->destroy_hold.until_us,
                 on_destroy_timer, w);
}

enum { NOT_OPEN_US = 1000000 };

/* Ask for it now, and again each time it is due, until the instance is
 * confirmed gone. */
void pool_destroy_instance(struct worker *w)
{
    struct dispatch *d = w->d;
    struct cloud_port *c = w->b->cloud;
    int64_t now = core_now(d), next = 0;

    if (w->destroy_in_flight || w->dead || w->state != WORKER_SHUTDOWN ||
        !core_acts(d))
        return;
    if (!w->b->open)
        next = now + NOT_OPEN_US;
    else if (now < w->destroy_hold.until_us)
        next = w->destroy_hold.until_us;
    else if (!pace_take(&w->b->pace, now, &next))
        ; /* next says when */
    else
        next = 0;
    if (next > 0) {
        deadline_set(d->deadlines, &w->destroy_timer, next, on_destroy_timer,
                     w);
        return;
    }
    w->destroy_in_flight = true;
    worker_ref(w);
    core_op_begin(d);
    c->destroy(c, w->id, d->cfg->cloud_deadline_ms, on_destroyed, w);
}
