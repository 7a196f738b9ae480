/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCHER_ADMIN_H
#define CORE_DISPATCHER_ADMIN_H

/*
 * The management API of the dispatcher: Arvados' routes, verbatim, and
 * `explain` (crunch-dispatch-cloud(8), MANAGEMENT API).
 */

struct admin;
struct dispatch;
struct err;
struct httpd;
struct logger;
struct loop;
struct metrics;

struct admin_options {
    struct loop *loop;
    struct logger *log;
    struct metrics *metrics;
    const char *url;         /* http://address:port; numeric or localhost */
    const char *token;       /* ManagementToken; "" = everything is refused */
    const char *cluster_id;
};

/* Binds and listens. ERR_CONFIG for a URL that cannot be served,
 * ERR_TRANSIENT and others when it cannot be bound. */
struct admin *admin_create(const struct admin_options *o, struct err *err);
/* Until there is a dispatcher (NULL), routes that need one answer 503. */
void admin_set_dispatch(struct admin *a, struct dispatch *d);
/* Shown by /_health/ping while there is no dispatcher. */
void admin_set_problem(struct admin *a, const char *text);
void admin_stop(struct admin *a, void (*done)(void *arg), void *arg);
void admin_destroy(struct admin *a); /* NULL is fine */

#endif
