/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_CALL_H
#define CORE_APISERVER_CALL_H

/*
 * One request on its way through the server.
 *
 * It arrives on the loop, finds its route, and becomes a job of the store:
 * parameters are parsed, the token is checked and the handler runs in the
 * lane that the route names. A route that writes runs first in the READ lane
 * if it has a body (parse, prepare), then in WRITE, where the token is checked
 * again, inside the transaction. Afterwards the reply goes out on the loop.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/apiserver/params.h"
#include "core/apiserver/resource.h"
#include "core/apiserver/who.h"
#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/io/httpd.h"
#include "core/store/store.h"

struct app;
struct call;
struct publish;

enum route_flag {
    ROUTE_WRITE = 1 << 0,  /* run() belongs in the writer's transaction */
    ROUTE_BYTES = 1 << 1,  /* the body is a file's, not parameters */
    ROUTE_FINISH = 1 << 2  /* finish() replies, on the loop */
};

struct route {
    const char *method;
    const char *path; /* below /arvados/v1/; {} = one part, * = the rest */
    unsigned flags;
    unsigned allow;   /* enum who_kind: others get 403 */
    /* In READ, before run() of a WRITE route; optional. */
    enum store_next (*prepare)(struct call *c, struct store_tx *tx);
    enum store_next (*run)(struct call *c, struct store_tx *tx);
    void (*finish)(struct call *c);
    enum store_table table;
};

enum { CALL_BODY_MAX = 64 << 20, CALL_CORS = 4, CALL_EXTRA = 8 };

/* Headers of every answer, so that pages of other origins may ask. */
extern const struct httpd_header call_cors[CALL_CORS + 1];

struct call {
    struct store_job job;
    struct app *app;
    struct httpd_req *req;
    const struct route *route;

    /* the request; texts are the connection's */
    const char *method;   /* with overrides; HEAD stays HEAD */
    const char *path;
    const char *auth, *type, *query, *range, *idempotency, *request_id;
    const char *body;
    size_t body_len;
    char id[128];         /* what stands for {} */
    const char *rest;     /* what stands for *, or "" */

    struct params params;
    bool parsed;
    struct who who;
    bool known;           /* who is filled */

    /* the reply */
    int status;           /* 0 = 200 */
    struct buf out;
    const char *out_type;
    struct httpd_header extra[CALL_EXTRA];
    char content_range[80];

    /* between lanes */
    struct store_row attrs;   /* what prepare made of the body */
    struct publish *pub;      /* files of an attempt that becomes final */
    char pub_uuid[IDENT_UUID];
    int64_t pub_attempt;
    int64_t now;              /* of the transaction, microseconds */
    int64_t feed_cursor, feed_wait_ms;
    bool final, locked, attempted; /* for fault points */
};

/* A request for an API path; replies sooner or later. */
void call_start(struct app *app, struct httpd_req *req,
                const struct route *route, const char *id, const char *rest,
                const char *method);

/* The reply is made: send it and free the call. For finish(). */
void call_reply(struct call *c);

/* End with {"errors": [...]}; returns STORE_ABORT. */
enum store_next call_fail(struct call *c, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same from an error: the class decides on the status. */
enum store_next call_fail_err(struct call *c, const struct err *err);

/* One more header; name and value must live until the reply. */
void call_add_header(struct call *c, const char *name, const char *value);

/* Start a JSON reply: an open object. */
void call_json(struct call *c, struct jsn_w *w);
/* Reply with one record of the route's resource, as `select` wants it. */
enum store_next call_record(struct call *c, const struct store_row *row);
/* view from `select`; everything if absent. */
int call_view(struct call *c, const struct resource *r,
              struct resource_view *ret, struct err *err);

/* A row that the caller may read; ERR_NOT_FOUND. ret is {0}. */
int call_find(struct call *c, struct store_tx *tx, enum store_table t,
              const char *uuid, uint64_t cols, struct store_row *ret,
              struct err *err);

#endif
