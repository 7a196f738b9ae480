/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_RIG_H
#define TESTS_SIM_RIG_H

/*
 * A simulated world with the real core/dispatch in it: settings, life, death
 * and resurrection of the dispatcher, and the checks that need its own view.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/vec.h"
#include "core/dispatch/dispatch.h"
#include "core/sim/api.h"
#include "core/sim/check.h"
#include "core/sim/cloud.h"
#include "core/sim/journal.h"
#include "core/sim/net.h"
#include "core/sim/vm.h"
#include "core/sim/world.h"

struct sim_chaos;

struct rig {
    struct sim *w;
    struct sim_cloud *cloud;
    struct dispatch_cfg cfg;
    struct itype types[4];
    struct cloud_port *ports[SIM_CLOUDS];
    struct sim_rng rng;
    struct logger *logger;
    struct dispatch *d; /* NULL while it is down */
    bool ready;
    bool stays_down;                /* not started again after a crash */
    bool reasons_off;               /* do not ask for reasons */
    int64_t down_lo_us, down_hi_us; /* how long it is down after a crash */
    unsigned crashes;
    VEC(unsigned) silent; /* per container: checks without a reason */
};

/* A world of one cloud with the types small (2 VCPUs, 4 GiB), medium (4, 8)
 * and large (8, 16); the dispatcher is not started. */
struct rig *rig_create(uint64_t seed);
void rig_destroy(struct rig *r);
void rig_start(struct rig *r);
/* Kill it now; it comes back after a while. */
void rig_crash(struct rig *r);

/* Step the world: for so long, or until done(r) says so (may be NULL), or an
 * invariant is violated. true: done. */
bool rig_run(struct rig *r, int64_t for_us, bool (*done)(struct rig *r));
bool rig_all_final(struct rig *r); /* for rig_run */
bool rig_quiet(struct rig *r);     /* all final, and no instance left */

/* Let everything end: quiet within for_us, else a violation. Then the checks
 * of the end. */
void rig_finish(struct rig *r, int64_t for_us);

/* One more backend; before rig_start. */
struct sim_cloud *rig_add_cloud(struct rig *r, const char *name);
/* This type is offered by this backend only. */
void rig_offer(struct rig *r, const char *type, const char *backend);

struct sim_ctr *rig_submit(struct rig *r, int64_t vcpus, int64_t run_s);

#endif
