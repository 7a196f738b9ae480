/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_RUN_H
#define CORE_DISPATCH_RUN_H

/*
 * A process of a container on an instance, or what may be or become one.
 *
 * It exists from the moment a container is assigned until it is certain that
 * no process of that attempt lives there or can come to life there. While it
 * exists, its needs are taken from the instance.
 */

#include "core/dispatch/core.h"
#include "core/dispatch/jr.h"
#include "core/model/need.h"

struct qent;
struct worker;

/*      name        label */
#define RUN_STATES(X)                                                         \
    X(PREPARING, "starting") /* nothing was sent yet */                       \
    X(SENT,      "starting") /* the start command is under way or done, but   \
                                the process was not seen yet */               \
    X(LIVE,      "running")  /* seen */                                       \
    X(STALE,     "running")  /* supervisor gone, its lock still held */       \
    X(UNSEEN,    "unseen")   /* looked for and not found, or out of sight     \
                                since a restart: it may still come */

enum run_state {
#define X(name, label) RUN_##name,
    RUN_STATES(X)
#undef X
};

struct run {
    struct dispatch *d;
    struct worker *w;
    struct qent *q;      /* NULL while the container is not known */
    struct run *next_of_ctr;
    char uuid[28];
    int64_t attempt;     /* 0 = not known (an old runner) */
    enum run_state state;
    struct need need;
    bool need_known;     /* else nothing more may be put beside it */

    bool intent;         /* a START record is, or may be, in the journal */
    /* The start command cannot take effect any more: it ended with an exit
     * status, or the process was seen. Then absence means exit. */
    bool settled;
    bool in_flight;      /* the start command's operation */
    bool over;           /* run_end was called; an operation still is out */
    int64_t ended_us;    /* when the start command ended */
    int64_t seen_us;     /* last time it was seen, 0 = never */
    int code;            /* exit status of the start command */
    bool started;        /* it ended with status 0: the process came to be */
    struct jr_wait wait;
    char *token;         /* until the start command is sent */

    const char *kill_why; /* static text; NULL = nobody wants it dead */
    int64_t kill_since_us; /* of the first signal sent; 0 = none was sent */
    bool kill_in_flight;
    bool unkillable;
    struct deadline kill_timer;
    struct deadline stale_timer;
};

struct run *run_create(struct worker *w, const char *uuid, int64_t attempt);
/* It is certainly over: take it out of everything, delete its record. */
void run_end(struct run *r);
/* The same, because its process was seen to have ended; the queue reads the
 * container again. */
void run_exited(struct run *r, const char *how);
/* The same, because none can live or come to life any more, though no end was
 * seen: a lock is kept. */
void run_vanished(struct run *r, const char *how);
/* First thing after an operation of it has ended: true = it is over, and may
 * be gone now; touch it no more. */
bool run_op_done(struct run *r);
/* Without a word to the journal or the queue (destroy). */
void run_free(struct run *r);
/* Those that wait for their last operation, at the end of everything. */
struct pool;
void run_free_limbo(struct pool *p);
/* Tie to a queue entry (both directions). */
void run_bind(struct run *r, struct qent *q);
/* The needs of q are known now. */
void run_admitted(struct qent *q);
struct run *run_find(const struct worker *w, const char *uuid);
/* No hope that it is healthy: unseen, or its instance is going or gone. */
bool run_lost(const struct run *r);
const char *run_state_label(enum run_state s);

/* Begin to end it, for a reason (static text); repeats are harmless. */
void run_kill(struct run *r, const char *why);
/* The reason has gone (why is the very text that was given): let it live, if
 * no signal was sent yet. */
void run_spare(struct run *r, const char *why);

#endif
