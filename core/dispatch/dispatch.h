/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_DISPATCH_H
#define CORE_DISPATCH_DISPATCH_H

/*
 * The dispatcher's decisions, as one object over the six ports.
 *
 * This is the only header of core/dispatch that programs include. Everything
 * runs on the loop thread; nothing here blocks. The same object runs in the
 * simulator and in crunch-dispatch-cloud.
 *
 * Life: create -> start (replays the journal, opens the clouds, asks who we
 * are, then works) -> stop (no new effects; calls back when no op of ours is
 * in flight any more, bounded by the deadlines; running containers and
 * instances are left alone) -> destroy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/model/dispatch_cfg.h"

struct api_port;
struct clock_port;
struct cloud_port;
struct ctr;
struct dispatch;
struct entropy_port;
struct err;
struct exec_port;
struct journal_port;
struct logger;
struct metrics;

struct dispatch_ports {
    struct clock_port *clock;
    struct entropy_port *entropy;
    struct journal_port *journal;
    struct api_port *api;
    struct exec_port *exec;
    struct cloud_port **clouds; /* one per cfg->backends, same order */
};

/* cfg and ports are borrowed until destroy. logger and metrics may be NULL. */
struct dispatch *dispatch_create(const struct dispatch_cfg *cfg,
                                 const struct dispatch_ports *ports,
                                 struct logger *lg, struct metrics *metrics);
/* ready(arg) fires once, after the journal was replayed, we know who we are,
 * and each cloud was listed once or failed to answer. fatal(arg, err) fires
 * at most once, when going on would be wrong (damaged journal, our token
 * refused). */
void dispatch_start(struct dispatch *d, void (*ready)(void *arg),
                    void (*fatal)(void *arg, const struct err *err),
                    void *arg);
void dispatch_stop(struct dispatch *d, void (*stopped)(void *arg), void *arg);
void dispatch_destroy(struct dispatch *d); /* after stopped, or at once in a
                                            * simulated crash; NULL is fine */

/* --- what operators see: valid during the call only ---------------------- */

/* An instance, or a create call that is in flight (id ""). */
struct dispatch_instance {
    const char *backend, *id, *name, *address;
    const char *itype, *provider_type;
    double price;
    const char *state;          /* worker state label */
    const char *idle_behavior;  /* run, hold, drain */
    const char *reason;         /* why it is up, or why it is going */
    const char *last_uuid;      /* last container, or "" */
    const char *const *running; /* uuids on it */
    size_t n_running;
    int64_t last_busy_us;       /* wall; 0 = never */
    int64_t created_us;         /* wall; when we first saw it */
};
void dispatch_each_instance(struct dispatch *d,
                            void (*cb)(void *arg,
                                       const struct dispatch_instance *i),
                            void *arg);

/* A container in scheduling order. */
struct dispatch_container {
    const struct ctr *c;
    const struct need *need;
    const struct itype *const *types; /* eligible, cheapest first */
    size_t n_types;
    int64_t first_seen_us;      /* wall */
    const char *status;         /* for its user: why it waits, or "" */
    const char *instance;       /* where it is mapped or runs, or "" */
    const char *process;        /* none, starting, running, exited, unseen */
};
void dispatch_each_container(struct dispatch *d,
                             void (*cb)(void *arg,
                                        const struct dispatch_container *c),
                             void *arg);
/* false: not known here. */
bool dispatch_find_container(struct dispatch *d, const char *uuid,
                             void (*cb)(void *arg,
                                        const struct dispatch_container *c),
                             void *arg);

struct dispatch_health {
    int64_t poll_age_ms;   /* since the last good poll began; -1 = never */
    int64_t list_age_ms;   /* oldest good list over backends; -1 = never */
    int64_t probe_age_ms;  /* worst over instances in service; -1 = none */
    bool journal_ok;
    bool api_ok;
    const char *problem;   /* one line, "" when all is well */
};
void dispatch_get_health(struct dispatch *d, struct dispatch_health *ret);

/* --- what operators may do ----------------------------------------------- */

enum dispatch_behavior { DISPATCH_RUN, DISPATCH_HOLD, DISPATCH_DRAIN };

/* -1/NOT_FOUND when there is no such instance. Ids are unique over backends
 * in practice; "backend/id" is accepted too. */
int dispatch_set_behavior(struct dispatch *d, const char *instance,
                          enum dispatch_behavior b, struct err *err);
int dispatch_kill_instance(struct dispatch *d, const char *instance,
                           const char *reason, struct err *err);
int dispatch_kill_container(struct dispatch *d, const char *uuid,
                            const char *reason, struct err *err);

/* The numbers of the gauges, brought up to date (before /metrics). */
void dispatch_update_metrics(struct dispatch *d);

#endif
