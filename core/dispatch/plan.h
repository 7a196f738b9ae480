/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_PLAN_H
#define CORE_DISPATCH_PLAN_H

/*
 * Which container goes where next, and why each other one waits.
 *
 * A pure function over a snapshot. What it says about starting, locking,
 * creating and ending instances is advice in order of urgency; sched.c
 * carries it out. (What has to be killed, unlocked or cancelled follows from
 * single records, not from a comparison of many: see reconcile.h.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/model/need.h"

struct itype;

/* All containers with the same needs and the same eligible types share one
 * shape: what one of them cannot get, the next cannot get either. */
struct plan_shape {
    struct need need;
    const struct itype *const *types; /* cheapest first; may be 0 of them */
    size_t n_types;
    const uint8_t *eligible;          /* bit i: itypes.v[i] is among them */
    /* Scratch space of one pass. */
    struct {
        uint64_t pass;
        size_t full_at; /* nothing fitted when there were this many workers */
        int blocked;    /* enum plan_why of its creates, or -1 */
    } memo;
};

/* Why a container is where it is. Texts are made by explain.c.
 *      name          waits? */
#define PLAN_WHYS(X)                                                          \
    X(NONE,        0) /* not judged */                                        \
    X(RUNNING,     0) /* has a process */                                     \
    X(STARTING,    0) /* assigned to an instance that is in service */        \
    X(ON_HOLD,     1) /* priority 0 */                                        \
    X(BUSY,        1) /* a request about it is in flight or backs off */      \
    X(LOCKING,     1) /* about to be locked */                                \
    X(BOOTING,     1) /* mapped to an instance that is not yet in service */  \
    X(CREATE,      1) /* mapped to an instance that is being created */       \
    X(NEXT_CREATE, 1) /* will be, when a create slot is free */               \
    X(SUPERVISORS, 1) /* as many supervisors as allowed */                    \
    X(API_LIMIT,   1) /* as many as the API server bears */                   \
    X(MAX_INSTANCES, 1) /* our own limit on instances */                      \
    X(QUOTA,       1) /* the cloud's */                                       \
    X(CAPACITY,    1) /* the cloud has no more of these types */              \
    X(CLOUD_BUSY,  1) /* rate limit or back-off of create calls */            \
    X(CLOUD_DOWN,  1) /* the cloud refuses, or does not answer */             \
    X(JOURNAL,     1) /* nothing may be created without a journal */          \
    X(BEHIND,      1) /* others go first */

enum plan_why {
#define X(name, waits) PLAN_##name,
    PLAN_WHYS(X)
#undef X
};

struct plan_reason {
    enum plan_why why;
    uint32_t position;        /* among those that wait, from 1; 0 = none */
    uint64_t worker;          /* serial of the instance, 0 = none */
    const struct itype *type; /* that is waited for, or NULL */
};

struct plan_ctr {
    struct plan_shape *shape;
    bool locked;      /* by us; else it is Queued */
    bool process;     /* starting, running, or not yet known to be over */
    bool supervisor;
    bool held;        /* keep its place, but start nothing for it now */
    bool on_hold;     /* priority 0 */
    struct plan_reason reason; /* out */
};

struct plan_worker {
    uint64_t serial;          /* unique, never 0 */
    void *owner;              /* of the caller */
    const struct itype *type; /* NULL: unknown, takes nothing */
    size_t type_index;
    bool usable;              /* may take containers, now or later */
    bool ready;               /* in service: may take them now */
    bool pending;             /* being created, or foreseen to be */
    bool asked;               /* out: foreseen, and its create is an action */
    bool removable;           /* may be ended for want of quota */
    struct need free;         /* in: what is left; out: after this pass */
    int64_t n;                /* containers on it, in and out */
    int64_t limit;            /* of n; 0 = none */
    int64_t mapped;           /* out: containers mapped in this pass */
};

struct plan_limits {
    int64_t starts;        /* starts that may be begun now */
    int64_t locks;         /* lock calls that may be begun now */
    int64_t creates;       /* create calls that may be begun now */
    int64_t instances;     /* instances that may be added at all; < 0 = any */
    int64_t processes;     /* containers with a process at most; 0 = any */
    int64_t supervisors;   /* supervisors with a process at most; 0 = any */
    int64_t lock_ahead;    /* locked containers without a place, at most */
    int64_t max_per_instance; /* 0 = any */
    bool whole;            /* judge every container, even when no action can
                            * follow any more: reasons are wanted */
    /* May an instance of this type be created? PLAN_NONE = yes, else why not.
     * Asked at most once per type, in a fixed order. */
    enum plan_why (*blocked)(void *arg, const struct itype *it);
    void *arg;
};

enum plan_verb { PLAN_START, PLAN_LOCK, PLAN_MAKE, PLAN_SHUTDOWN };

struct plan_action {
    enum plan_verb verb;
    size_t ctr;                 /* START, LOCK, MAKE: index into ctrs */
    struct plan_worker *worker; /* START, SHUTDOWN */
    const struct itype *type;   /* MAKE */
};

struct plan {
    uint64_t pass;                 /* raised by each call */
    const struct itype *itypes;    /* the table that type_index refers to */
    size_t n_itypes;

    /* in: in scheduling order (locked first, then priority, then first
     * seen), and in order of serial */
    struct plan_ctr **ctrs;
    size_t n_ctrs;
    struct plan_worker *workers;   /* room for n_workers + n_ctrs */
    size_t n_workers;

    /* out; kept for the next call, freed by plan_fini */
    struct plan_action *actions;
    size_t n_actions, cap_actions;
    bool cut;                      /* not `whole`, and ended early: reasons of
                                    * the rest are those of an earlier pass */
    int64_t mapped_not_ready;      /* containers mapped, not started */
    int64_t no_place;              /* containers without any place */
    bool at_quota;                 /* somebody waits for a quota, ours or the
                                    * cloud's */
    uint8_t *block;                /* per type: answer of `blocked` + 1 */
};

void plan_run(struct plan *p, const struct plan_limits *lim);
void plan_fini(struct plan *p);

/* Does a container with this reason wait? */
bool plan_why_waits(enum plan_why why);

#endif
