/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_METRIC_H
#define CORE_BASE_METRIC_H

/*
 * Counters, gauges, histograms and summaries, printed in the Prometheus text
 * format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats).
 * One registry per program, used on its loop thread only.
 */

#include <stddef.h>

struct buf;
struct metrics;
struct metric;

enum metric_type {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM, /* buckets: 1 ms .. 10 000 s, powers of ten x 1,2.5,5 */
    METRIC_SUMMARY    /* quantiles .5 .9 .95 .99 over the last 1024 values */
};

enum { METRIC_LABELS = 3 };

struct metrics *metrics_create(void);
void metrics_destroy(struct metrics *m);

/* Register a family. labels: up to METRIC_LABELS names, comma-separated, ""
 * for none. name and help must be literals. The family lives as long as the
 * registry. Registering a name twice returns the first family. */
struct metric *metric_add(struct metrics *m, enum metric_type type,
                          const char *name, const char *help,
                          const char *labels);

/* Label values: as many as the family has labels, further ones ignored; NULL
 * counts as "". At most 1,000 series per family; more are dropped. */
void metric_inc(struct metric *f, double by, const char *l1, const char *l2,
                const char *l3);
void metric_set(struct metric *f, double value, const char *l1,
                const char *l2, const char *l3);
void metric_observe(struct metric *f, double value, const char *l1,
                    const char *l2, const char *l3);
/* Set every series of a gauge family to 0 (before recomputing it). */
void metric_zero(struct metric *f);
double metric_value(const struct metric *f, const char *l1, const char *l2,
                    const char *l3); /* 0 when absent; for tests */

void metrics_print(const struct metrics *m, struct buf *out);

#endif
