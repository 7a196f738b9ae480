/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of an instance as one table: row = state, column = event, entry =
 * next state. `.` keeps the state. Letters in small print are conditional:
 *
 *   s  shutdown unless on hold
 *   e  the same, but only while nothing is on it: a busy instance is never
 *      ended because its boot probe or its quota says so
 *   r  running if something is on it, else idle
 *
 * Only KILL, FAILED and DRAINED disregard hold: an operator has spoken, or
 * there is nothing left to hold. (Drain replaces hold, so DRAINED never meets
 * it.) From SHUTDOWN there is one way: ABSENT.
 */

#include "core/dispatch/worker_fsm.h"

/*                    IN_SERVICE
 *                    |BUSY
 *                    ||EMPTY
 *                    |||IDLE_TIMEOUT
 *                    ||||BOOT_TIMEOUT
 *                    |||||SILENT
 *                    ||||||UNNEEDED
 *                    |||||||DRAINED
 *                    ||||||||FAILED
 *                    |||||||||KILL
 *                    ||||||||||ABSENT */
static const char table[WORKER_STATE_COUNT][WORKER_EVENT_COUNT + 1] = {
    [WORKER_UNKNOWN]  = "r...es.SSSG",
    [WORKER_BOOTING]  = "r...e.eSSSG",
    [WORKER_IDLE]     = ".R.s.seSSSG",
    [WORKER_RUNNING]  = "..I..s.SSSG",
    [WORKER_SHUTDOWN] = "..........G",
    [WORKER_GONE]     = "...........",
};

static const char *const state_labels[] = {
#define X(name, label) label,
    WORKER_STATES(X)
#undef X
};

static const char *const event_labels[] = {
#define X(name) #name,
    WORKER_EVENTS(X)
#undef X
};

enum worker_state worker_fsm_next(const struct worker_view *v,
                                  enum worker_event ev)
{
    switch (table[v->state][ev]) {
    case 'I':
        return WORKER_IDLE;
    case 'R':
        return WORKER_RUNNING;
    case 'S':
        return WORKER_SHUTDOWN;
    case 'G':
        return WORKER_GONE;
    case 'r':
        return v->busy ? WORKER_RUNNING : WORKER_IDLE;
    case 's':
        return v->hold ? v->state : WORKER_SHUTDOWN;
    case 'e':
        return v->hold || v->busy ? v->state : WORKER_SHUTDOWN;
    default:
        return v->state;
    }
}

const char *worker_state_label(enum worker_state s)
{
    return (unsigned) s < WORKER_STATE_COUNT ? state_labels[s] : "?";
}

const char *worker_event_label(enum worker_event ev)
{
    return (unsigned) ev < WORKER_EVENT_COUNT ? event_labels[ev] : "?";
}
