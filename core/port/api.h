/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PORT_API_H
#define CORE_PORT_API_H

/*
 * The API port: the containers API (Arvados API, "containers"; our additions
 * `attempt` and `feed`), as typed records. One call = one HTTP request; no
 * retry below. Outcomes: OP_REFUSED for a 4xx (ERR_CONFLICT for 422,
 * ERR_AUTH for 401/403, ERR_NOT_FOUND for 404) and for a request that surely
 * never left; RATE_LIMITED for 503/429 (refused, retry_ms from Retry-After);
 * OP_UNKNOWN for a time-out or a lost connection after sending, and for other
 * 5xx.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/model/ctr.h"
#include "core/port/op.h"

enum api_feature {
    API_ATTEMPTS = 1 << 0, /* attempt and revoke exist */
    API_FEED = 1 << 1
};

struct api_whoami_result {
    struct op_result r;
    const char *token_uuid;  /* of our token */
    uint32_t features;       /* enum api_feature, from the discovery document */
};

/* One page of a list. `which` selects the filter; pages continue after the
 * last item of the previous one. */
enum api_list {
    API_LIST_QUEUED, /* state Queued, priority > 0, most urgent first */
    API_LIST_MINE,   /* locked by our token */
    API_LIST_UUIDS   /* the given uuids, at most 100 */
};

struct api_list_req {
    enum api_list which;
    int64_t limit;                 /* <= 1000 */
    const struct ctr *after;       /* last item so far, or NULL */
    const char *const *uuids;      /* API_LIST_UUIDS */
    size_t n_uuids;
    const char *token_uuid;        /* API_LIST_MINE */
    int64_t deadline_ms;
};

struct api_list_result {
    struct op_result r;
    const struct ctr *v;
    size_t n;                      /* 0 = the end; a short page is not */
};

/* get, lock, unlock, update answer with the record as it is now. lock and
 * unlock answer with five fields only (uuid, state, priority, locked_by):
 * `partial` is true then, the other fields of c are zero. */
struct api_ctr_result {
    struct op_result r;
    bool partial;
    struct ctr c;                  /* OP_DONE only */
};

struct api_attempt_result {
    struct op_result r;
    int64_t attempt;
    const char *api_token;         /* for the runner; keep it short and secret */
};

/* Only what the dispatcher ever writes. */
struct api_update_req {
    const char *uuid;
    bool set_cancelled;            /* state Cancelled */
    const char *error;             /* runtime_status.error, or NULL */
    bool no_retry;                 /* runtime_status.noRetry: true */
    int64_t deadline_ms;
};

struct api_feed_result {
    struct op_result r;
    const char *epoch;
    int64_t cursor;
    bool more;
    bool resync;                   /* cursor too old: re-read everything */
    const char *const *uuids;      /* of containers that changed */
    size_t n;
};

struct api_port {
    struct op *(*whoami)(struct api_port *a, int64_t deadline_ms,
                         void (*cb)(void *, const struct api_whoami_result *),
                         void *arg);
    struct op *(*list)(struct api_port *a, const struct api_list_req *req,
                       void (*cb)(void *, const struct api_list_result *),
                       void *arg);
    struct op *(*get)(struct api_port *a, const char *uuid,
                      int64_t deadline_ms,
                      void (*cb)(void *, const struct api_ctr_result *),
                      void *arg);
    struct op *(*lock)(struct api_port *a, const char *uuid,
                       int64_t deadline_ms,
                       void (*cb)(void *, const struct api_ctr_result *),
                       void *arg);
    struct op *(*unlock)(struct api_port *a, const char *uuid,
                         int64_t deadline_ms,
                         void (*cb)(void *, const struct api_ctr_result *),
                         void *arg);
    /* A new attempt; revokes the previous one. Never for a container that
     * may be live. */
    struct op *(*attempt)(struct api_port *a, const char *uuid,
                          int64_t deadline_ms,
                          void (*cb)(void *,
                                     const struct api_attempt_result *),
                          void *arg);
    /* Revoke the present attempt. OP_DONE: no payload of it can start any
     * more, and its writes are refused. */
    struct op *(*revoke)(struct api_port *a, const char *uuid,
                         int64_t deadline_ms,
                         void (*cb)(void *, const struct op_result *),
                         void *arg);
    struct op *(*update)(struct api_port *a,
                         const struct api_update_req *req,
                         void (*cb)(void *, const struct api_ctr_result *),
                         void *arg);
    /* Long poll: answers at the first change after `cursor`, or after
     * wait_ms (<= 50 000) with nothing. epoch "" = from now. */
    struct op *(*feed)(struct api_port *a, const char *epoch, int64_t cursor,
                       int64_t wait_ms,
                       void (*cb)(void *, const struct api_feed_result *),
                       void *arg);
    void (*op_cancel)(struct api_port *a, struct op *op);
    void *impl;
};

#endif
