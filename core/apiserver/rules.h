/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_RULES_H
#define CORE_APISERVER_RULES_H

/*
 * Who may change what in a container, and when; and the arithmetic of
 * priorities. Pure. Source: Arvados API, "containers" (states, transitions,
 * permissions), narrowed where attempts make it possible: nobody but the
 * holder of the lock and the live attempt writes a locked container, except
 * that an administrator may cancel it or change its priority.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/model/ctr_states.h"

struct err;

enum rules_who {
    RULES_USER,    /* any other token: may change nothing */
    RULES_ADMIN,   /* an administrator, the lock being someone else's */
    RULES_OWNER,   /* an administrator: his lock, or nobody's */
    RULES_ATTEMPT, /* the runner: the token of the live attempt */
    RULES_PAYLOAD  /* the container's own token */
};

/*
 * May `who` change the columns in `changed` (bits of C_*; the state not among
 * them, values that are equal already neither) while the state goes from
 * `from` to `to`? ERR_AUTH (403) or ERR_CONFLICT (422, the text names state or
 * column).
 */
int rules_update(enum rules_who who, enum ctr_state from, enum ctr_state to,
                 uint64_t changed, struct err *err);

/* May it be locked? ERR_CONFLICT: not Queued, or priority not above 0. */
int rules_lock(enum ctr_state state, int64_t priority, struct err *err);

/* The state that an unlock leads to, at this count of locks. */
enum ctr_state rules_unlocked(int64_t lock_count, int64_t max_attempts);

/* The priority that one committed request gives its container: the parent's
 * if a container made the request, else from the user's number and the age. */
int64_t rules_priority(int64_t requested, int64_t created_us,
                       bool has_parent, int64_t parent_priority);

/* May the state of a request change so? ERR_CONFLICT. */
int rules_request_state(enum cr_state from, enum cr_state to,
                        struct err *err);
/* May these columns (bits of R_*) of a request change in that state (the new
 * one)? ERR_CONFLICT names one. */
int rules_request_columns(enum cr_state from, enum cr_state to,
                          uint64_t changed, struct err *err);

#endif
