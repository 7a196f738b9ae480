/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_CQUEUE_H
#define CORE_DISPATCH_CQUEUE_H

/*
 * The containers that concern us, as the API server last told.
 *
 * Filled by polls (queued ones, most urgent first; those locked by us) and by
 * re-reading single ones that the change feed hints at, or that we doubt. A
 * hint is never believed, only followed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api_ctr_result;
struct cqueue;
struct ctr;
struct dispatch;
struct journal_rec;
struct op_result;
struct qent;

struct cqueue *cqueue_create(struct dispatch *d);
void cqueue_destroy(struct cqueue *cq); /* NULL is fine */

/* Begin to poll and to listen. */
void cqueue_start(struct cqueue *cq);
/* No further requests; the feed is given up. */
void cqueue_stop(struct cqueue *cq);
/* A QUEUE record of the journal. */
void cqueue_replay(struct cqueue *cq, const struct journal_rec *rec);

struct qent *cqueue_find(const struct cqueue *cq, const char *uuid);
/* Make sure that there is an entry; a new one is read soon. */
struct qent *cqueue_need(struct cqueue *cq, const char *uuid);
/* In scheduling order. Valid until the next change. */
struct qent *const *cqueue_order(const struct cqueue *cq, size_t *ret_n);

/* A record arrived whose request began at start_us. */
void cqueue_saw(struct cqueue *cq, const struct ctr *c, int64_t start_us);
/* The answer to our own write, which ended now. */
void cqueue_wrote(struct qent *q, const struct api_ctr_result *r);
/* q->c may be out of date: read it again soon. */
void cqueue_doubt(struct qent *q);
/* Something about q changed: reconcile it in this turn's pass. */
void cqueue_mark(struct qent *q);
/* Every entry. */
void cqueue_mark_all(struct cqueue *cq);
/* Its place in the order may have changed (state, priority). */
void cqueue_reorder(struct qent *q);
/* It is no business of ours any more. Not while a request or a process of it
 * exists. */
void cqueue_drop(struct qent *q);

/* Reconcile every marked entry (pass of the turn), then send read requests. */
void cqueue_work(struct cqueue *cq);

/* Monotonic start of the last complete poll; 0 = never. */
int64_t cqueue_polled_us(const struct cqueue *cq);

#endif
