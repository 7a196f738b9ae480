/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Polls: what is queued, what is ours.
 *
 * A poll walks the pages of two lists, one after the other: queued
 * containers, most urgent first, until there are enough; then everything
 * that our token has locked, to the end. An entry that neither list named is
 * in doubt and read again by itself. Nothing is concluded from an absence
 * here.
 *
 * With a change feed, polls are a safety net at a sixth of the rate.
 *
 * Loop thread only.
 */

#include <stdlib.h>

#include "core/base/logger.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/dispatch/cqueue_impl.h"
#include "core/dispatch/gate.h"
#include "core/port/api.h"

enum { PAGE = 1000, SLOWER_WITH_FEED = 6 };

struct poll {
    struct cqueue *cq;
    bool busy;
    bool again;          /* asked for while one was under way */
    enum api_list which;
    int64_t start_us, page_us;
    int64_t done_us;     /* start of the last complete one */
    size_t n;
    struct ctr last;
    bool has_last;
    struct gate_item gate;
    struct deadline next;
    struct holdoff hold;
};

struct poll *poll_create(struct cqueue *cq)
{
    struct poll *p = MEM_NEW(struct poll);

    p->cq = cq;
    return p;
}

void poll_destroy(struct poll *p)
{
    if (!p)
        return;
    gate_withdraw(p->cq->d->gate, &p->gate);
    deadline_stop(p->cq->d->deadlines, &p->next);
    free(p);
}

int64_t poll_done_us(const struct poll *p)
{
    return p->done_us;
}

static void on_due(void *arg)
{
    poll_soon(arg);
}

static void schedule(struct poll *p)
{
    struct dispatch *d = p->cq->d;
    int64_t at = p->start_us + d->cfg->poll_ms * 1000 *
                 (feed_alive(p->cq->feed) ? SLOWER_WITH_FEED : 1);

    if (p->hold.until_us > 0)
        at = p->hold.until_us; /* the last one failed */
    deadline_set(d->deadlines, &p->next, at, on_due, p);
}

static void doubt_the_rest(struct poll *p)
{
    const char *key = NULL;
    struct qent *q;

    while ((q = map_next(p->cq->by_uuid, &key)))
        if (q->read_us < p->start_us && q->wrote_us < p->start_us)
            cqueue_doubt(q);
}

static void go(void *arg);

static void next_page(struct poll *p)
{
    gate_enter(p->cq->d->gate, &p->gate, GATE_READ, go, p);
}

static void finish(struct poll *p)
{
    bool first = p->done_us == 0;

    p->busy = false;
    p->done_us = p->start_us;
    if (p->hold.until_us > 0)
        log_event(p->cq->d->lg, LOG_INFO, "the queue can be polled again",
                  NULL);
    holdoff_clear(&p->hold);
    doubt_the_rest(p);
    schedule(p);
    if (first)
        cqueue_polled(p->cq);
    if (p->again) {
        p->again = false;
        poll_soon(p);
    }
}

static void failed(struct poll *p, const struct err *err)
{
    struct dispatch *d = p->cq->d;

    p->busy = false;
    if (err->class == ERR_AUTH) {
        core_fatal(d, err);
        return;
    }
    log_failure(d->lg, LOG_WARN, err, "cannot poll the queue", NULL);
    holdoff_hit_short(&p->hold, err, core_now(d),
                      core_random(d), CORE_API_RETRY_MS);
    schedule(p);
}

static void on_page(void *arg, const struct api_list_result *res)
{
    struct poll *p = arg;
    struct dispatch *d = p->cq->d;

    core_op_end(d);
    gate_leave(d->gate, &res->r);
    if (!core_acts(d)) {
        p->busy = false;
        return;
    }
    if (res->r.outcome != OP_DONE) {
        failed(p, &res->r.err);
        return;
    }
    for (size_t i = 0; i < res->n; i++)
        cqueue_saw(p->cq, &res->v[i], p->page_us);
    p->n += res->n;
    if (res->n > 0) {
        p->last = res->v[res->n - 1];
        p->has_last = true;
        if (p->which == API_LIST_MINE || p->n < CQUEUE_MAX_QUEUED) {
            next_page(p);
            return;
        }
        p->cq->truncated = true;
    }
    if (p->which == API_LIST_QUEUED) {
        p->which = API_LIST_MINE;
        p->has_last = false;
        next_page(p);
        return;
    }
    finish(p);
}

static void go(void *arg)
{
    struct poll *p = arg;
    struct dispatch *d = p->cq->d;
    struct api_port *api = d->port.api;
    struct api_list_req req = {
        .which = p->which,
        .limit = PAGE,
        .after = p->has_last ? &p->last : NULL,
        .token_uuid = d->token_uuid,
        .deadline_ms = d->cfg->api_deadline_ms,
    };

    p->page_us = core_now(d);
    core_op_begin(d);
    api->list(api, &req, on_page, p);
}

void poll_soon(struct poll *p)
{
    struct dispatch *d = p->cq->d;

    if (!core_acts(d))
        return;
    if (p->busy) {
        p->again = true;
        return;
    }
    deadline_stop(d->deadlines, &p->next);
    p->busy = true;
    p->which = API_LIST_QUEUED;
    p->has_last = false;
    p->n = 0;
    p->start_us = core_now(d);
    next_page(p);
}
