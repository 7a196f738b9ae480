/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_CHAOS_H
#define CORE_SIM_CHAOS_H

/*
 * Mixed trouble from a seed: rates for the faults that are drawn at each
 * opportunity, and at random moments one of those that are events (an instance
 * dies, hangs, the API server is down, the dispatcher is killed, ...).
 * It ends with sim_calm().
 */

#include <stdint.h>

struct sim;
struct sim_chaos;

/* Trouble from now on, for for_us. */
struct sim_chaos *sim_chaos_create(struct sim *w, int64_t for_us);
void sim_chaos_destroy(struct sim_chaos *x); /* NULL is fine */

#endif
