/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_CQUEUE_IMPL_H
#define CORE_DISPATCH_CQUEUE_IMPL_H

/*
 * The parts of cqueue: the view (cqueue.c), its order (order.c), shapes
 * (shape.c), polls (poll.c), single reads (reread.c), the feed (feed.c).
 */

#include "core/base/vec.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/qent.h"

struct feed;
struct map;
struct poll;
struct reread;

/* Queued containers of others that are kept at most: beyond that, the next
 * poll brings what is most urgent then. */
enum { CQUEUE_MAX_QUEUED = 4000 };

struct cqueue {
    struct dispatch *d;
    struct map *by_uuid;    /* of struct qent */
    VEC(struct qent *) order;
    struct map *shapes;     /* of struct shape */
    struct map *lost;       /* of struct journal_rec: QUEUE records without
                             * an entry so far */
    struct qent *dirty, **dirty_end;
    struct poll *poll;
    struct reread *reread;
    struct feed *feed;
    bool truncated;         /* there is more than we keep */
    bool stopping;
};

/* A write about it is under way: what is read meanwhile is no use. */
bool cqueue_writing(const struct qent *q);

/* The first poll is complete. */
void cqueue_polled(struct cqueue *cq);

/* order.c */
void order_update(struct cqueue *cq, struct qent *q);
void order_remove(struct cqueue *cq, struct qent *q);

/* shape.c: compute needs and types of q from its record, and intern them;
 * sets q->shape, q->impossible, q->admitted. */
void shape_admit(struct cqueue *cq, struct qent *q);
void shape_release(struct cqueue *cq, struct qent *q);
void shape_free(void *shape);

/* poll.c */
struct poll *poll_create(struct cqueue *cq);
void poll_destroy(struct poll *p);
void poll_soon(struct poll *p);
int64_t poll_done_us(const struct poll *p);

/* reread.c: read single containers, in batches. */
struct reread *reread_create(struct cqueue *cq);
void reread_destroy(struct reread *r);
void reread_want(struct reread *r, const char *uuid);
void reread_forget(struct reread *r, const char *uuid);
void reread_work(struct reread *r);

/* feed.c */
struct feed *feed_create(struct cqueue *cq);
void feed_destroy(struct feed *f);
void feed_start(struct feed *f);
void feed_stop(struct feed *f);
bool feed_alive(const struct feed *f);

#endif
