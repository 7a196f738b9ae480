/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_WORKER_FSM_H
#define CORE_DISPATCH_WORKER_FSM_H

/*
 * The states of an instance in our books, and what moves it between them.
 * Pure: worker.c feeds events and carries out the actions.
 */

#include <stdbool.h>

/*      name       label       meaning */
#define WORKER_STATES(X)                                                      \
    X(UNKNOWN,  "unknown")  /* adopted: what runs on it is not yet known */   \
    X(BOOTING,  "booting")  /* ours since its create; not yet in service */   \
    X(IDLE,     "idle")     /* in service, nothing on it */                   \
    X(RUNNING,  "running")  /* in service, with at least one container */     \
    X(SHUTDOWN, "shutdown") /* destroy was decided */                         \
    X(GONE,     "gone")     /* confirmed absent; the record ends */

enum worker_state {
#define X(name, label) WORKER_##name,
    WORKER_STATES(X)
#undef X
    WORKER_STATE_COUNT
};

/*      name           meaning */
#define WORKER_EVENTS(X)                                                      \
    X(IN_SERVICE)   /* boot probe good, runner there, its list seen */        \
    X(BUSY)         /* a container was assigned to it or found on it */       \
    X(EMPTY)        /* the last one left */                                   \
    X(IDLE_TIMEOUT) /* empty for TimeoutIdle */                               \
    X(BOOT_TIMEOUT) /* not in service for TimeoutBooting */                   \
    X(SILENT)       /* no sign of life for TimeoutProbe */                    \
    X(UNNEEDED)     /* its quota is wanted for something else */              \
    X(DRAINED)      /* drain, and nothing on it (or unkillable only) */       \
    X(FAILED)       /* the cloud says that it failed to start, or stopped */  \
    X(KILL)         /* an operator */                                         \
    X(ABSENT)       /* confirmed not to exist any more */

enum worker_event {
#define X(name) WORKER_EV_##name,
    WORKER_EVENTS(X)
#undef X
    WORKER_EVENT_COUNT
};

struct worker_view {
    enum worker_state state;
    bool hold; /* idle behaviour: suppresses every automatic shutdown */
    bool busy; /* something is, or may be, on it */
};

/* The state after the event; the same state when the event means nothing
 * there. */
enum worker_state worker_fsm_next(const struct worker_view *v,
                                  enum worker_event ev);

const char *worker_state_label(enum worker_state s);
const char *worker_event_label(enum worker_event ev);

#endif
