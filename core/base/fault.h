/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_FAULT_H
#define CORE_BASE_FAULT_H

/*
 * Named fault points for system tests.
 *
 * They are compiled in, and cost one comparison while unarmed. They are armed
 * only by a descriptor that the parent process left open: the environment
 * variable CDC_FAULT_FD names its number, and the descriptor must be a pipe or
 * a memfd (an environment variable alone arms nothing). What is read from it
 * are lines `point:nth:action`: at the nth passage through the point
 * do the action: `kill` (SIGKILL to self), `stop` (SIGSTOP to self),
 * `delay=MS` (sleep), `fail` (fault_hit returns true and the code there acts
 * as if the call had failed). fault_init() closes the descriptor and removes
 * the variable.
 */

#include <stdbool.h>

struct err;

/*      name              where */
#define FAULT_POINTS(X)                                                       \
    X(AFTER_INTENT,      "after a create intent became durable")              \
    X(AFTER_CREATE,      "after a driver accepted a create")                  \
    X(AFTER_ATTEMPT,     "after an attempt token was made")                   \
    X(AFTER_START_INTENT, "after a start intent became durable")              \
    X(AFTER_START,       "after a start command was sent")                    \
    X(BEFORE_FINAL,      "API server: before the final write of a container") \
    X(AFTER_FINAL,       "API server: after the final write, before reply")   \
    X(AFTER_LOCK,        "API server: after a lock, before the reply")        \
    X(AFTER_ATTEMPT_ROW, "API server: after an attempt row, before reply")    \
    X(LIST_EMPTY,        "a driver list returns an empty complete answer")    \
    X(COMMIT_SLOW,       "API server: in the group commit")                   \
    X(LOCALVM_NEW,       "cdc-local-vm: before a VM's intent is visible")     \
    X(LOCALVM_INTENT,    "cdc-local-vm: after a VM's intent is durable")      \
    X(LOCALVM_GROUPED,   "cdc-local-vm: after a VM's control groups exist")   \
    X(LOCALVM_CLONED,    "cdc-local-vm: after the first process exists")      \
    X(LOCALVM_RECORDED,  "cdc-local-vm: after its identity is durable")       \
    X(LOCALVM_RELEASED,  "cdc-local-vm: after it was let go")                 \
    X(LOCALVM_DYING,     "cdc-local-vm: after a destroy is durable")          \
    X(LOCALVM_KILLED,    "cdc-local-vm: after a VM's processes are dead")     \
    X(LOCALVM_UNGROUPED, "cdc-local-vm: after its control groups are gone")

enum fault_point {
#define X(name, where) FAULT_##name,
    FAULT_POINTS(X)
#undef X
    FAULT_COUNT
};

/* Read the arming descriptor, if there is one. -1: it is malformed. */
int fault_init(struct err *err);

/* Pass the point. true only for an armed `fail` action. Any thread. */
bool fault_hit(enum fault_point point);

#endif
