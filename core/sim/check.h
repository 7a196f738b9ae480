/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_CHECK_H
#define CORE_SIM_CHECK_H

/*
 * The invariants (doc/ARCHITECTURE.md, "One deterministic world runs the real
 * core"), checked at the moment when something happens in the world. They
 * read the world, never the dispatcher's ledger; a violation ends in
 * sim_fail(). What needs the dispatcher's own view (reasons for waiting) is
 * checked by the owner of the world.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/model/ctr_states.h"
#include "core/sim/world.h"

struct cloud_create_req;
struct sim_cloud;
struct sim_ctr;
struct sim_machine;
struct sim_proc;
struct sim_vm;

/* A payload starts: no other of this uuid alive, none ever before, the VM not
 * over-committed. Call after it was counted as live. */
void check_payload_start(struct sim *w, const struct sim_proc *p);
/* Unlock or cancel by the dispatcher: only what can have no live payload, now
 * or later. */
void check_release(struct sim *w, const struct sim_ctr *c, const char *what);
/* An unlock costs an attempt: only for a start that was tried, or for a
 * container that nobody wants. */
void check_unlock_cost(struct sim *w, const struct sim_ctr *c);
/* A cancel needs a cause: user, impossible, or a lost process. */
void check_cancel_cause(struct sim *w, const struct sim_ctr *c);
/* A runner writes a final state. */
void check_final(struct sim *w, const struct sim_ctr *c, enum ctr_state state);
/* A revoke leaves the dispatcher: not under a healthy payload that its user
 * still wants. */
void check_revoke_call(struct sim *w, const struct sim_ctr *c);
/* A create request leaves the dispatcher: its intent is durable. */
void check_create_call(struct sim *w, const struct sim_cloud *c,
                       const struct cloud_create_req *req);
/* A start command leaves the dispatcher: its intent is durable. */
void check_start_call(struct sim *w, const struct sim_ctr *c,
                      const struct sim_machine *m, int64_t attempt);
/* At most n instances for a token of a batch of n. */
void check_token(struct sim *w, const struct sim_cloud *c, const char *token,
                 int32_t count);
/* A destroy arrives: not for a foreign or a healthy, busy instance. */
void check_destroy(struct sim *w, const struct sim_vm *vm);

/* From time to time: every instance is needed or on its way down. `grace_us`:
 * how long one may stay after nobody wants anything any more. */
void check_idle(struct sim *w, int64_t grace_us);
/* At the end: every container final, no instance of ours left. */
void check_end(struct sim *w);

#endif
