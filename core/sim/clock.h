/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_CLOCK_H
#define CORE_SIM_CLOCK_H

/* The clock and entropy ports over the virtual clock and a seeded stream. */

struct sim;

void sim_clock_init(struct sim *w);
/* Forget every timer (their owner is dead). */
void sim_clock_crash(struct sim *w);

#endif
