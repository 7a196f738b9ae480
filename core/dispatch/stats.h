/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_STATS_H
#define CORE_DISPATCH_STATS_H

/*
 * Metrics, counted where things happen. Names are the peer's where it has
 * them. All functions do nothing without a registry.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/dispatch/worker_fsm.h"

struct dispatch;
struct metrics;
struct qent;
struct stats;
struct worker;

struct stats *stats_create(struct metrics *m); /* m NULL: NULL */
void stats_destroy(struct stats *s);           /* NULL is fine */

void stats_in_service(struct worker *w, enum worker_state from);
void stats_connected(struct worker *w);
void stats_shutdown(struct worker *w, enum worker_state from);
void stats_gone(struct worker *w, enum worker_state from);
void stats_cloud_op(struct dispatch *d, const char *operation, bool failed);
void stats_started(struct qent *q);
void stats_probe(struct worker *w, bool ok, int64_t us);
/* Bring the gauges up to date. */
void stats_update(struct dispatch *d);

#endif
