/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An instance in our books: its record, its room, its state.
 *
 * Everything that happens to an instance arrives here as an event of
 * worker_fsm; what a change of state entails (timers, destroy, waking the
 * plan) is carried out in enter(). Sessions, boot steps, watching and the
 * cloud's own word live in session.c, boot.c, watch.c and pool.c.
 *
 * Idle time and drain are timers and events of this one instance: nothing
 * walks over all of them to find out.
 *
 * A worker outlives its last operation: operations carry it as argument, so
 * it is freed when it is dead and `refs` is 0. Loop thread only.
 */

#include "core/dispatch/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/logger.h"
#include "core/base/text.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/run.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/stats.h"
#include "core/model/itypes.h"
#include "core/port/cloud.h"

static void on_boot_limit(void *arg)
{
    struct worker *w = arg;
    struct dispatch *d = w->d;
    char why[160];

    snprintf(why, sizeof why, "it did not come into service in time%s%.110s",
             w->link_err.text[0] != '\0' ? ": " : "", w->link_err.text);
    worker_event(w, WORKER_EV_BOOT_TIMEOUT, why);
    /* On hold, or busy: judge again when that may have changed. */
    if (w->state < WORKER_IDLE && core_acts(d))
        deadline_set(d->deadlines, &w->boot_limit,
                     core_now(d) + d->cfg->timeout_booting_ms * 1000,
                     on_boot_limit, w);
}

struct worker *worker_create(struct backend *b, const char *id)
{
    struct worker *w = MEM_NEW(struct worker);
    struct dispatch *d = b->d;

    w->d = d;
    w->b = b;
    w->id = mem_strdup(id);
    w->key = mem_printf("%s/%s", b->cfg->name, id);
    w->name = mem_strdup(id);
    w->address = mem_strdup("");
    w->user = mem_strdup("");
    w->token = mem_strdup("");
    w->secret = mem_strdup("");
    w->pinned = mem_strdup("");
    w->listed_key = mem_strdup("");
    w->placement = mem_strdup("");
    w->type_name = mem_strdup("");
    w->price = -1;
    w->created_us = core_now(d);
    w->created_wall_us = core_wall(d);
    w->good_us = w->created_us;
    w->idle_us = w->created_us;
    w->link_lost_us = w->created_us;
    return w;
}

void worker_listed(struct worker *w)
{
    struct dispatch *d = w->d;
    int64_t now = core_now(d);

    w->listed = true;
    w->created_us = w->good_us = w->idle_us = w->link_lost_us = now;
    deadline_set(d->deadlines, &w->boot_limit,
                 now + d->cfg->timeout_booting_ms * 1000, on_boot_limit, w);
    if (w->state == WORKER_UNKNOWN)
        silence_mind(w);
}

void worker_free(struct worker *w)
{
    struct deadlines *ds = w->d->deadlines;
    struct deadline *all[] = {
        &w->destroy_timer, &w->tags_timer, &w->link_timer, &w->boot_timer,
        &w->boot_limit, &w->watch_timer, &w->list_timer, &w->silence,
        &w->idle_timer};
    char *texts[] = {
        w->key, w->id, w->name, w->address, w->user, w->token, w->secret,
        w->pinned, w->listed_key, w->placement, w->type_name, w->why_down,
        w->offered};

    for (size_t i = 0; i < MEM_COUNT(all); i++)
        deadline_stop(ds, all[i]);
    if (w->session)
        w->d->port.exec->close(w->d->port.exec, w->session);
    for (size_t i = 0; i < MEM_COUNT(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < w->tags.n; i++) {
        free(w->tags.v[i].key);
        free(w->tags.v[i].value);
    }
    VEC_FINI(&w->tags);
    VEC_FINI(&w->runs);
    free(w);
}

void worker_ref(struct worker *w)
{
    w->refs++;
}

bool worker_unref(struct worker *w)
{
    if (--w->refs > 0 || !w->dead)
        return w->dead;
    pool_bury(w);
    return true;
}

const char *worker_user(const struct worker *w)
{
    if (w->user[0] != '\0')
        return w->user;
    return w->b->cfg->ssh_user[0] != '\0' ? w->b->cfg->ssh_user : "root";
}

void worker_trouble(struct worker *w, const struct err *why)
{
    bool urgent = why->class == ERR_AUTH || why->class == ERR_CONFIG;

    if (strcmp(w->link_err.text, why->text) != 0)
        log_failure(w->d->lg, urgent ? LOG_WARN : LOG_DEBUG, why,
                    "instance cannot be used", "Instance", w->id, "Address",
                    w->address, NULL);
    w->link_err = *why;
}

const char *worker_command_user(const struct worker *w)
{
    return w->b->cloud->caps & CLOUD_CAP_NO_SUDO ? "root" : worker_user(w);
}

void worker_log(struct worker *w, int level, const char *msg,
                const char *reason)
{
    log_event(w->d->lg, level, msg, "Instance", w->id, "InstanceType",
              w->type_name, "Address", w->address, "WorkerState",
              worker_state_label(w->state), "Reason", reason, NULL);
}

void worker_alive(struct worker *w)
{
    w->good_us = core_now(w->d);
}

bool worker_empty(const struct worker *w)
{
    return w->runs.n == 0;
}

/* Until when an instance without a session is hoped for. */
static int64_t hoped_until(const struct worker *w)
{
    enum { PATIENCE_US = 10000000, ADOPTED_US = 60000000 };

    if (w->state == WORKER_BOOTING || w->link == LINK_UP)
        return INT64_MAX;
    return w->link_lost_us +
           (w->state == WORKER_UNKNOWN ? ADOPTED_US : PATIENCE_US);
}

static bool reachable(const struct worker *w)
{
    return core_now(w->d) < hoped_until(w);
}

int64_t worker_changes_us(const struct worker *w)
{
    int64_t now = core_now(w->d);
    int64_t hope = hoped_until(w), hold = w->start_hold.until_us, next = 0;

    if (w->state > WORKER_RUNNING)
        return 0;
    if (hope > now && hope < INT64_MAX)
        next = hope;
    if (hold > now && (next == 0 || hold < next))
        next = hold;
    return next;
}

bool worker_usable(const struct worker *w)
{
    return w->behavior == DISPATCH_RUN && w->state <= WORKER_RUNNING &&
           w->type && !w->broken && reachable(w);
}

bool worker_ready(const struct worker *w)
{
    return (w->state == WORKER_IDLE || w->state == WORKER_RUNNING) &&
           w->synced && session_up(w) &&
           core_now(w->d) >= w->start_hold.until_us;
}

static void on_idle(void *arg)
{
    struct worker *w = arg;

    if (worker_empty(w))
        worker_event(w, WORKER_EV_IDLE_TIMEOUT, "idle");
}

static void arm_idle(struct worker *w)
{
    deadline_set(w->d->deadlines, &w->idle_timer,
                 w->idle_us + w->d->cfg->timeout_idle_ms * 1000, on_idle, w);
}

/* Is there only what cannot be ended? */
static bool hopeless(const struct worker *w)
{
    for (size_t i = 0; i < w->runs.n; i++)
        if (!w->runs.v[i]->unkillable)
            return false;
    return true;
}

static void mark_containers(struct worker *w)
{
    for (size_t i = 0; i < w->runs.n; i++)
        if (w->runs.v[i]->q)
            cqueue_mark(w->runs.v[i]->q);
}

static void enter(struct worker *w, enum worker_state from, const char *why)
{
    struct dispatch *d = w->d;

    switch (w->state) {
    case WORKER_IDLE:
    case WORKER_RUNNING:
        if (from < WORKER_IDLE) {
            w->ready_us = core_now(d);
            deadline_stop(d->deadlines, &w->boot_limit);
            stats_in_service(w, from);
            worker_log(w, LOG_INFO, "instance in service", NULL);
        }
        silence_mind(w);
        /* Booting is not idling: what it was made for comes now. */
        if (from < WORKER_IDLE)
            w->idle_us = core_now(d);
        if (w->state == WORKER_IDLE)
            arm_idle(w);
        else
            deadline_stop(d->deadlines, &w->idle_timer);
        break;
    case WORKER_SHUTDOWN:
        if (why != w->why_down)
            mem_set_str(&w->why_down, why);
        stats_shutdown(w, from);
        worker_log(w, LOG_INFO, "shutting down instance", why);
        deadline_stop(d->deadlines, &w->boot_limit);
        deadline_stop(d->deadlines, &w->idle_timer);
        mark_containers(w);
        pool_destroy_instance(w);
        break;
    case WORKER_GONE:
        worker_log(w, LOG_INFO, "instance is gone", w->why_down);
        stats_gone(w, from);
        pool_remove(w);
        return;
    default:
        break;
    }
    worker_runs_changed(w);
}

void worker_event(struct worker *w, enum worker_event ev, const char *why)
{
    struct worker_view v = {
        .state = w->state,
        .hold = w->behavior == DISPATCH_HOLD,
        .busy = !worker_empty(w),
    };
    enum worker_state next = worker_fsm_next(&v, ev);

    if (w->dead || next == w->state || !core_acts(w->d))
        return;
    enum worker_state from = w->state;

    w->state = next;
    sched_mark(w->d);
    enter(w, from, why);
}

/* What is left for others: everything, minus the needs of its runs. */
static void recount(struct worker *w)
{
    if (!w->type) {
        w->free = (struct need) {0};
        return;
    }
    need_capacity(w->type, &w->free);
    for (size_t i = 0; i < w->runs.n; i++) {
        if (!w->runs.v[i]->need_known) {
            w->free = (struct need) {0};
            return;
        }
        need_sub(&w->free, &w->runs.v[i]->need);
    }
}

void worker_runs_changed(struct worker *w)
{
    recount(w);
    sched_mark(w->d);
    if (w->runs.n > 0) {
        w->busy_wall_us = core_wall(w->d);
        worker_event(w, WORKER_EV_BUSY, NULL);
    } else if (w->state == WORKER_RUNNING) {
        w->idle_us = core_now(w->d);
        w->busy_wall_us = core_wall(w->d);
        worker_event(w, WORKER_EV_EMPTY, NULL);
    }
    if (w->behavior == DISPATCH_DRAIN && hopeless(w) &&
        w->state < WORKER_SHUTDOWN &&
        (w->state != WORKER_UNKNOWN || w->synced))
        worker_event(w, WORKER_EV_DRAINED,
                     w->why_down ? w->why_down : "drained");
}

static const char *behavior_label(enum dispatch_behavior b)
{
    static const char *const labels[] = {"run", "hold", "drain"};

    return labels[b];
}

void worker_set_behavior(struct worker *w, enum dispatch_behavior b,
                         const char *why)
{
    if (w->behavior == b)
        return;
    w->behavior = b;
    mem_set_str(&w->why_down, b == DISPATCH_DRAIN ? why : NULL);
    log_event(w->d->lg, LOG_INFO, "idle behavior changed", "Instance", w->id,
              "IdleBehavior", behavior_label(b), "Reason", why, NULL);
    sched_mark(w->d);
    pool_fix_tags(w);
    if (b == DISPATCH_RUN && w->state == WORKER_IDLE)
        arm_idle(w);
    worker_runs_changed(w);
}
