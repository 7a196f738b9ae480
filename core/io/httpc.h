/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_HTTPC_H
#define CORE_IO_HTTPC_H

/*
 * An HTTP/1.1 client on the loop (libcurl's multi interface): many requests
 * at once over kept connections. One call is one request on the wire: no
 * redirects, no retries but those that cannot have an effect (see `unsent`),
 * no proxy, no .netrc, no protocol but http and https.
 *
 * Loop thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

struct httpc;
struct httpc_call;
struct loop;

struct httpc_cfg {
    unsigned max_conns;     /* open at once, 0 = 64; more requests wait */
    const char *ca_bundle;  /* PEM file, NULL = the system's */
    const char *user_agent; /* NULL = none */
};

struct httpc_request {
    const char *method; /* "GET", "POST", ... */
    const char *url;    /* http:// or https:// */
    /* "Name: value" lines ending with a NULL; NULL = none. */
    const char *const *headers;
    const void *body; /* NULL = none (a POST or PUT then has length 0) */
    size_t body_len;
    int64_t connect_ms;  /* name, TCP and TLS; 0 = 10 s */
    int64_t deadline_ms; /* the whole exchange, waiting included; 0 = 60 s */
    size_t max_reply;    /* bytes of body; 0 = 1 MiB */
};

/* Borrowed during the callback. */
struct httpc_result {
    /* ERR_NONE: a whole reply arrived, whatever its status. TIMEOUT, TOO_LARGE,
     * CANCELLED, CONFIG (URL, certificate), else TRANSIENT. */
    struct err err;
    /* The request surely never left this process: it had no effect. */
    bool unsent;
    int status;       /* 0 = none arrived */
    const char *body; /* NUL-terminated beyond len; never NULL */
    size_t len;
    int64_t begun_us; /* monotonic: when the call was made */
    struct httpc_call *call;
};

struct httpc *httpc_create(struct loop *l, const struct httpc_cfg *cfg);
/* Calls under way end CANCELLED, inside. Not from a callback of a call. NULL
 * is fine. */
void httpc_destroy(struct httpc *c);

/* Everything in req is copied. cb fires exactly once, never inside. */
struct httpc_call *httpc_start(struct httpc *c,
                               const struct httpc_request *req,
                               void (*cb)(void *arg,
                                          const struct httpc_result *r),
                               void *arg);
/* Give up: cb fires soon with ERR_CANCELLED. Valid until cb has fired. */
void httpc_cancel(struct httpc_call *call);

/* During cb: a header of the reply, name in any case; NULL = absent. */
const char *httpc_header(const struct httpc_result *r, const char *name);
/* During cb: the body, for the caller to free. */
char *httpc_take_body(const struct httpc_result *r, size_t *ret_len);

#endif
