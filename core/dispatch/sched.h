/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_SCHED_H
#define CORE_DISPATCH_SCHED_H

/*
 * From the plan to acts: builds the snapshot, lets plan.c judge, carries the
 * actions out.
 */

#include <stdbool.h>
#include <stdint.h>

struct dispatch;
struct sched;

struct sched *sched_create(struct dispatch *d);
void sched_destroy(struct sched *s); /* NULL is fine */

/* Something that the plan looks at changed: a pass at the end of the turn. */
void sched_mark(struct dispatch *d);
/* A pass when this hold-off (may be NULL) ends; at this time. */
struct holdoff_entry;
void sched_wake_at(struct dispatch *d, const struct holdoff_entry *e);
void sched_wake_us(struct dispatch *d, int64_t at_us);
/* Do the pass if one is due. */
void sched_work(struct dispatch *d);

/* Bring the reasons that containers carry up to date, before they are read. */
void sched_explain(struct dispatch *d);

/* Of the last pass, for metrics. */
int64_t sched_not_ready(const struct sched *s);
int64_t sched_no_place(const struct sched *s);
int64_t sched_processes(const struct sched *s);
/* May no instance be added, by our limit or by the cloud's? */
bool sched_at_quota(const struct sched *s);

#endif
