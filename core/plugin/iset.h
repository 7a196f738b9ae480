/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_ISET_H
#define CORE_PLUGIN_ISET_H

/*
 * The cloud port over a driver: one instance set of one backend.
 *
 * Calls run on worker threads of a pool that belongs to the set: one thread
 * for a driver that says SERIAL, `threads` of them for PARALLEL. Requests are
 * copied in, results copied out, and exactly one completion is posted to the
 * loop. Everything that a driver emits is checked; what is malformed makes
 * the call fail as ERR_INTERNAL.
 *
 * A call whose deadline passes completes at once: ERR_TIMEOUT, as OP_REFUSED
 * when it had not begun or only reads, as OP_UNKNOWN otherwise. Its thread
 * is written off; what it still emits or returns is dropped. While a thread
 * of a SERIAL driver is written off, or ISET_STUCK_MAX threads of a PARALLEL
 * one, further calls are refused with ERR_TRANSIENT and the text says since
 * when the driver has been stuck.
 *
 * Fault points: LIST_EMPTY (fail: an empty, complete list), AFTER_CREATE.
 */

#include <stddef.h>

struct cloud_port;
struct driver;
struct err;
struct iset;
struct jsn;
struct logger;
struct loop;

enum { ISET_STUCK_MAX = 8, ISET_QUEUE_MAX = 4096 };

struct iset_options {
    struct loop *loop;
    struct logger *log;       /* borrowed; may be NULL */
    const char *backend;      /* name of the backend */
    const char *set_id;       /* InstanceSetID */
    const char *state_dir;    /* StateDirectory; the driver is given
                               * <state_dir>/<driver>, made 0700. "" = none */
    const struct jsn *params; /* DriverParameters, copied; NULL = {} */
    unsigned threads;         /* for PARALLEL drivers; 0 = 4 */
};

/*
 * Check the parameters against the driver's schema and build the port; the
 * set itself is opened by the port's `open`. NULL/ERR_CONFIG when a setting
 * is unknown, missing or of the wrong type.
 */
struct iset *iset_create(const struct driver *driver,
                         const struct iset_options *options,
                         struct err *err);
struct cloud_port *iset_port(struct iset *s);

/*
 * Calls in flight are cancelled, and their callbacks never fire. Closes the
 * set and frees everything: 0. If a thread is still inside the driver after
 * wait_ms, set and thread are left alone for ever: -1. What the options named
 * may be freed in either case. NULL is fine.
 */
int iset_destroy(struct iset *s, int wait_ms);

#endif
