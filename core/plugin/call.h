/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_CALL_H
#define CORE_PLUGIN_CALL_H

/*
 * One call of a driver's callback: what the driver knows as `struct cdc_op`.
 *
 * The driver never holds a pointer to a call. Its `struct cdc_op *` is a
 * handle: the number of a slot and the slot's generation, looked up under a
 * lock each time. When the callback has returned, the slot's generation moves
 * on; whatever a driver does later with the old handle finds nothing.
 *
 * Life: call_create (any thread); call_begin, the callback, call_end (the
 * thread that runs it); results are read after call_end; call_unref. A call
 * that is written off in between is cancelled with call_cancel; the thread
 * still ends it in its own time.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cdc/host.h>

#include "core/base/buf.h"
#include "core/base/vec.h"
#include "core/port/op.h"

struct cloud_instance;
struct jsn;
struct logger;

/*      name             label              has an effect */
#define CALL_KINDS(X)                                                         \
    X(OPEN,            "set_open",        false)                              \
    X(CREATE,          "create",          true)                               \
    X(LIST,            "list",            false)                              \
    X(SET_TAGS,        "set_tags",        true)                               \
    X(DESTROY,         "destroy",         true)                               \
    X(VERIFY_HOST_KEY, "verify_host_key", false)                              \
    X(PRICE_HISTORY,   "price_history",   false)                              \
    X(DESCRIBE,        "describe",        false)

enum call_kind {
#define X(name, label, effect) CALL_##name,
    CALL_KINDS(X)
#undef X
};

const char *call_label(enum call_kind kind);
bool call_has_effect(enum call_kind kind);

/* What the log says beside a driver's own words; outlives the call. */
struct call_origin {
    struct logger *log; /* may be NULL */
    const char *driver;
    const char *backend;
};

struct call {
    const struct call_origin *origin;
    enum call_kind kind;
    int64_t deadline_us; /* monotonic */
    int32_t count;       /* create: most instances that make sense */
    int wake_fd;         /* readable once cancelled */
    unsigned refs;       /* atomic */
    bool cancelled;      /* atomic */

    pthread_mutex_t lock; /* the rest, until call_end has returned */
    uintptr_t handle;     /* 0 = not begun, or ended */
    bool failed;          /* fail() was called; err has it */
    struct err err;
    bool malformed;       /* garbage was emitted; bad says which */
    struct err bad;
    VEC(struct cloud_instance *) instances;
    struct buf unknown;   /* placements, comma-separated */
    bool has_unknown;
    struct buf facts;     /* "key: value\n" */
    VEC(struct cdc_price) prices; /* texts are in scratch */
    bool caps_set;
    uint32_t caps;
    VEC(void *) scratch;       /* freed with the call */
    VEC(struct jsn *) values;  /* what json_parse gave */

    enum op_outcome outcome; /* set by call_end; err then fits to it */
};

/* NULL/ERR_TRANSIENT when the system has no descriptor left. */
struct call *call_create(const struct call_origin *origin,
                         enum call_kind kind, int64_t deadline_us,
                         struct err *err);
void call_ref(struct call *c);
void call_unref(struct call *c); /* NULL is fine */

/* Wakes sleep_ms and run_process. Any thread, any time. */
void call_cancel(struct call *c);
bool call_is_cancelled(const struct call *c); /* or past its deadline */
int64_t call_left_ms(const struct call *c);   /* >= 0 */

/* The handle to give to the driver. NULL when CALLS_MAX calls are running. */
enum { CALLS_MAX = 1024 };
struct cdc_op *call_begin(struct call *c);

/* The handle is dead from now on, wherever the driver is. */
void call_retire(struct call *c);

/* The callback returned rc: the handle is dead; outcome and err are decided
 * (call_judge). */
void call_end(struct call *c, int32_t rc);

/*
 * The outcome of a call, from what came out of it. Pure: reads everything
 * above `outcome`, and writes outcome and err.
 */
void call_judge(struct call *c, int32_t rc);

/* The living call of a handle, locked and with a reference, or NULL. Give it
 * back with call_put. */
struct call *call_get(struct cdc_op *op);
void call_put(struct call *c);
/* The same without the lock, for what blocks; give back with call_unref. */
struct call *call_find(struct cdc_op *op);

#endif
