/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_MODEL_CTR_STATES_H
#define CORE_MODEL_CTR_STATES_H

/*
 * Container and container request states with their legal moves: the one
 * table from which enums, names and rules are made. Source: Arvados API,
 * "containers" and "container_requests" resources (states and transitions).
 */

/*      name       wire name    final */
#define CTR_STATES(X)                                                         \
    X(QUEUED,    "Queued",    0)                                              \
    X(LOCKED,    "Locked",    0)                                              \
    X(RUNNING,   "Running",   0)                                              \
    X(COMPLETE,  "Complete",  1)                                              \
    X(CANCELLED, "Cancelled", 1)

/*      from       to */
#define CTR_MOVES(X)                                                          \
    X(QUEUED,    LOCKED)                                                      \
    X(QUEUED,    CANCELLED)                                                   \
    X(LOCKED,    QUEUED)                                                      \
    X(LOCKED,    RUNNING)                                                     \
    X(LOCKED,    CANCELLED)                                                   \
    X(RUNNING,   COMPLETE)                                                    \
    X(RUNNING,   CANCELLED)                                                   \
    X(COMPLETE,  CANCELLED)

#define CR_STATES(X)                                                          \
    X(UNCOMMITTED, "Uncommitted")                                             \
    X(COMMITTED,   "Committed")                                               \
    X(FINAL,       "Final")

enum ctr_state {
#define X(name, wire, final) CTR_##name,
    CTR_STATES(X)
#undef X
    CTR_STATE_COUNT
};

enum cr_state {
#define X(name, wire) CR_##name,
    CR_STATES(X)
#undef X
    CR_STATE_COUNT
};

#endif
