/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_FAULTS_H
#define CORE_SIM_FAULTS_H

/*
 * What can go wrong in the world, and where the dispatcher can be killed.
 *
 * Faults with `rate` 1 are drawn at each opportunity by the part that has it;
 * those with 0 are events that chaos (chaos.h) or a scenario brings about at
 * some moment. Every firing is counted.
 */

/*      name             label              rate  meaning */
#define SIM_FAULTS(X)                                                          \
    X(API_BUSY, "api-busy", 1, "503 with Retry-After")                         \
    X(API_LOST_REQUEST, "api-lost-request", 1,                                 \
      "connection lost, nothing committed")                                    \
    X(API_LOST_REPLY, "api-lost-reply", 1, "connection lost after the commit") \
    X(API_SLOW, "api-slow", 1, "the commit comes after the caller's deadline") \
    X(API_DOWN, "api-down", 0, "the server refuses connections for a while")   \
    X(FEED_RESYNC, "feed-resync", 1, "the change feed starts a new epoch")     \
    X(USER_CANCEL, "user-cancel", 0, "priority 0 for good")                    \
    X(USER_HOLD, "user-hold", 0, "priority 0, later up again")                 \
    X(CREATE_TRANSIENT, "create-transient", 1,                                 \
      "create refused, class transient")                                       \
    X(CREATE_QUOTA, "create-quota", 1,                                         \
      "create refused, class quota, for a while")                              \
    X(CREATE_CAPACITY, "create-capacity", 1,                                   \
      "create refused: no more of this type, for a while")                     \
    X(CREATE_RATE, "create-rate", 1, "create refused, class rate-limited")     \
    X(CREATE_LOST, "create-lost", 1,                                           \
      "create reached nobody; the caller cannot know")                         \
    X(CREATE_NO_REPLY, "create-no-reply", 1, "instance made, reply lost")      \
    X(CREATE_LATE, "create-late", 1,                                           \
      "instance made long after the caller's deadline")                        \
    X(CREATE_HIDDEN, "create-hidden", 1, "instance not listed for a while")    \
    X(CREATE_DOOMED, "create-doomed", 1,                                       \
      "accepted, reported as failed by a later list")                          \
    X(LIST_EMPTY, "list-empty", 1, "complete answer without any instance")     \
    X(LIST_SHORT, "list-short", 1,                                             \
      "complete answer that leaves instances out")                             \
    X(LIST_PARTIAL, "list-partial", 1, "incomplete answer that says so")       \
    X(LIST_STALE, "list-stale", 1, "an older state of the world")              \
    X(LIST_FAIL, "list-fail", 1, "breaks off after some instances")            \
    X(LIST_SLOW, "list-slow", 1, "not done by the deadline")                   \
    X(DESTROY_SLOW, "destroy-slow", 1, "accepted, takes minutes")              \
    X(DESTROY_REFUSED, "destroy-refused", 1,                                   \
      "destroy refused, class transient")                                      \
    X(DESTROY_LOST, "destroy-lost", 1,                                         \
      "destroy reached nobody; the caller cannot know")                        \
    X(DESTROY_NO_REPLY, "destroy-no-reply", 1, "destroyed, reply lost")        \
    X(TAGS_LOST, "tags-lost", 1, "set_tags without effect or reply")           \
    X(VM_DEATH, "vm-death", 0, "an instance dies and leaves the list")         \
    X(VM_DUD, "vm-dud", 1, "an instance that never boots")                     \
    X(CONNECT_REFUSED, "connect-refused", 1,                                   \
      "connection refused by a healthy instance")                              \
    X(SESSION_BREAK, "session-break", 0, "a session's transport breaks")       \
    X(EXEC_LOST, "exec-lost", 1,                                               \
      "command never executed; the caller cannot know")                        \
    X(EXEC_NO_REPLY, "exec-no-reply", 1, "command executed, result lost")      \
    X(START_LATE, "start-late", 1,                                             \
      "an accepted start command executes long after its session closed")      \
    X(WATCH_END, "watch-end", 0, "a watch stream ends by itself")              \
    X(HANG_SHORT, "hang-short", 0,                                             \
      "sshd and its sessions stopped for less than TimeoutProbe")              \
    X(HANG_LONG, "hang-long", 0,                                               \
      "sshd and its sessions stopped for more than TimeoutProbe")              \
    X(CUT, "cut", 0,                                                           \
      "an instance reaches nobody and is reached by nobody for a while")       \
    X(RUNNER_CRASH_EARLY, "runner-crash-early", 1,                             \
      "crunch-run dies before the container runs")                             \
    X(RUNNER_CRASH_LATE, "runner-crash-late", 1,                               \
      "crunch-run dies while the payload runs")                                \
    X(STALE_LONG, "stale-long", 1,                                             \
      "a payload tree that outlives its dead runner for long")                 \
    X(TERM_IGNORED, "term-ignored", 1, "a payload that is slow to die")        \
    X(VM_REBOOT, "vm-reboot", 0, "an instance starts anew")                    \
    X(NODE_BROKEN, "node-broken", 0, "a node marks itself broken")             \
    X(JOURNAL_SLOW, "journal-slow", 1, "an append takes seconds")              \
    X(JOURNAL_FAIL, "journal-fail", 0, "appends fail for a while")             \
    X(CRASH, "crash", 0, "the dispatcher is killed and started again")         \
    X(FREEZE, "freeze", 0, "the dispatcher is stopped for a while")            \
    X(CRASH_LOSES, "crash-loses", 0,                                           \
      "a crash lost unacknowledged journal batches")                           \
    X(CRASH_KEEPS, "crash-keeps", 0,                                           \
      "a crash kept unacknowledged journal batches")                           \
    X(CRASH_IN_FLIGHT, "crash-in-flight", 0,                                   \
      "a request took effect after its sender had died")                       \
    X(CLOCK_JUMP, "clock-jump", 0, "wall clock set back or forward")

enum sim_fault {
#define X(name, label, rate, help) SIM_FAULT_##name,
    SIM_FAULTS(X)
#undef X
        SIM_FAULT_COUNT
};

/*
 * Moments at which a scenario may kill the dispatcher. _DURABLE, _DONE: the
 * world has done it, the dispatcher has not heard yet; _HEARD: it has heard,
 * and has reacted in the same turn.
 */
#define SIM_POINTS(X)                                                          \
    X(LOCK_DONE, "lock-done")                                                  \
    X(LOCK_HEARD, "lock-heard")                                                \
    X(APPEND, "append")                                                        \
    X(INTENT_DURABLE, "intent-durable")                                        \
    X(INTENT_HEARD, "intent-heard")                                            \
    X(CREATE_DONE, "create-done")                                              \
    X(CREATE_HEARD, "create-heard")                                            \
    X(CONNECTED, "connected")                                                  \
    X(ATTEMPT_DONE, "attempt-done")                                            \
    X(ATTEMPT_HEARD, "attempt-heard")                                          \
    X(START_DURABLE, "start-durable")                                          \
    X(START_DURABLE_HEARD, "start-durable-heard")                              \
    X(START_DONE, "start-done")                                                \
    X(START_HEARD, "start-heard")                                              \
    X(RUNNING, "running")                                                      \
    X(EXITED, "exited")                                                        \
    X(FINAL, "final")                                                          \
    X(REVOKE_DONE, "revoke-done")                                              \
    X(REVOKE_HEARD, "revoke-heard")                                            \
    X(UNLOCK_DONE, "unlock-done")                                              \
    X(CANCEL_DONE, "cancel-done")                                              \
    X(DESTROY_DONE, "destroy-done")                                            \
    X(DESTROY_HEARD, "destroy-heard")

enum sim_point {
#define X(name, label) SIM_POINT_##name,
    SIM_POINTS(X)
#undef X
        SIM_POINT_COUNT
};

const char *sim_fault_label(enum sim_fault f);
const char *sim_point_label(enum sim_point p);

#endif
