/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The local view of the queue.
 *
 * Records arrive from three sides: polls, single reads, answers to our own
 * writes. Each carries the time its request began. The rule that keeps the
 * view true: a record replaces what we have only if its request began no
 * earlier than the end of our own last write and than the read that we have,
 * and not while a write is under way. What is dropped is read again.
 *
 * Whoever changes an entry marks it; at the end of the turn, cqueue_work()
 * has each marked one reconciled once (reconcile.c), however many events
 * there were.
 *
 * An entry exists as long as it concerns us: queued and wanted, locked by us,
 * or with a process on one of our instances.
 *
 * Loop thread only.
 */

#include <stdlib.h>
#include <string.h>

#include "core/base/logger.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/dispatch/cqueue_impl.h"
#include "core/dispatch/jr.h"
#include "core/dispatch/reconcile.h"
#include "core/dispatch/run.h"
#include "core/dispatch/sched.h"
#include "core/port/api.h"

struct cqueue *cqueue_create(struct dispatch *d)
{
    struct cqueue *cq = MEM_NEW(struct cqueue);

    cq->d = d;
    cq->by_uuid = map_create(NULL);
    cq->shapes = map_create(NULL);
    cq->lost = map_create(free);
    cq->dirty_end = &cq->dirty;
    cq->poll = poll_create(cq);
    cq->reread = reread_create(cq);
    cq->feed = feed_create(cq);
    return cq;
}

static void qent_free(struct cqueue *cq, struct qent *q)
{
    struct deadlines *ds = cq->d->deadlines;

    deadline_stop(ds, &q->retry);
    gate_withdraw(cq->d->gate, &q->gate);
    order_remove(cq, q);
    shape_release(cq, q);
    qent_forget_token(q);
    free(q->impossible);
    free(q->cancel_text);
    free(q);
}

void cqueue_destroy(struct cqueue *cq)
{
    const char *key = NULL;
    struct qent *q;

    if (!cq)
        return;
    poll_destroy(cq->poll);
    reread_destroy(cq->reread);
    feed_destroy(cq->feed);
    while ((q = map_next(cq->by_uuid, &key)))
        qent_free(cq, q);
    map_destroy(cq->by_uuid);
    map_destroy(cq->shapes);
    map_destroy(cq->lost);
    VEC_FINI(&cq->order);
    free(cq);
}

void cqueue_polled(struct cqueue *cq)
{
    const char *key = NULL;

    /* What the journal remembers of containers that are no more. */
    while (map_next(cq->lost, &key))
        jr_delete(cq->d->jr, JOURNAL_QUEUE, key);
    map_clear(cq->lost);
}

void cqueue_start(struct cqueue *cq)
{
    feed_start(cq->feed);
    poll_soon(cq->poll);
}

void cqueue_stop(struct cqueue *cq)
{
    const char *key = NULL;
    struct qent *q;

    cq->stopping = true;
    feed_stop(cq->feed);
    /* What waits at the gate will not be sent any more. */
    while ((q = map_next(cq->by_uuid, &key)))
        if (gate_withdraw(cq->d->gate, &q->gate))
            q->op = QENT_IDLE;
}

void cqueue_replay(struct cqueue *cq, const struct journal_rec *rec)
{
    map_set(cq->lost, rec->key, mem_dup(rec, sizeof *rec));
}

struct qent *cqueue_find(const struct cqueue *cq, const char *uuid)
{
    return map_get(cq->by_uuid, uuid);
}

static struct qent *qent_new(struct cqueue *cq, const char *uuid)
{
    struct qent *q = MEM_NEW(struct qent);
    struct journal_rec *rec = map_get(cq->lost, uuid);

    q->d = cq->d;
    text_copy(q->c.uuid, uuid, sizeof q->c.uuid);
    q->first_seen_us = core_wall(cq->d);
    if (rec) {
        q->first_seen_us = rec->at_us;
        q->lost = rec->count;
        q->lost_recorded = true;
        map_delete(cq->lost, uuid);
    }
    map_set(cq->by_uuid, uuid, q);
    return q;
}

struct qent *cqueue_need(struct cqueue *cq, const char *uuid)
{
    struct qent *q = map_get(cq->by_uuid, uuid);

    if (!q) {
        q = qent_new(cq, uuid);
        cqueue_doubt(q);
    }
    return q;
}

struct qent *const *cqueue_order(const struct cqueue *cq, size_t *ret_n)
{
    *ret_n = cq->order.n;
    return cq->order.v;
}

/* When there are enough, the least urgent one gives way to a more urgent. */
static bool make_room(struct cqueue *cq, int64_t priority)
{
    if (cq->order.n < CQUEUE_MAX_QUEUED)
        return true;
    struct qent *last = cq->order.v[cq->order.n - 1];

    cq->truncated = true;
    if (last->c.state == CTR_QUEUED && last->c.priority < priority)
        cqueue_drop(last);
    return cq->order.n < CQUEUE_MAX_QUEUED;
}

/* Is a record of a container that we do not know worth an entry? */
static bool concerns_us(struct cqueue *cq, const struct ctr *c)
{
    if (c->state == CTR_QUEUED)
        return c->priority > 0 && make_room(cq, c->priority);
    return !ctr_state_final(c->state) && c->locked_by[0] != '\0' &&
           strcmp(c->locked_by, cq->d->token_uuid) == 0;
}

bool cqueue_writing(const struct qent *q)
{
    return q->op_sent && q->op != QENT_IDLE && q->op != QENT_GET;
}

/* Take over a whole record; what lists leave out is kept. */
static void replace(struct cqueue *cq, struct qent *q, const struct ctr *c)
{
    struct ctr old = q->c;
    bool mounts = q->admitted && old.mounts_known && !c->mounts_known;

    q->c = *c;
    if (mounts) {
        q->c.mounts_known = true;
        q->c.tmp_capacity = old.tmp_capacity;
    }
    if (q->c.attempt < old.attempt)
        q->c.attempt = old.attempt; /* lists may leave it out */
    if (!q->admitted && (q->c.mounts_known || q->c.invalid[0] != '\0'))
        shape_admit(cq, q);
    run_admitted(q);
    if (old.state != q->c.state || old.priority != q->c.priority)
        sched_mark(cq->d);
}

void cqueue_saw(struct cqueue *cq, const struct ctr *c, int64_t start_us)
{
    struct qent *q = map_get(cq->by_uuid, c->uuid);

    if (!q) {
        if (!concerns_us(cq, c))
            return;
        q = qent_new(cq, c->uuid);
        log_event(cq->d->lg, LOG_INFO, "container added", "ContainerUUID",
                  c->uuid, "State", ctr_state_name(c->state), NULL);
    }
    if (cqueue_writing(q) || start_us < q->wrote_us) {
        cqueue_doubt(q);
        return;
    }
    if (start_us < q->read_us)
        return;
    q->read_us = start_us;
    q->missing = false;
    if (q->doubt_us <= start_us)
        q->doubt_us = 0;
    replace(cq, q, c);
    cqueue_reorder(q);
    cqueue_mark(q);
}

void cqueue_wrote(struct qent *q, const struct api_ctr_result *r)
{
    q->wrote_us = core_now(q->d);
    if (r->partial) {
        q->c.state = r->c.state;
        q->c.priority = r->c.priority;
        text_copy(q->c.locked_by, r->c.locked_by, sizeof q->c.locked_by);
    } else {
        replace(q->d->queue, q, &r->c);
    }
    /* As good as a read that began now. */
    q->read_us = q->wrote_us;
    q->doubt_us = 0;
    reread_forget(q->d->queue->reread, q->c.uuid);
    cqueue_reorder(q);
    cqueue_mark(q);
}

void cqueue_doubt(struct qent *q)
{
    q->doubt_us = core_now(q->d);
    reread_want(q->d->queue->reread, q->c.uuid);
}

void cqueue_mark(struct qent *q)
{
    struct cqueue *cq = q->d->queue;

    if (q->dirty)
        return;
    q->dirty = true;
    q->next_dirty = NULL;
    *cq->dirty_end = q;
    cq->dirty_end = &q->next_dirty;
    deadlines_soon(q->d->deadlines);
}

void cqueue_mark_all(struct cqueue *cq)
{
    const char *key = NULL;
    struct qent *q;

    while ((q = map_next(cq->by_uuid, &key)))
        cqueue_mark(q);
}

void cqueue_reorder(struct qent *q)
{
    order_update(q->d->queue, q);
}

void cqueue_drop(struct qent *q)
{
    struct cqueue *cq = q->d->queue;

    if (q->op != QENT_IDLE || q->runs || q->dirty)
        return;
    if (q->lost_recorded)
        jr_delete(cq->d->jr, JOURNAL_QUEUE, q->c.uuid);
    log_event(cq->d->lg, LOG_DEBUG, "container dropped", "ContainerUUID",
              q->c.uuid, "State", ctr_state_name(q->c.state), NULL);
    map_delete(cq->by_uuid, q->c.uuid);
    qent_free(cq, q);
}

void cqueue_work(struct cqueue *cq)
{
    struct qent *list = cq->dirty;

    cq->dirty = NULL;
    cq->dirty_end = &cq->dirty;
    while (list) {
        struct qent *q = list;

        list = q->next_dirty;
        q->dirty = false;
        reconcile(q); /* may drop q, may mark it again for the next turn */
    }
    if (cq->truncated && cq->order.n < CQUEUE_MAX_QUEUED / 2) {
        cq->truncated = false;
        poll_soon(cq->poll);
    }
    reread_work(cq->reread);
}

int64_t cqueue_polled_us(const struct cqueue *cq)
{
    return poll_done_us(cq->poll);
}
