/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The change feed: one long request after another.
 *
 * Each answer names containers that changed; they are read again, nothing
 * more. A lost cursor, a new epoch or an error means that changes may have
 * been missed: poll once, then go on listening. Without the feature, or
 * while it fails, polling alone does the job.
 *
 * When much changes, an answer comes at once and names one container. So the
 * next request then waits a little, and its answer names many.
 *
 * Loop thread only.
 */

#include <stdlib.h>

#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/dispatch/cqueue_impl.h"
#include "core/port/api.h"

enum { WAIT_MS = 50000, PAUSE_US = 20000 };

struct feed {
    struct cqueue *cq;
    struct op *op;
    bool alive;
    char epoch[64];
    int64_t cursor;
    int64_t asked_us;
    struct holdoff hold;
    struct deadline retry;
};

struct feed *feed_create(struct cqueue *cq)
{
    struct feed *f = MEM_NEW(struct feed);

    f->cq = cq;
    return f;
}

void feed_destroy(struct feed *f)
{
    if (!f)
        return;
    deadline_stop(f->cq->d->deadlines, &f->retry);
    free(f);
}

bool feed_alive(const struct feed *f)
{
    return f->alive;
}

static void on_retry(void *arg)
{
    feed_start(arg);
}

static void failed(struct feed *f, const struct err *err)
{
    struct dispatch *d = f->cq->d;

    if (f->alive)
        log_failure(d->lg, LOG_WARN, err, "change feed lost: polling", NULL);
    f->alive = false;
    if (err->class == ERR_NOT_FOUND)
        return; /* this server has none */
    holdoff_hit_short(&f->hold, err, core_now(d),
                      core_random(d), CORE_API_RETRY_MS);
    deadline_set(d->deadlines, &f->retry, f->hold.until_us, on_retry, f);
    poll_soon(f->cq->poll);
}

static void on_answer(void *arg, const struct api_feed_result *r)
{
    struct feed *f = arg;
    struct dispatch *d = f->cq->d;

    core_op_end(d);
    f->op = NULL;
    if (!core_acts(d))
        return;
    if (r->r.outcome != OP_DONE) {
        failed(f, &r->r.err);
        return;
    }
    /* Between the first poll and the first answer things may have changed. */
    if (r->resync || !f->alive)
        poll_soon(f->cq->poll);
    f->alive = true;
    holdoff_clear(&f->hold);
    text_copy(f->epoch, r->epoch, sizeof f->epoch);
    f->cursor = r->cursor;
    for (size_t i = 0; i < r->n; i++) {
        struct qent *q = cqueue_find(f->cq, r->uuids[i]);

        if (q)
            cqueue_doubt(q);
        else
            reread_want(f->cq->reread, r->uuids[i]);
    }
    if (core_now(d) - f->asked_us < PAUSE_US)
        deadline_set(d->deadlines, &f->retry, f->asked_us + PAUSE_US,
                     on_retry, f);
    else
        feed_start(f);
}

void feed_start(struct feed *f)
{
    struct dispatch *d = f->cq->d;
    struct api_port *api = d->port.api;

    if (!(d->features & API_FEED) || f->op || !core_acts(d))
        return;
    core_op_begin(d);
    f->asked_us = core_now(d);
    /* The first one only fetches the cursor. */
    f->op = api->feed(api, f->epoch, f->cursor,
                      f->epoch[0] != '\0' ? WAIT_MS : 0, on_answer, f);
}

void feed_stop(struct feed *f)
{
    struct api_port *api = f->cq->d->port.api;

    if (f->op)
        api->op_cancel(api, f->op);
}
