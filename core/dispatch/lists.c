/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a cloud lists, and what it does not.
 *
 * A list that is complete and began after we knew of an instance, and does
 * not name it, is one miss. Several misses in a row, spread over time, and a
 * grace after the create, make it gone; a session to it that answers overrules
 * any list. So a single bad list (empty, partial, late, from the
 * wrong place) ends nothing and cancels nothing.
 *
 * Lists are rare while nothing is open (SyncInterval), and quick, with a
 * growing pause, while something is: an instance without an address, a create
 * of unknown outcome, a destroy to be confirmed, a miss to be checked. One list
 * settles many of these, so where calls are limited it goes first: destroys,
 * which are repeated until a list confirms them, would keep it out for ever.
 *
 * Loop thread only.
 */

#include "core/dispatch/lists.h"

#include "core/base/logger.h"
#include "core/base/vec.h"
#include "core/dispatch/creates.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/stats.h"
#include "core/dispatch/worker.h"
#include "core/model/dispatch_cfg.h"
#include "core/port/cloud.h"

enum {
    FAST_US = 250000,        /* first pause of quick lists */
    FAST_STEPS = 5,          /* doubled so often: 8 s */
    SPREAD_US = 1000000,     /* two misses count only so far apart */
    SPREAD_ENDED_US = 200000 /* when we destroyed it ourselves */
};

static void list_now(struct backend *b);

static void on_timer(void *arg)
{
    struct backend *b = arg;

    if (b->open)
        list_now(b);
    else
        lists_open(b);
}

static void list_at(struct backend *b, int64_t at_us)
{
    if (!deadline_armed(&b->timer) || at_us < b->timer.at_us)
        deadline_set(b->d->deadlines, &b->timer, at_us, on_timer, b);
}

static void looked(struct backend *b)
{
    if (b->looked)
        return;
    b->looked = true;
    core_look_done(b->d);
}

/* A session that is up overrules the list, as long as looks are answered: one
 * is made, and its deadline ends a session that only seems to be up. */
static bool lives(struct worker *w)
{
    if (!session_up(w) || w->state >= WORKER_SHUTDOWN)
        return false;
    if (core_now(w->d) - w->good_us > SPREAD_US)
        watch_look(w);
    return true;
}

/* The list that began at b->list_us did not name it. True: it is gone, and w
 * with it. */
static bool missed(struct worker *w)
{
    struct dispatch *d = w->d;
    const struct dispatch_cfg *cfg = d->cfg;
    int64_t now = core_now(d);
    int64_t spread = w->destroyed ? SPREAD_ENDED_US : SPREAD_US;

    if (w->absent > 0 && now - w->absent_us < spread)
        return false;
    w->absent++;
    w->absent_us = now;
    if (lives(w)) {
        if (w->absent == 1)
            worker_log(w, LOG_WARN, "the cloud does not list an instance "
                                    "that lives", NULL);
        return false;
    }
    if (w->absent < (cfg->absent_lists > 0 ? cfg->absent_lists : 1))
        return false;
    if (!w->destroyed && now - w->created_us < cfg->absent_grace_ms * 1000)
        return false;
    worker_event(w, WORKER_EV_ABSENT, NULL);
    return true;
}

static void count_misses(struct backend *b)
{
    struct pool *p = b->d->pool;

    for (size_t i = 0; i < p->list.n;) {
        struct worker *w = p->list.v[i];

        if (w->b != b || w->seen_us >= b->list_us ||
            w->created_us > b->list_us || !missed(w))
            i++;
    }
}

/* Is something open that the next list may settle? */
static bool impatient(struct backend *b)
{
    struct pool *p = b->d->pool;

    for (size_t i = 0; i < p->list.n; i++) {
        const struct worker *w = p->list.v[i];

        if (w->b == b && (w->address[0] == '\0' || w->absent > 0 ||
                          (w->state == WORKER_SHUTDOWN && w->destroyed)))
            return true;
    }
    return creates_unsettled(b);
}

/* Quick, but no more than half of the calls that may be made. */
static int64_t fast_pause(struct backend *b)
{
    int64_t fast = FAST_US << b->list_fast;
    int64_t half = b->pace.per_s > 0 ? 2000000 / b->pace.per_s : 0;

    b->list_fast += b->list_fast < FAST_STEPS;
    return fast > half ? fast : half;
}

static void schedule(struct backend *b)
{
    int64_t now = core_now(b->d);
    int64_t pause = b->d->cfg->sync_ms * 1000;

    if (b->list_again) {
        pause = 0;
    } else if (impatient(b)) {
        int64_t fast = fast_pause(b);

        pause = fast < pause ? fast : pause;
    } else {
        b->list_fast = 0;
    }
    if (now + pause < b->list_hold.until_us)
        pause = b->list_hold.until_us - now;
    list_at(b, now + pause);
}

static void on_instance(void *arg, const struct cloud_instance *i)
{
    struct backend *b = arg;

    if (core_acts(b->d))
        pool_saw(b, i, b->list_us);
}

static void on_end(void *arg, const struct cloud_list_result *r)
{
    struct backend *b = arg;
    struct dispatch *d = b->d;

    core_op_end(d);
    b->listing = false;
    stats_cloud_op(d, "List", r->r.outcome != OP_DONE);
    if (!core_acts(d))
        return;
    if (r->r.outcome != OP_DONE) {
        log_failure(d->lg, LOG_WARN, &r->r.err, "cannot list instances",
                    "Backend", b->cfg->name, NULL);
        holdoff_hit(&b->list_hold, &r->r.err, core_now(d), core_random(d));
    } else {
        holdoff_clear(&b->list_hold);
    }
    if (r->r.outcome == OP_DONE && r->complete) {
        count_misses(b);
        creates_listed(b);
        b->listed_us = b->list_us;
        sched_mark(d);
    }
    schedule(b);
    looked(b);
}

static void list_now(struct backend *b)
{
    struct dispatch *d = b->d;
    int64_t now = core_now(d), next = 0;
    char key[128];
    struct cloud_tag filter = {
        pool_tag_name(d, "InstanceSetID", key), d->cfg->instance_set_id};

    if (b->listing || !core_acts(d))
        return;
    if (now < b->list_hold.until_us)
        next = b->list_hold.until_us;
    else if (pace_take_first(&b->pace, now, &next))
        next = 0;
    if (next > 0) {
        list_at(b, next);
        return;
    }
    deadline_stop(d->deadlines, &b->timer);
    b->listing = true;
    b->list_again = false;
    b->list_us = now;
    core_op_begin(d);
    b->cloud->list(b->cloud, &filter, 1, d->cfg->cloud_deadline_ms,
                   on_instance, on_end, b);
}

void pool_list_soon(struct backend *b)
{
    if (b->listing)
        b->list_again = true;
    else if (b->open && core_acts(b->d))
        list_at(b, core_now(b->d));
}

static void on_open(void *arg, const struct op_result *r)
{
    struct backend *b = arg;
    struct dispatch *d = b->d;

    core_op_end(d);
    if (!core_acts(d))
        return;
    if (r->outcome != OP_DONE) {
        log_failure(d->lg, LOG_ERROR, &r->err, "cannot open cloud",
                    "Backend", b->cfg->name, NULL);
        holdoff_hit(&b->open_hold, &r->err, core_now(d), core_random(d));
        list_at(b, b->open_hold.until_us);
        looked(b);
        return;
    }
    b->open = true;
    list_now(b);
}

void lists_open(struct backend *b)
{
    struct dispatch *d = b->d;

    if (b->open || !core_acts(d))
        return;
    core_op_begin(d);
    b->cloud->open(b->cloud, d->cfg->cloud_deadline_ms, on_open, b);
}
