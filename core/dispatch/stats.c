/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Metrics of the dispatcher.
 *
 * Families are declared in one table: the peer's, under the peer's names, so
 * that its dashboards go on working, and a few of ours. Counters and summaries
 * are moved where things happen; gauges that are sums over containers or
 * instances are computed when somebody asks for /metrics, not before.
 *
 * Loop thread only. Without a registry every function is a no-op.
 */

#include "core/dispatch/stats.h"

#include <stdlib.h>

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/metric.h"
#include "core/dispatch/core.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/creates.h"
#include "core/dispatch/gate.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/run.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/worker.h"
#include "core/model/itypes.h"

#define PEER "arvados_dispatchcloud_"
#define OURS "crunch_dispatch_cloud_"

/*      id, type, name, labels, help */
#define STATS(X)                                                              \
    X(RUNNING, GAUGE, PEER "containers_running", "",                          \
      "containers running or starting on instances")                          \
    X(NOT_STARTED, GAUGE, PEER "containers_allocated_not_started", "",        \
      "containers mapped to an instance that is not in service yet")          \
    X(NO_PLACE, GAUGE, PEER "containers_not_allocated_over_quota", "",        \
      "containers without any place")                                         \
    X(LONGEST_WAIT, GAUGE, PEER "containers_longest_wait_time_seconds", "",   \
      "age of the oldest container that waits")                               \
    X(QUEUE_TO_RUN, SUMMARY,                                                  \
      PEER "containers_time_from_queue_to_crunch_run_seconds", "",            \
      "from a container's creation to the end of its start command")          \
    X(ENTRIES, GAUGE, PEER "queue_entries", "state,instance_type",            \
      "containers in the local view of the queue")                            \
    X(MAX_CONCURRENT, GAUGE, PEER "max_concurrent_containers", "",            \
      "limit by what the API server bears, 0 = none")                         \
    X(LAST_503, GAUGE, PEER "last_503_time", "",                              \
      "time of the API server's last refusal for overload, 0 = never")        \
    X(AT_QUOTA, GAUGE, PEER "at_quota", "",                                   \
      "1 while no instance may be added")                                     \
    X(INSTANCES, GAUGE, PEER "instances_total", "category,instance_type",     \
      "instances")                                                            \
    X(PRICE, GAUGE, PEER "instances_price", "category",                       \
      "sum of prices per hour")                                               \
    X(VCPUS, GAUGE, PEER "vcpus_total", "category", "sum of VCPUs")           \
    X(MEMORY, GAUGE, PEER "memory_bytes_total", "category", "sum of memory")  \
    X(BOOT, COUNTER, PEER "boot_outcomes", "outcome",                         \
      "how boots ended")                                                      \
    X(GONE, COUNTER, PEER "instances_disappeared", "state",                   \
      "instances gone, by their last state")                                  \
    X(TO_SSH, SUMMARY, PEER "instances_time_to_ssh_seconds", "",              \
      "from first sight to the first session")                                \
    X(TO_READY, SUMMARY,                                                      \
      PEER "instances_time_to_ready_for_container_seconds", "",               \
      "from the first session to service")                                    \
    X(TO_GONE, SUMMARY,                                                       \
      PEER                                                                    \
      "instances_time_from_shutdown_request_to_disappearance_seconds", "",    \
      "from the accepted destroy to confirmed absence")                       \
    X(PROBE, SUMMARY, PEER "instances_run_probe_duration_seconds", "outcome", \
      "duration of looks at what runs")                                       \
    X(PROBE_MAX, GAUGE, PEER "probe_age_seconds_max", "",                     \
      "worst time since the last sign of life")                               \
    X(OPERATIONS, COUNTER, PEER "driver_operations", "operation,error",       \
      "calls of cloud drivers")                                               \
    X(UNKNOWN_CREATES, GAUGE, OURS "creates_unknown", "",                     \
      "create calls whose outcome is not known yet")                          \
    X(LOST, COUNTER, OURS "processes_lost", "",                               \
      "processes that died with their instance")

enum stat {
#define X(id, type, name, labels, help) STAT_##id,
    STATS(X)
#undef X
    STAT_COUNT
};

struct stats {
    struct metric *f[STAT_COUNT];
};

struct stats *stats_create(struct metrics *m)
{
    static const char *const outcomes[] = {"success", "failure", "aborted",
                                           "disappeared"};
    static const char *const operations[] = {"Create", "List", "Destroy",
                                             "SetTags"};

    if (!m)
        return NULL;
    struct stats *s = MEM_NEW(struct stats);

#define X(id, type, name, labels, help)                                       \
    s->f[STAT_##id] = metric_add(m, METRIC_##type, name, help, labels);
    STATS(X)
#undef X
    for (size_t i = 0; i < MEM_COUNT(outcomes); i++)
        metric_inc(s->f[STAT_BOOT], 0, outcomes[i], NULL, NULL);
    for (size_t i = 0; i < MEM_COUNT(operations); i++) {
        metric_inc(s->f[STAT_OPERATIONS], 0, operations[i], "0", NULL);
        metric_inc(s->f[STAT_OPERATIONS], 0, operations[i], "1", NULL);
    }
    return s;
}

void stats_destroy(struct stats *s)
{
    free(s);
}

static double seconds(int64_t us)
{
    return (double) us / 1e6;
}

static void boot_outcome(struct worker *w, const char *outcome)
{
    if (w->boot_counted)
        return;
    w->boot_counted = true;
    metric_inc(w->d->stats->f[STAT_BOOT], 1, outcome, NULL, NULL);
}

void stats_connected(struct worker *w)
{
    if (!w->d->stats || w->connected_us > 0)
        return;
    w->connected_us = core_now(w->d);
    if (w->state == WORKER_BOOTING)
        metric_observe(w->d->stats->f[STAT_TO_SSH],
                       seconds(w->connected_us - w->created_us), NULL, NULL,
                       NULL);
}

void stats_in_service(struct worker *w, enum worker_state from)
{
    if (!w->d->stats)
        return;
    boot_outcome(w, "success");
    if (from == WORKER_BOOTING)
        metric_observe(w->d->stats->f[STAT_TO_READY],
                       seconds(core_now(w->d) - w->connected_us), NULL, NULL,
                       NULL);
}

void stats_shutdown(struct worker *w, enum worker_state from)
{
    if (!w->d->stats)
        return;
    boot_outcome(w, from < WORKER_IDLE && !deadline_armed(&w->boot_limit)
                        ? "failure"
                        : "aborted");
}

void stats_gone(struct worker *w, enum worker_state from)
{
    struct stats *s = w->d->stats;

    if (!s)
        return;
    boot_outcome(w, "disappeared");
    metric_inc(s->f[STAT_GONE], 1, worker_state_label(from), NULL, NULL);
    metric_inc(s->f[STAT_LOST], (double) w->runs.n, NULL, NULL, NULL);
    if (w->destroyed)
        metric_observe(s->f[STAT_TO_GONE],
                       seconds(core_now(w->d) - w->destroy_us), NULL, NULL,
                       NULL);
}

void stats_cloud_op(struct dispatch *d, const char *operation, bool failed)
{
    if (d->stats)
        metric_inc(d->stats->f[STAT_OPERATIONS], 1, operation,
                   failed ? "1" : "0", NULL);
}

void stats_started(struct qent *q)
{
    if (q->d->stats && q->c.created_us > 0)
        metric_observe(q->d->stats->f[STAT_QUEUE_TO_RUN],
                       seconds(core_wall(q->d) - q->c.created_us), NULL, NULL,
                       NULL);
}

void stats_probe(struct worker *w, bool ok, int64_t us)
{
    if (w->d->stats)
        metric_observe(w->d->stats->f[STAT_PROBE], seconds(us),
                       ok ? "success" : "fail", NULL, NULL);
}

/* --- gauges -------------------------------------------------------------- */

static void set(struct stats *s, enum stat which, double v)
{
    metric_set(s->f[which], v, NULL, NULL, NULL);
}

static void update_queue(struct dispatch *d, struct stats *s)
{
    size_t n;
    struct qent *const *order = cqueue_order(d->queue, &n);
    int64_t oldest = 0, running = 0;

    metric_zero(s->f[STAT_ENTRIES]);
    for (size_t i = 0; i < n; i++) {
        const struct qent *q = order[i];
        const struct itype *it = q->shape && q->shape->n_types > 0
                                     ? q->shape->types[0]
                                     : NULL;

        metric_inc(s->f[STAT_ENTRIES], 1, ctr_state_name(q->c.state),
                   it ? it->name : "", NULL);
        running += q->runs != NULL;
        if (!q->runs && q->c.state != CTR_RUNNING && q->c.created_us > 0 &&
            (oldest == 0 || q->c.created_us < oldest))
            oldest = q->c.created_us;
    }
    set(s, STAT_RUNNING, (double) running);
    set(s, STAT_LONGEST_WAIT,
        oldest > 0 ? seconds(core_wall(d) - oldest) : 0);
}

/* As the peer sorts them; what is going counts as shutdown. */
static const char *category(const struct worker *w)
{
    if (w->runs.n > 0)
        return "inuse";
    if (w->behavior == DISPATCH_HOLD)
        return "hold";
    if (w->state == WORKER_IDLE || w->state == WORKER_RUNNING)
        return "idle";
    return worker_state_label(w->state);
}

static void update_instances(struct dispatch *d, struct stats *s)
{
    static const enum stat sums[] = {STAT_INSTANCES, STAT_PRICE, STAT_VCPUS,
                                     STAT_MEMORY};
    int64_t worst = 0;

    for (size_t i = 0; i < MEM_COUNT(sums); i++)
        metric_zero(s->f[sums[i]]);
    for (size_t i = 0; i < d->pool->list.n; i++) {
        const struct worker *w = d->pool->list.v[i];
        const char *cat = category(w);
        int64_t quiet = core_now(d) - w->good_us;

        metric_inc(s->f[STAT_INSTANCES], 1, cat, w->type_name, NULL);
        metric_inc(s->f[STAT_PRICE], w->price > 0 ? w->price : 0, cat, NULL,
                   NULL);
        metric_inc(s->f[STAT_VCPUS], w->type ? (double) w->type->vcpus : 0,
                   cat, NULL, NULL);
        metric_inc(s->f[STAT_MEMORY], w->type ? (double) w->type->ram : 0,
                   cat, NULL, NULL);
        if (w->ready_us > 0 && w->state <= WORKER_RUNNING && quiet > worst)
            worst = quiet;
    }
    set(s, STAT_PROBE_MAX, seconds(worst));
}

static int64_t count_unknown(struct dispatch *d)
{
    const char *key = NULL;
    const struct create *c;
    int64_t n = 0;

    while ((c = map_next(d->pool->creates, &key)))
        n += c->state == CREATE_UNKNOWN;
    return n;
}

void stats_update(struct dispatch *d)
{
    struct stats *s = d->stats;

    if (!s)
        return;
    sched_explain(d);
    update_queue(d, s);
    update_instances(d, s);
    set(s, STAT_NOT_STARTED, (double) sched_not_ready(d->sched));
    set(s, STAT_NO_PLACE, (double) sched_no_place(d->sched));
    set(s, STAT_MAX_CONCURRENT,
        (double) gate_processes(d->gate, sched_processes(d->sched)));
    set(s, STAT_LAST_503, seconds(gate_last_503_us(d->gate)));
    set(s, STAT_AT_QUOTA, sched_at_quota(d->sched));
    set(s, STAT_UNKNOWN_CREATES, (double) count_unknown(d));
}
