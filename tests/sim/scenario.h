/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

/*
 * What the scenario tests share. Each scenario runs under a few seeds, because
 * latencies decide races. To be included once, first, by a test program.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/sim/vm_impl.h"
#include "tests/sim/rig.h"

enum { SEEDS = 4, MINUTE = 60 };

static const int64_t long_time = 3600 * (int64_t) SIM_S;

#define EACH_SEED(r)                                                           \
    for (uint64_t seed_ = 1; seed_ <= SEEDS; seed_++)                          \
        for (struct rig *r = rig_create(seed_); r; rig_end(&r))

/* Every test ends like this: quiet, nothing left, no invariant violated. */
static inline void rig_end(struct rig **r)
{
    rig_finish(*r, long_time);
    if ((*r)->w->failure)
        fail_msg("an invariant is violated");
    rig_destroy(*r);
    *r = NULL;
}

static inline void run_s(struct rig *r, int64_t s)
{
    rig_run(r, s * SIM_S, NULL);
}

static inline bool one_live(struct rig *r)
{
    for (size_t i = 0; i < r->w->api->ctrs.n; i++)
        if (r->w->api->ctrs.v[i]->live > 0)
            return true;
    return false;
}

static inline void run_until_live(struct rig *r)
{
    assert_true(rig_run(r, long_time, one_live));
}

static inline void assert_complete(const struct sim_ctr *c)
{
    assert_int_equal(c->rec.state, CTR_COMPLETE);
    assert_int_equal(c->payload_starts, 1);
}

#endif
