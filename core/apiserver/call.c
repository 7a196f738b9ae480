/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as a job: parse, check the token, run the handler, reply.
 *
 * Steps and threads:
 *   call_start     loop     the call is made and submitted; 503 if too many
 *   on_run         a lane   parameters, token, scopes, then the handler
 *   on_done        loop     the reply, or finish() of the route
 *
 * A write with a body goes to READ first, so that the writer's thread never
 * parses more than it must. If the handler finds that files of an attempt must
 * be hashed before it can commit (a container becomes final), it sends the
 * call to SLOW and is run again afterwards: handlers of writes may run twice
 * and begin from nothing each time.
 */
#include "core/apiserver/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/apiserver/app.h"
#include "core/apiserver/limit.h"
#include "core/apiserver/publish.h"
#include "core/apiserver/stats.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/fault.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"

static const char json_type[] = "application/json; charset=utf-8";

/* ----------------------------------------------------------- failures -- */

static void reset_reply(struct call *c)
{
    buf_reset(&c->out);
    c->out_type = json_type;
}

enum store_next call_fail(struct call *c, int status, const char *fmt, ...)
{
    char text[700], token[32];
    uint32_t random;
    struct jsn_w w;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t) n < sizeof text)
        snprintf(text + n, sizeof text - (size_t) n, " (%.64s)",
                 c->request_id);
    secret_random(&random, sizeof random);
    snprintf(token, sizeof token, "%lld+%08x", (long long) time(NULL),
             (unsigned) random);
    reset_reply(c);
    c->status = status;
    jsn_w_init(&w, &c->out);
    jsn_w_obj(&w, NULL);
    jsn_w_arr(&w, "errors");
    jsn_w_str(&w, NULL, text);
    jsn_w_end_arr(&w);
    jsn_w_str(&w, "error_token", token);
    jsn_w_end_obj(&w);
    return STORE_ABORT;
}

static int status_of(enum err_class class)
{
    switch (class) {
    case ERR_AUTH:
        return 403;
    case ERR_NOT_FOUND:
        return 404;
    case ERR_TOO_LARGE:
        return 413;
    case ERR_INVALID:
    case ERR_CONFLICT:
    case ERR_UNSUPPORTED:
        return 422;
    case ERR_RATE_LIMITED:
        return 503;
    default:
        return 500;
    }
}

enum store_next call_fail_err(struct call *c, const struct err *err)
{
    return call_fail(c, status_of(err->class), "%s", err->text);
}

/* ------------------------------------------------------------ replies -- */

void call_json(struct call *c, struct jsn_w *w)
{
    reset_reply(c);
    jsn_w_init(w, &c->out);
    jsn_w_obj(w, NULL);
}

int call_view(struct call *c, const struct resource *r,
              struct resource_view *ret, struct err *err)
{
    const struct jsn *select;

    if (params_json(&c->params, "select", &select, err) < 0)
        return -1;
    if (select)
        return resource_view_select(r, select, ret, err);
    resource_view_all(r, ret);
    return 0;
}

enum store_next call_record(struct call *c, const struct store_row *row)
{
    const struct resource *r = resource_of(c->route->table);
    struct resource_view view;
    struct err err = {0};
    struct jsn_w w;

    if (call_view(c, r, &view, &err) < 0)
        return call_fail_err(c, &err);
    reset_reply(c);
    jsn_w_init(&w, &c->out);
    resource_write(r, &view, row, &w, NULL);
    return STORE_DONE;
}

static bool take_row(void *arg, const struct store_row *row)
{
    store_row_merge(arg, row);
    return false;
}

int call_find(struct call *c, struct store_tx *tx, enum store_table t,
              const char *uuid, uint64_t cols, struct store_row *ret,
              struct err *err)
{
    struct store_value v = {.kind = STORE_TEXT, .s = uuid,
                            .n = strlen(uuid)};
    struct store_cond cond = {.table = t, .op = STORE_OP_EQ, .other = -1,
                              .v = &v, .n = 1};
    struct store_query q = {.table = t, .cols = cols | STORE_BIT(0),
                            .conds = &cond, .n_conds = 1, .limit = 1,
                            .reader = who_reader(&c->who)};
    bool own = t == STORE_CONTAINERS &&
               c->who.kind & (WHO_ATTEMPT | WHO_PAYLOAD) &&
               strcmp(uuid, c->who.container_uuid) == 0;

    if (own)
        q.reader = NULL;
    else if (c->who.kind == WHO_ATTEMPT)
        return err_set(err, ERR_NOT_FOUND, "Path not found");
    if (store_find(tx, &q, take_row, ret, err) < 0)
        return -1;
    return ret->set ? 0 : err_set(err, ERR_NOT_FOUND, "Path not found");
}

/* ------------------------------------------------------------- a lane -- */

static enum store_next identify(struct call *c, struct store_tx *tx)
{
    struct err err = {0};

    who_fini(&c->who);
    c->known = false;
    if (who_check(&c->app->cfg, tx, c->auth, &c->who, &err) < 0)
        return err.class == ERR_AUTH ? call_fail(c, 401, "%s", err.text)
                                     : call_fail_err(c, &err);
    c->known = true;
    if (!(c->route->allow & c->who.kind))
        return call_fail(c, 403, "Forbidden");
    if (!who_allows(&c->who, c->method, c->path))
        return call_fail(c, 403, "Forbidden: this token's scopes do not "
                         "cover %s %s", c->method, c->path);
    return STORE_DONE;
}

static enum store_next parse(struct call *c)
{
    bool bytes = c->route->flags & ROUTE_BYTES, bad_json;
    struct err err = {0};

    if (c->parsed)
        return STORE_DONE;
    c->parsed = true;
    if (params_read(&c->params, c->query, c->type, bytes ? "" : c->body,
                    bytes ? 0 : c->body_len, &bad_json, &err) < 0)
        return call_fail(c, bad_json ? 400 : 422, "%s", err.text);
    return STORE_DONE;
}

static enum store_next hash_files(struct call *c)
{
    struct err err = {0};

    publish_free(c->pub);
    c->pub = publish_create(c->app->files, c->pub_uuid, c->pub_attempt,
                            &err);
    if (!c->pub)
        return call_fail_err(c, &err);
    return STORE_WRITE;
}

static enum store_next on_run(struct store_job *job, struct store_tx *tx)
{
    struct call *c = MEM_CONTAINER(job, struct call, job);
    const struct route *r = c->route;

    if (!tx)
        return hash_files(c);
    if (parse(c) != STORE_DONE || identify(c, tx) != STORE_DONE)
        return STORE_ABORT;
    c->now = clock_wall_us();
    c->status = 0;
    reset_reply(c);
    if (r->flags & ROUTE_WRITE && !store_writable(tx)) {
        if (r->prepare && r->prepare(c, tx) == STORE_ABORT)
            return STORE_ABORT;
        return STORE_WRITE;
    }
    return r->run(c, tx);
}

/* --------------------------------------------------------------- loop -- */

static void call_free(struct call *c)
{
    c->app->calls--;
    params_fini(&c->params);
    who_fini(&c->who);
    store_row_fini(&c->attrs);
    publish_free(c->pub);
    buf_fini(&c->out);
    free(c);
}

static size_t count_extra(const struct call *c)
{
    size_t n = 0;

    while (c->extra[n].name)
        n++;
    return n;
}

void call_reply(struct call *c)
{
    size_t len;
    char *body;

    if (c->out.over)
        call_fail(c, 500, "the reply is too long; ask for less");
    body = buf_take(&c->out, &len);
    httpd_reply_take(c->req, c->status ? c->status : 200,
                     len ? c->out_type : NULL, c->extra, body, len);
    call_free(c);
}

/* A planted failure after the effect: the client must not learn of it. */
static void pass_fault_points(struct call *c)
{
    bool fail = false;

    if (c->status >= 400 || c->job.err.class != ERR_NONE)
        return;
    if (c->locked)
        fail |= fault_hit(FAULT_AFTER_LOCK);
    if (c->attempted)
        fail |= fault_hit(FAULT_AFTER_ATTEMPT_ROW);
    if (c->final)
        fail |= fault_hit(FAULT_AFTER_FINAL);
    if (fail)
        call_fail(c, 500, "planted failure");
}

static void on_done(struct store_job *job)
{
    struct call *c = MEM_CONTAINER(job, struct call, job);

    if (job->err.class != ERR_NONE) {
        log_failure(c->app->log, LOG_ERROR, &job->err, "commit failed",
                    "RequestID", c->request_id, NULL);
        call_fail(c, 500, "%s", job->err.text);
    }
    limit_note(c->app, httpd_token(c->auth), httpd_peer(c->req), c->status,
               c->known && c->who.kind == WHO_ADMIN);
    if (c->status >= 500)
        log_event(c->app->log, LOG_ERROR, "request failed", "RequestID",
                  c->request_id, "error", c->out.data, NULL);
    pass_fault_points(c);
    if (c->route->flags & ROUTE_FINISH && c->status < 400)
        c->route->finish(c);
    else
        call_reply(c);
}

static void take_request(struct call *c)
{
    c->path = httpd_path(c->req);
    c->query = httpd_query(c->req);
    c->auth = httpd_header(c->req, "Authorization");
    c->type = httpd_header(c->req, "Content-Type");
    c->range = httpd_header(c->req, "Range");
    c->idempotency = httpd_header(c->req, "Idempotency-Key");
    c->request_id = httpd_request_id(c->req);
    c->body = httpd_body(c->req, &c->body_len);
}

const struct httpd_header call_cors[CALL_CORS + 1] = {
    {"Access-Control-Allow-Origin", "*"},
    {"Access-Control-Allow-Methods", "GET, HEAD, PUT, PATCH, POST, DELETE"},
    {"Access-Control-Allow-Headers",
     "Authorization, Content-Type, Idempotency-Key, Range, X-Request-Id, "
     "X-Http-Method-Override"},
    {"Access-Control-Max-Age", "86486400"},
    {0}};

void call_start(struct app *app, struct httpd_req *req,
                const struct route *route, const char *id, const char *rest,
                const char *method)
{
    struct call *c = MEM_NEW(struct call);
    bool write = route->flags & ROUTE_WRITE;
    static const struct httpd_header retry[] = {{"Retry-After", "1"}, {0}};

    c->app = app;
    c->req = req;
    c->route = route;
    c->method = method;
    c->rest = rest;
    text_copy(c->id, id, sizeof c->id);
    take_request(c);
    buf_init(&c->out, CALL_BODY_MAX);
    memcpy(c->extra, call_cors, sizeof call_cors);
    c->job.run = on_run;
    c->job.done = on_done;
    app->calls++;
    if (app->calls <= app->cfg.max_calls &&
        store_submit(app->store, &c->job,
                     write && !c->body_len ? STORE_WRITE : STORE_READ,
                     NULL) == 0)
        return;
    httpd_reply(req, 503, NULL, retry, NULL, 0);
    call_free(c);
}

void call_add_header(struct call *c, const char *name, const char *value)
{
    size_t n = count_extra(c);

    if (n + 1 < CALL_EXTRA)
        c->extra[n] = (struct httpd_header){name, value};
}
