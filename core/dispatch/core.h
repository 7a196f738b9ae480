/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_CORE_H
#define CORE_DISPATCH_CORE_H

/*
 * What the modules of the dispatcher share: the ports, the time, and each
 * other. Included by the modules that act; the pure ones do without.
 *
 * Everything runs on the loop thread. Nothing acts inside a callback of a
 * port beyond recording what it learnt: it marks what changed (queue_mark,
 * sched_mark) and the one pass per turn decides (dispatch.c, on_turn).
 */

#include "core/base/vec.h"
#include "core/dispatch/deadline.h"
#include "core/dispatch/dispatch.h"

struct cqueue;
struct gate;
struct jr;
struct journal_rec;
struct op_result;
struct pool;
struct sched;
struct stats;

enum core_phase {
    CORE_NEW,
    CORE_REPLAY,  /* reading the journal */
    CORE_HELLO,   /* asking who we are */
    CORE_LOOKING, /* opening and listing the clouds, first poll */
    CORE_WORKING,
    CORE_STOPPING,
    CORE_STOPPED
};

struct dispatch {
    const struct dispatch_cfg *cfg;
    struct dispatch_ports port;
    struct logger *lg;
    struct deadlines *deadlines;
    struct stats *stats;
    struct jr *jr;
    struct gate *gate;
    struct cqueue *queue;
    struct pool *pool;
    struct sched *sched;

    VEC(struct journal_rec) replay; /* what the journal held, at the start */
    enum core_phase phase;
    int64_t ops;          /* port operations in flight */
    char token_uuid[28];
    uint32_t features;    /* enum api_feature */
    bool api_ok;          /* the last request was answered */
    struct deadline hello_retry;
    struct deadline finish;
    unsigned hello_level;

    void (*ready)(void *arg);
    void (*fatal)(void *arg, const struct err *err);
    void *arg;
    bool fatal_said;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

int64_t core_now(struct dispatch *d);  /* monotonic, us */
int64_t core_wall(struct dispatch *d); /* us since the epoch */
uint32_t core_random(struct dispatch *d);

/* May new effects begin? */
bool core_acts(const struct dispatch *d);
/* The same for effects that need a durable record. */
bool core_acts_durably(const struct dispatch *d);

/* Around each port operation: begin when it is asked for, end first thing in
 * its (last) callback. */
void core_op_begin(struct dispatch *d);
void core_op_end(struct dispatch *d);

/* Going on would be wrong. */
void core_fatal(struct dispatch *d, const struct err *err);

/* The API server is asked again at least this often while it fails. */
enum { CORE_API_RETRY_MS = 5000 };

/* A cloud was listed once, or failed to answer. */
void core_look_done(struct dispatch *d);

#endif
