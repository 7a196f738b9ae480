/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the simulator.
 *
 * Nothing here depends on addresses, time or the C library: the same seed and
 * stream name give the same sequence on every machine. Called from anywhere in
 * core/sim; never a source of randomness for anything that is deployed.
 */

#include "core/sim/rng.h"

#include <string.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void sim_rng_init(struct sim_rng *r, uint64_t seed, const char *stream)
{
    uint64_t x = seed;

    /* FNV-1a over the name, started from the seed. */
    x ^= UINT64_C(0xcbf29ce484222325);
    for (; *stream; stream++)
        x = (x ^ (unsigned char) *stream) * UINT64_C(0x100000001b3);
    for (unsigned i = 0; i < 4; i++)
        r->s[i] = splitmix(&x);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t sim_rng_next(struct sim_rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

int64_t sim_rng_range(struct sim_rng *r, int64_t lo, int64_t hi)
{
    uint64_t width = (uint64_t) hi - (uint64_t) lo + 1;

    if (width == 0)
        return (int64_t) sim_rng_next(r);
    /* The bias is below 2^-32 for every width used here. */
    return (int64_t) ((uint64_t) lo + sim_rng_next(r) % width);
}

bool sim_rng_chance(struct sim_rng *r, int64_t n)
{
    return (int64_t) (sim_rng_next(r) % 10000) < n;
}

void sim_rng_bytes(struct sim_rng *r, void *out, size_t n)
{
    unsigned char *p = out;

    while (n > 0) {
        uint64_t x = sim_rng_next(r);
        size_t k = n < sizeof x ? n : sizeof x;

        memcpy(p, &x, k);
        p += k;
        n -= k;
    }
}
