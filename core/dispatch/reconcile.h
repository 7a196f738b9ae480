/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_RECONCILE_H
#define CORE_DISPATCH_RECONCILE_H

/*
 * What has to be done about one container, given its record and what is
 * known of its processes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/model/ctr_states.h"

struct qent;

/* Decide, and begin what was decided. May drop q. */
void reconcile(struct qent *q);
/* Is its record newer than everything it has to be compared with? */
bool reconcile_fresh(const struct qent *q);
/* An instance died with a process of q that had been sent. */
void reconcile_instance_lost(struct qent *q);

/* --- the decision, pure -------------------------------------------------- */

struct reconcile_view {
    enum ctr_state state;
    bool ours;         /* locked by our token */
    bool missing;      /* the server does not know it */
    bool wanted;       /* priority > 0 */
    bool impossible;   /* no instance type, or no valid record */
    bool admitted;     /* its needs are known */
    unsigned alive;    /* processes that may be healthy */
    unsigned lost;     /* processes out of sight: run_lost() */
    bool exited;       /* one was seen to have ended, none is left */
    bool gone;         /* none can live any more, though no end was seen */
    bool fresh;        /* the record was read after that, and after the last
                        * revoke, and is not in doubt */
    bool attempt_open; /* an attempt may exist that is not revoked */
    bool has_token;    /* an attempt is ready to be used */
    bool all_known;    /* every instance was looked at */
    bool burnt;        /* too many instances died under it */
    bool overdue;      /* final for so long that the process should be gone */
};

/*      name            meaning */
#define RECONCILE_VERDICTS(X)                                                 \
    X(NOTHING)       /* as it should be, or wait */                           \
    X(DROP)          /* no business of ours */                                \
    X(READ)          /* decide on a fresh record only */                      \
    X(READ_MOUNTS)   /* the whole record is needed */                         \
    X(LOCK)          /* to be able to cancel it */                            \
    X(CANCEL_IMPOSSIBLE)                                                      \
    X(PREPARE)       /* have an attempt ready for its start */                \
    X(KILL)          /* end its processes */                                  \
    X(FORGET_LOST)   /* no payload of theirs can live or come: end the runs,  \
                      * keep the lock */                                      \
    X(REVOKE)                                                                 \
    X(LOOK)          /* look on every instance it may be on */                \
    X(UNLOCK)                                                                 \
    X(CANCEL_LOST)   /* its process ended, or was lost, without a result */

enum reconcile_verdict {
#define X(name) RECONCILE_##name,
    RECONCILE_VERDICTS(X)
#undef X
};

enum reconcile_verdict reconcile_decide(const struct reconcile_view *v);

#endif
