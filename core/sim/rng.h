/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_RNG_H
#define CORE_SIM_RNG_H

/*
 * Seeded random numbers for the simulator: xoshiro256** (Blackman and Vigna,
 * 2018), its state filled by splitmix64. Every user has a stream of its own,
 * named by a text, so that one more draw in one place shifts no other place.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_rng {
    uint64_t s[4];
};

void sim_rng_init(struct sim_rng *r, uint64_t seed, const char *stream);
uint64_t sim_rng_next(struct sim_rng *r);
/* Uniform in [lo, hi]; lo <= hi. */
int64_t sim_rng_range(struct sim_rng *r, int64_t lo, int64_t hi);
/* True with probability n/10000. */
bool sim_rng_chance(struct sim_rng *r, int64_t n);
void sim_rng_bytes(struct sim_rng *r, void *out, size_t n);

#endif
