/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_JOURNAL_H
#define CORE_SIM_JOURNAL_H

/*
 * The journal port: records in memory, batches that become durable after a
 * seeded delay, in the order of the calls. At a crash every batch that is not
 * durable is lost, or (by chance) a prefix of them kept, so that what is
 * missing is always a whole suffix.
 */

#include <stdbool.h>

#include "core/port/journal.h"
#include "core/sim/world.h"

struct sim_batch;

struct sim_journal {
    struct journal_port port;
    struct sim *w;
    struct sim_rng rng;
    VEC(struct journal_rec) recs;    /* durable, ordered by (kind, key) */
    VEC(struct journal_rec) heard;   /* the same as far as acknowledged */
    VEC(struct sim_batch *) pending; /* appended, not durable yet */
    int64_t last_us;                 /* when the last batch becomes durable */
    int64_t fail_until_us;           /* appends fail until then */
    int64_t latency_lo_us, latency_hi_us;
};

struct sim_journal *sim_journal_create(struct sim *w);
void sim_journal_destroy(struct sim_journal *j);
void sim_journal_crash(struct sim_journal *j);

/* An acknowledged record, as the living dispatcher was told; or NULL. */
const struct journal_rec *sim_journal_heard(const struct sim_journal *j,
                                            enum journal_kind kind,
                                            const char *key);
/* Appends fail for so long. */
void sim_journal_fail(struct sim_journal *j, int64_t for_us);

#endif
