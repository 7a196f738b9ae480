/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Scheduling order: locked before queued, then priority, then age.
 *
 * Locked goes first although a newer one may be more urgent: locks and
 * instances were taken for it, and equals must never take turns at being
 * locked and unlocked. Age is the server's created_at, which survives our
 * restarts, then the uuid.
 *
 * A sorted array of pointers: finding a place is a binary search, taking it
 * is one memmove. Entries remember the key they were filed under.
 */

#include <string.h>

#include "core/dispatch/cqueue_impl.h"

static int compare(const struct qent *a, const struct qent *b)
{
    if (a->order.rank != b->order.rank)
        return a->order.rank < b->order.rank ? -1 : 1;
    if (a->order.priority != b->order.priority)
        return a->order.priority > b->order.priority ? -1 : 1;
    if (a->order.age != b->order.age)
        return a->order.age < b->order.age ? -1 : 1;
    return strcmp(a->c.uuid, b->c.uuid);
}

static size_t find(const struct cqueue *cq, const struct qent *q)
{
    size_t lo = 0, hi = cq->order.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (compare(cq->order.v[mid], q) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void order_remove(struct cqueue *cq, struct qent *q)
{
    if (!q->in_order)
        return;
    size_t i = find(cq, q);

    VEC_REMOVE(&cq->order, i);
    q->in_order = false;
}

static bool belongs(const struct qent *q)
{
    if (!q->admitted || q->missing)
        return false;
    if (q->c.state == CTR_QUEUED)
        return q->c.priority > 0 && !q->impossible;
    return !ctr_state_final(q->c.state) && qent_ours(q);
}

void order_update(struct cqueue *cq, struct qent *q)
{
    struct qent_order key = {
        .rank = q->c.state != CTR_QUEUED ? 0 : 1,
        .priority = q->c.priority,
        .age = q->c.created_us,
    };
    bool in = belongs(q);

    if (q->in_order && in && key.rank == q->order.rank &&
        key.priority == q->order.priority && key.age == q->order.age)
        return;
    order_remove(cq, q);
    if (!in)
        return;
    q->order = key;
    size_t i = find(cq, q);

    VEC_INSERT(&cq->order, i, q);
    q->in_order = true;
}
