/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_STATS_H
#define CORE_APISERVER_STATS_H

/*
 * Numbers about the server, for /metrics. Loop thread.
 */

#include <stddef.h>
#include <stdint.h>

struct app;
struct buf;
struct stats;

struct stats *stats_create(void);
void stats_destroy(struct stats *s); /* NULL is fine */

/* A reply went out: method and path of the request, or "" when unread. */
void stats_reply(struct stats *s, const char *method, const char *path,
                 int status, int64_t us);
/* The Prometheus text, with the present values of app. */
void stats_print(struct stats *s, const struct app *app, unsigned conns,
                 struct buf *out);

#endif
