/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Single containers read again, up to 100 in one request.
 *
 * Everything that makes a record doubtful ends here: a hint of the feed, a
 * refused or unknown write, an exit, a revoke. Uuids are collected in a
 * sorted set; batches go out at the end of the turn, a few at a time and not
 * in quick succession, so that under load one request serves many doubts. What
 * is being written waits: a read would be dropped and asked for again, over
 * and over until the answer to the write is there.
 *
 * A short page means nothing; only an empty one ends the answer, and what was
 * asked for and not named by then does not exist.
 *
 * Loop thread only.
 */

#include <stdlib.h>
#include <string.h>

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/dispatch/cqueue_impl.h"
#include "core/dispatch/gate.h"
#include "core/port/api.h"

enum { BATCH = 100, BATCHES = 2, PAUSE_US = 20000 };

struct batch {
    struct reread *r;
    bool busy;
    bool sent;
    struct gate_item gate;
    int64_t start_us;
    size_t n;
    char uuid[BATCH][CTR_UUID_SIZE];
    bool got[BATCH];
    struct ctr last; /* where the next page continues */
    bool has_last;
};

struct reread {
    struct cqueue *cq;
    struct map *wanted; /* uuid -> itself, any non-NULL value */
    struct batch batch[BATCHES];
    int64_t started_us; /* the last batch */
    struct holdoff hold;
    struct deadline retry;
};

static char mark; /* the value of every key of `wanted` */

struct reread *reread_create(struct cqueue *cq)
{
    struct reread *r = MEM_NEW(struct reread);

    r->cq = cq;
    r->wanted = map_create(NULL);
    for (int i = 0; i < BATCHES; i++)
        r->batch[i].r = r;
    return r;
}

void reread_destroy(struct reread *r)
{
    if (!r)
        return;
    for (int i = 0; i < BATCHES; i++)
        gate_withdraw(r->cq->d->gate, &r->batch[i].gate);
    deadline_stop(r->cq->d->deadlines, &r->retry);
    map_destroy(r->wanted);
    free(r);
}

void reread_want(struct reread *r, const char *uuid)
{
    map_set(r->wanted, uuid, &mark);
    deadlines_soon(r->cq->d->deadlines);
}

void reread_forget(struct reread *r, const char *uuid)
{
    map_delete(r->wanted, uuid);
}

/* The batch is over; what it was asked for and is still in doubt because of
 * something later goes into another one. */
static void finish(struct batch *b, bool ok)
{
    struct cqueue *cq = b->r->cq;

    b->busy = false;
    for (size_t i = 0; i < b->n; i++) {
        struct qent *q = cqueue_find(cq, b->uuid[i]);

        if (!ok && (!q || q->doubt_us != 0))
            reread_want(b->r, b->uuid[i]);
        if (!q)
            continue;
        q->reading = false;
        if (ok && !b->got[i] && b->start_us >= q->wrote_us) {
            q->missing = true;
            q->doubt_us = 0;
            cqueue_reorder(q);
            cqueue_mark(q);
        } else if (q->doubt_us != 0) {
            reread_want(b->r, b->uuid[i]);
        }
    }
    deadlines_soon(cq->d->deadlines);
}

static void on_retry(void *arg)
{
    (void) arg; /* reread_work() follows at the end of the turn */
}

static void go(void *arg);

static void take(struct batch *b, const struct api_list_result *res)
{
    for (size_t i = 0; i < res->n; i++) {
        for (size_t k = 0; k < b->n; k++)
            if (strcmp(b->uuid[k], res->v[i].uuid) == 0)
                b->got[k] = true;
        cqueue_saw(b->r->cq, &res->v[i], b->start_us);
    }
}

static bool got_all(const struct batch *b)
{
    for (size_t k = 0; k < b->n; k++)
        if (!b->got[k])
            return false;
    return true;
}

static void on_page(void *arg, const struct api_list_result *res)
{
    struct batch *b = arg;
    struct dispatch *d = b->r->cq->d;

    core_op_end(d);
    gate_leave(d->gate, &res->r);
    if (res->r.outcome != OP_DONE) {
        holdoff_hit_short(&b->r->hold, &res->r.err, core_now(d),
                          core_random(d), CORE_API_RETRY_MS);
        deadline_set(d->deadlines, &b->r->retry, b->r->hold.until_us,
                     on_retry, b->r);
        finish(b, false);
        return;
    }
    holdoff_clear(&b->r->hold);
    take(b, res);
    if (res->n == 0 || got_all(b) || !core_acts(d)) {
        finish(b, res->n == 0 || got_all(b));
        return;
    }
    b->last = res->v[res->n - 1];
    b->has_last = true;
    gate_enter(d->gate, &b->gate, GATE_READ, go, b);
}

static void go(void *arg)
{
    struct batch *b = arg;
    struct dispatch *d = b->r->cq->d;
    struct api_port *api = d->port.api;
    const char *uuids[BATCH];
    struct api_list_req req = {
        .which = API_LIST_UUIDS,
        .limit = 1000,
        .after = b->has_last ? &b->last : NULL,
        .uuids = uuids,
        .n_uuids = b->n,
        .deadline_ms = d->cfg->api_deadline_ms,
    };

    for (size_t i = 0; i < b->n; i++)
        uuids[i] = b->uuid[i];
    if (!b->has_last)
        b->start_us = core_now(d);
    core_op_begin(d);
    api->list(api, &req, on_page, b);
}

/* Moves what may be asked for now from `wanted` into the batch. */
static void fill(struct batch *b)
{
    struct reread *r = b->r;
    const char *key = NULL;

    b->n = 0;
    while (b->n < BATCH && map_next(r->wanted, &key)) {
        struct qent *q = cqueue_find(r->cq, key);

        if (q && cqueue_writing(q))
            continue;
        if (q)
            q->reading = true;
        text_copy(b->uuid[b->n++], key, CTR_UUID_SIZE);
    }
    for (size_t i = 0; i < b->n; i++)
        map_delete(r->wanted, b->uuid[i]);
}

static void start(struct batch *b)
{
    fill(b);
    if (b->n == 0)
        return;
    b->has_last = false;
    memset(b->got, 0, sizeof b->got);
    b->busy = true;
    b->r->started_us = core_now(b->r->cq->d);
    gate_enter(b->r->cq->d->gate, &b->gate, GATE_READ, go, b);
}

void reread_work(struct reread *r)
{
    struct dispatch *d = r->cq->d;
    int64_t next_us = r->started_us ? r->started_us + PAUSE_US : 0;

    if (!core_acts(d) || core_now(d) < r->hold.until_us ||
        map_count(r->wanted) == 0)
        return;
    if (core_now(d) < next_us) {
        deadline_set(d->deadlines, &r->retry, next_us, on_retry, r);
        return;
    }
    for (int i = 0; i < BATCHES; i++)
        if (!r->batch[i].busy) {
            start(&r->batch[i]);
            break;
        }
}
