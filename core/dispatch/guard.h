/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_GUARD_H
#define CORE_DISPATCH_GUARD_H

/*
 * May an instance be created now, and where?
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dispatch/plan.h"

struct cloud_port;
struct dispatch_backend;
struct err;
struct holdoffs;
struct itype;

/* One backend as guard sees it. */
struct guard_backend {
    struct cloud_port *cloud;
    const struct dispatch_backend *cfg;
    const struct holdoffs *holds; /* of its creates; keys by guard_key */
    bool open;           /* the driver is there */
    bool listed;         /* a complete list was seen since start-up */
    int64_t instances;   /* in our books, pending creates included */
};

struct guard_in {
    int64_t now_us;
    bool journal_ok;
    bool stopping;
    const struct guard_backend *backends;
    size_t n_backends;
};

struct guard_place {
    size_t backend;
    const char *placement;   /* "" = the driver's only one */
    const struct err *error; /* of the refusal that still holds, or NULL */
    int64_t until_us;        /* when it ends; 0 = unknown */
};

/* PLAN_NONE: create it at *ret. Else why not; *ret tells for how long. */
enum plan_why guard_create(const struct guard_in *in, const struct itype *it,
                           struct guard_place *ret);

/* Keys of hold-offs, by what an error covers. */
enum { GUARD_KEY_MAX = 320 };
const char *guard_key(struct cloud_port *cloud, const struct itype *it,
                      const char *placement, int scope,
                      char out[GUARD_KEY_MAX]);

#endif
