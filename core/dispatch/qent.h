/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_QENT_H
#define CORE_DISPATCH_QENT_H

/*
 * An entry of the queue: what we know of one container, and what we are
 * doing about it. The record of cqueue, reconcile, release, starts, kill.
 */

#include "core/dispatch/core.h"
#include "core/dispatch/holdoff.h"
#include "core/dispatch/gate.h"
#include "core/dispatch/plan.h"
#include "core/model/ctr.h"

struct op;
struct run;

/* At most one request about a container is in flight. */
enum qent_op {
    QENT_IDLE, QENT_GET, QENT_LOCK, QENT_UNLOCK, QENT_ATTEMPT, QENT_REVOKE,
    QENT_UPDATE
};

/* What it is filed under in the scheduling order. */
struct qent_order {
    int rank;
    int64_t priority, age;
};

struct qent {
    struct dispatch *d;
    struct ctr c;

    /* Freshness. A reply whose request began before `wrote_us` (the end of our
     * own last write) or before `read_us` (the start of the read that c comes
     * from) is older than what we have, and is dropped. */
    int64_t read_us;
    int64_t wrote_us;
    int64_t doubt_us;       /* a read begun from then on is wanted; 0 = no */
    bool reading;           /* asked for in a batch that is under way */

    enum qent_op op;
    bool op_sent;           /* false while it waits at the gate */
    int64_t op_us;          /* when it was sent */
    struct gate_item gate;
    struct holdoff hold;    /* after a failed request */
    struct deadline retry;

    /* The attempt that is ready to be used, not yet sent anywhere. */
    int64_t attempt;        /* 0 = none */
    char *token;            /* its secret */
    /* The end of the last revoke (a new attempt revokes as well), and the
     * highest number that it covers. */
    int64_t revoked_us;
    int64_t revoked_upto;

    struct run *runs;       /* processes, or what may be one: run.h */
    int64_t exit_us;        /* when we learnt that its process is over; 0 */
    int64_t exit_attempt;   /* ... of which attempt; 0 = not known */
    int64_t gone_us;        /* ... that none can live any more, though no end
                             * was seen (its instance is gone, ...); 0 */
    int64_t lost;           /* attempts lost to dying instances, ever */
    int64_t burns;          /* ... since it was last locked or we started */

    struct plan_ctr pc;
    int64_t first_seen_us;  /* wall */
    struct qent_order order;
    bool in_order;
    bool admitted;          /* shape known; else mounts are still to be read */
    char *impossible;       /* why no instance type fits, or NULL */
    char *cancel_text;      /* of the cancel in flight, or the last one */
    bool cancel_no_retry;
    struct plan_shape *shape; /* interned; NULL until admitted */
    int64_t final_us;       /* when we first saw a final state; 0 */
    bool missing;           /* the server says that it does not exist */
    bool lost_recorded;     /* a QUEUE record exists */
    bool dirty;             /* on the list of those to reconcile */
    struct qent *next_dirty;
};

/* Requests about one container (qent.c). q->op must be QENT_IDLE. When the
 * answer is in, q is marked and the pass of the turn goes on from there. */
void qent_get(struct qent *q);
void qent_lock(struct qent *q);
void qent_unlock(struct qent *q);
void qent_attempt(struct qent *q);
void qent_revoke(struct qent *q);
/* Cancelled, with runtime_status.error (not NULL). */
void qent_cancel(struct qent *q, const char *error, bool no_retry);
/* May a request about it begin now? */
bool qent_free_to_ask(const struct qent *q);
/* An attempt may exist that was not revoked. */
bool qent_attempt_open(const struct qent *q);
/* The unused attempt's token is wiped. */
void qent_forget_token(struct qent *q);

static inline bool qent_ours(const struct qent *q)
{
    const char *owner = q->c.locked_by;

    return owner[0] != '\0' &&
           __builtin_strcmp(owner, q->d->token_uuid) == 0;
}

#endif
