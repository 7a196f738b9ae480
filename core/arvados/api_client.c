/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The API port over HTTP.
 *
 * An op is one port call: it makes its request (api_wire.c), hands it to the
 * HTTP client, turns the answer into an outcome, parses the body, and tells
 * the caller. Two kinds of op make a second request from on_reply: whoami
 * (token, then discovery document) and the continuation of the queue's list
 * (ties, then lower priorities).
 *
 *   start -> HTTP -> on_reply -> [second request -> on_reply] -> parse -> end
 *
 * Bodies beyond PARSE_INLINE_MAX are parsed on a thread, because a page of
 * 1,000 containers takes longer than the loop may stand still. At most one
 * thread: pages come one after the other anyway.
 *
 * Outcomes: a request that surely had no effect is refused, a write that may
 * have had one is unknown (core/port/api.h). Everything but parse_work runs
 * on the loop. Nothing is retried or remembered here, but what the discovery
 * document said.
 */

#include "core/arvados/api_client.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arvados/api_wire.h"
#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/io/httpc.h"
#include "core/io/loop.h"
#include "core/io/url.h"
#include "core/port/api.h"

enum {
    PARSE_INLINE_MAX = 64 << 10,
    REPLY_MAX = 32 << 20, /* 1,000 items of 32 KiB */
    QUERY_MAX = 1 << 20,
    LONG_QUERY = 1000, /* from here on a GET travels as a POST */
    FEED_SLACK_MS = 10000,
};

enum call {
    CALL_WHOAMI, CALL_DISCOVERY, CALL_LIST, CALL_GET, CALL_LOCK, CALL_UNLOCK,
    CALL_ATTEMPT, CALL_REVOKE, CALL_UPDATE, CALL_FEED
};

struct op {
    struct api_client *a; /* NULL: the client was destroyed */
    struct op *next, **link;
    enum call call;
    struct httpc_call *http; /* under way */
    int64_t deadline_ms;

    /* of a list: what to ask for if there are no ties */
    struct api_list_req list;
    struct ctr after;
    bool ties;

    /* the reply */
    struct op_result r;
    char *text;
    size_t len;
    bool queued, begun; /* on the pool */
    char token_uuid[CTR_UUID_SIZE];
    wire_ctrs ctrs;
    struct ctr ctr;
    struct wire_discovery discovery;
    struct wire_attempt attempt;
    struct wire_feed feed;

    union {
        void (*whoami)(void *arg, const struct api_whoami_result *r);
        void (*list)(void *arg, const struct api_list_result *r);
        void (*ctr)(void *arg, const struct api_ctr_result *r);
        void (*attempt)(void *arg, const struct api_attempt_result *r);
        void (*revoke)(void *arg, const struct op_result *r);
        void (*feed)(void *arg, const struct api_feed_result *r);
    } cb; /* the one that belongs to call */
    void *arg;
};

struct api_client {
    struct api_port port;
    struct loop *loop;
    struct httpc *http;
    struct loop_pool *pool;
    char *base;          /* scheme, host, port, path prefix */
    char *authorization; /* the header line */
    struct wire_discovery features;
    struct op *ops;
    bool closing;
};

/* --- ops -----------------------------------------------------------------*/

static struct op *op_create(struct api_port *port, enum call call,
                            int64_t deadline_ms, void *arg)
{
    struct op *op = MEM_NEW(struct op);

    op->a = port->impl;
    op->call = call;
    op->deadline_ms = deadline_ms;
    op->arg = arg;
    op->next = op->a->ops;
    if (op->next)
        op->next->link = &op->next;
    op->link = &op->a->ops;
    op->a->ops = op;
    return op;
}

static void op_free(struct op *op)
{
    if (op->a) {
        *op->link = op->next;
        if (op->next)
            op->next->link = op->link;
    }
    secret_free(op->text);
    VEC_FINI(&op->ctrs);
    wire_feed_fini(&op->feed);
    explicit_bzero(&op->attempt, sizeof op->attempt);
    free(op);
}

static bool is_write(const struct op *op)
{
    switch (op->call) {
    case CALL_LOCK:
    case CALL_UNLOCK:
    case CALL_ATTEMPT:
    case CALL_REVOKE:
    case CALL_UPDATE:
        return true;
    default:
        return false;
    }
}

/* --- telling the caller --------------------------------------------------*/

static void tell_whoami(struct op *op)
{
    struct api_whoami_result res = {.r = op->r, .token_uuid = op->token_uuid};

    if (op->r.outcome == OP_DONE) {
        op->a->features = op->discovery;
        if (op->discovery.attempts)
            res.features |= API_ATTEMPTS;
        if (op->discovery.feed_path[0])
            res.features |= API_FEED;
    }
    op->cb.whoami(op->arg, &res);
}

static void tell_list(struct op *op)
{
    struct api_list_result res = {
        .r = op->r, .v = op->ctrs.v, .n = op->ctrs.n,
    };

    op->cb.list(op->arg, &res);
}

static void tell_ctr(struct op *op)
{
    struct api_ctr_result res = {
        .r = op->r,
        .partial = op->call == CALL_LOCK || op->call == CALL_UNLOCK,
        .c = op->ctr,
    };

    op->cb.ctr(op->arg, &res);
}

static void tell_attempt(struct op *op)
{
    struct api_attempt_result res = {
        .r = op->r, .attempt = op->attempt.attempt,
        .api_token = op->attempt.token,
    };

    op->cb.attempt(op->arg, &res);
}

static void tell_revoke(struct op *op)
{
    op->cb.revoke(op->arg, &op->r);
}

static void tell_feed(struct op *op)
{
    struct api_feed_result res = {
        .r = op->r, .epoch = op->feed.epoch, .cursor = op->feed.cursor,
        .more = op->feed.more, .resync = op->feed.resync,
        .uuids = (const char *const *) op->feed.uuids.v,
        .n = op->feed.uuids.n,
    };

    op->cb.feed(op->arg, &res);
}

static void op_end(struct op *op)
{
    static void (*const tell[])(struct op *) = {
        [CALL_WHOAMI] = tell_whoami, [CALL_DISCOVERY] = tell_whoami,
        [CALL_LIST] = tell_list, [CALL_GET] = tell_ctr,
        [CALL_LOCK] = tell_ctr, [CALL_UNLOCK] = tell_ctr,
        [CALL_ATTEMPT] = tell_attempt, [CALL_REVOKE] = tell_revoke,
        [CALL_UPDATE] = tell_ctr, [CALL_FEED] = tell_feed,
    };

    tell[op->call](op);
    op_free(op);
}

/* --- requests ------------------------------------------------------------*/

static void on_reply(void *arg, const struct httpc_result *http);

struct ask {
    const char *method, *path;
    const struct buf *query; /* or NULL */
    const struct buf *json;  /* body, or NULL */
};

static void send_request(struct op *op, const struct ask *ask)
{
    struct api_client *a = op->a;
    bool as_post = ask->query && ask->query->len >= LONG_QUERY;
    const char *headers[5] = {a->authorization};
    char id[64], random[24];
    uint8_t bytes[20];
    CLEANUP(mem_free) char *url = NULL;
    struct httpc_request req = {
        .method = as_post ? "POST" : ask->method,
        .headers = headers, .deadline_ms = op->deadline_ms,
        .max_reply = REPLY_MAX,
    };

    secret_random(bytes, sizeof bytes);
    text_base36(bytes, sizeof bytes, random);
    snprintf(id, sizeof id, "X-Request-Id: req-%s", random);
    headers[1] = id;
    if (as_post) {
        headers[2] = "X-HTTP-Method-Override: GET";
        req.body = ask->query->data;
        req.body_len = ask->query->len;
    } else if (ask->json) {
        headers[2] = "Content-Type: application/json";
        req.body = ask->json->data;
        req.body_len = ask->json->len;
    }
    url = mem_printf("%s%s%s%s", a->base, ask->path,
                     ask->query && !as_post ? "?" : "",
                     ask->query && !as_post ? ask->query->data : "");
    req.url = url;
    op->http = httpc_start(a->http, &req, on_reply, op);
}

/* About one container; tail: "" or "/lock" and the like. */
static void send_ctr(struct op *op, const char *method, const char *uuid,
                     const char *tail, const struct buf *query,
                     const struct buf *json)
{
    CLEANUP(mem_free) char *path =
        mem_printf("/arvados/v1/containers/%.*s%s", TEXT_UUID_LEN, uuid,
                   tail);

    send_request(op, &(struct ask) {method, path, query, json});
}

static void send_list(struct op *op, enum wire_part part)
{
    CLEANUP(buf_fini) struct buf query;

    buf_init(&query, QUERY_MAX);
    wire_list_query(&query, &op->list, part, op->a->features.attempts);
    send_request(op, &(struct ask) {
                         .method = "GET", .path = "/arvados/v1/containers",
                         .query = &query});
}

static void send_discovery(struct op *op)
{
    op->call = CALL_DISCOVERY;
    send_request(op, &(struct ask) {
                         .method = "GET",
                         .path = "/discovery/v1/apis/arvados/v1/rest"});
}

/* --- replies -------------------------------------------------------------*/

/* No usable reply: why, and whether it can have had an effect. */
static void set_failure(struct op *op, const struct httpc_result *http)
{
    op->r.err = http->err;
    if (!http->unsent && is_write(op))
        op->r.outcome = OP_UNKNOWN;
    else
        op->r.outcome = http->err.class == ERR_CANCELLED ? OP_CANCELLED
                                                         : OP_REFUSED;
}

static void set_status(struct op *op, const struct httpc_result *http)
{
    const char *id = httpc_header(http, "X-Request-Id");
    char text[400];
    bool refused;
    int class = wire_status_class(http->status, &refused);

    op->r.outcome = refused || !is_write(op) ? OP_REFUSED : OP_UNKNOWN;
    wire_error_text(http->body, http->len, text, sizeof text);
    err_set(&op->r.err, (enum err_class) class, "the API server answers %d%s%s",
            http->status, text[0] ? ": " : "", text);
    snprintf(op->r.err.code, sizeof op->r.err.code, "%d", http->status);
    text_copy(op->r.err.request_id, id ? id : "",
              sizeof op->r.err.request_id);
    op->r.err.retry_ms = wire_retry_ms(httpc_header(http, "Retry-After"));
}

static int parse(struct op *op, struct err *err)
{
    switch (op->call) {
    case CALL_WHOAMI:
        return wire_parse_whoami(op->text, op->len, op->token_uuid, err);
    case CALL_DISCOVERY:
        return wire_parse_discovery(op->text, op->len, &op->discovery, err);
    case CALL_LIST:
        return wire_parse_list(op->text, op->len, &op->ctrs, err);
    case CALL_GET:
    case CALL_LOCK:
    case CALL_UNLOCK:
    case CALL_UPDATE:
        return wire_parse_ctr(op->text, op->len, &op->ctr, err);
    case CALL_ATTEMPT:
        return wire_parse_attempt(op->text, op->len, &op->attempt, err);
    case CALL_FEED:
        return wire_parse_feed(op->text, op->len, &op->feed, err);
    case CALL_REVOKE:
        break;
    }
    return 0;
}

static void parse_work(void *arg)
{
    struct op *op = arg;

    op->begun = true;
    if (parse(op, &op->r.err) < 0)
        op->r.outcome = is_write(op) ? OP_UNKNOWN : OP_REFUSED;
}

static void parsed(void *arg)
{
    struct op *op = arg;

    op->queued = false;
    if (!op->a) {
        op_free(op);
        return;
    }
    if (op->r.outcome != OP_DONE)
        err_prefix(&op->r.err, "malformed reply of the API server");
    if (op->r.outcome == OP_DONE && op->call == CALL_WHOAMI)
        send_discovery(op);
    else if (op->r.outcome == OP_DONE && op->ties && op->ctrs.n == 0) {
        op->ties = false;
        send_list(op, WIRE_LOWER);
    } else {
        op_end(op);
    }
}

static void on_reply(void *arg, const struct httpc_result *http)
{
    struct op *op = arg;

    op->http = NULL;
    if (op->a->closing) {
        op_free(op);
        return;
    }
    op->r = (struct op_result) {.outcome = OP_DONE};
    if (http->err.class != ERR_NONE) {
        set_failure(op, http);
        op_end(op);
        return;
    }
    if (http->status < 200 || http->status > 299) {
        set_status(op, http);
        op_end(op);
        return;
    }
    secret_free(op->text);
    op->text = httpc_take_body(http, &op->len);
    if (op->len > PARSE_INLINE_MAX &&
        loop_pool_submit(op->a->pool, parse_work, parsed, op, NULL) == 0) {
        op->queued = true;
        return;
    }
    parse_work(op);
    parsed(op);
}

/* --- the port ------------------------------------------------------------*/

static struct op *do_whoami(struct api_port *port, int64_t deadline_ms,
                            void (*cb)(void *,
                                       const struct api_whoami_result *),
                            void *arg)
{
    struct op *op = op_create(port, CALL_WHOAMI, deadline_ms, arg);

    op->cb.whoami = cb;
    send_request(op, &(struct ask) {
                         .method = "GET",
                         .path = "/arvados/v1/api_client_authorizations/"
                                 "current"});
    return op;
}

static struct op *do_list(struct api_port *port,
                          const struct api_list_req *req,
                          void (*cb)(void *, const struct api_list_result *),
                          void *arg)
{
    struct op *op = op_create(port, CALL_LIST, req->deadline_ms, arg);

    op->cb.list = cb;
    op->list = *req;
    if (req->after) {
        op->after = *req->after;
        op->list.after = &op->after;
        op->ties = req->which == API_LIST_QUEUED;
    }
    send_list(op, op->ties ? WIRE_TIES : WIRE_WHOLE);
    return op;
}

static struct op *do_get(struct api_port *port, const char *uuid,
                         int64_t deadline_ms,
                         void (*cb)(void *, const struct api_ctr_result *),
                         void *arg)
{
    struct op *op = op_create(port, CALL_GET, deadline_ms, arg);
    CLEANUP(buf_fini) struct buf query;

    op->cb.ctr = cb;
    buf_init(&query, QUERY_MAX);
    wire_get_query(&query, op->a->features.attempts);
    send_ctr(op, "GET", uuid, "", &query, NULL);
    return op;
}

static struct op *do_lock(struct api_port *port, const char *uuid,
                          int64_t deadline_ms,
                          void (*cb)(void *, const struct api_ctr_result *),
                          void *arg)
{
    struct op *op = op_create(port, CALL_LOCK, deadline_ms, arg);

    op->cb.ctr = cb;
    send_ctr(op, "POST", uuid, "/lock", NULL, NULL);
    return op;
}

static struct op *do_unlock(struct api_port *port, const char *uuid,
                            int64_t deadline_ms,
                            void (*cb)(void *, const struct api_ctr_result *),
                            void *arg)
{
    struct op *op = op_create(port, CALL_UNLOCK, deadline_ms, arg);

    op->cb.ctr = cb;
    send_ctr(op, "POST", uuid, "/unlock", NULL, NULL);
    return op;
}

static struct op *do_attempt(struct api_port *port, const char *uuid,
                             int64_t deadline_ms,
                             void (*cb)(void *,
                                        const struct api_attempt_result *),
                             void *arg)
{
    struct op *op = op_create(port, CALL_ATTEMPT, deadline_ms, arg);

    op->cb.attempt = cb;
    send_ctr(op, "POST", uuid, "/attempt", NULL, NULL);
    return op;
}

static struct op *do_revoke(struct api_port *port, const char *uuid,
                            int64_t deadline_ms,
                            void (*cb)(void *, const struct op_result *),
                            void *arg)
{
    struct op *op = op_create(port, CALL_REVOKE, deadline_ms, arg);

    op->cb.revoke = cb;
    send_ctr(op, "DELETE", uuid, "/attempt", NULL, NULL);
    return op;
}

static struct op *do_update(struct api_port *port,
                            const struct api_update_req *req,
                            void (*cb)(void *, const struct api_ctr_result *),
                            void *arg)
{
    struct op *op = op_create(port, CALL_UPDATE, req->deadline_ms, arg);
    CLEANUP(buf_fini) struct buf body;

    op->cb.ctr = cb;
    buf_init(&body, QUERY_MAX);
    wire_update_body(&body, req, op->a->features.attempts);
    send_ctr(op, "PUT", req->uuid, "", NULL, &body);
    return op;
}

static struct op *do_feed(struct api_port *port, const char *epoch,
                          int64_t cursor, int64_t wait_ms,
                          void (*cb)(void *, const struct api_feed_result *),
                          void *arg)
{
    struct op *op = op_create(port, CALL_FEED, wait_ms + FEED_SLACK_MS, arg);
    const char *path = op->a->features.feed_path;
    CLEANUP(buf_fini) struct buf query;

    op->cb.feed = cb;
    buf_init(&query, QUERY_MAX);
    wire_feed_query(&query, epoch, cursor, wait_ms);
    send_request(op, &(struct ask) {
                         .method = "GET",
                         .path = path[0] ? path : "/arvados/v1/feed",
                         .query = &query});
    return op;
}

static void do_cancel(struct api_port *port, struct op *op)
{
    (void) port;
    if (op->http)
        httpc_cancel(op->http); /* else its reply is being parsed */
}

/* --- life ----------------------------------------------------------------*/

static bool is_token(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && n < 1024 && strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "abcdefghijklmnopqrstuvwxyz"
                                          "0123456789-._~+/=") == n;
}

struct api_client *api_client_create(struct loop *l,
                                     const struct api_client_cfg *cfg,
                                     struct err *err)
{
    struct api_client *a;
    struct url url;

    if (url_parse(cfg->url, &url, err) < 0)
        return NULL;
    if (!is_token(cfg->token)) {
        err_set(err, ERR_CONFIG, "the API token is malformed");
        return NULL;
    }
    a = MEM_NEW(struct api_client);
    a->loop = l;
    a->base = mem_printf(strchr(url.host, ':') ? "%s://[%s]:%d%s"
                                               : "%s://%s:%d%s",
                         url.tls ? "https" : "http", url.host, url.port,
                         url.path);
    a->authorization = mem_printf("Authorization: Bearer %s", cfg->token);
    a->http = httpc_create(l, &(struct httpc_cfg) {
                                  .max_conns = cfg->max_conns,
                                  .ca_bundle = cfg->ca_bundle,
                                  .user_agent = "crunch-dispatch-cloud"});
    a->pool = loop_pool_create(l, 1, 64);
    assert(a->pool); /* a program without a thread cannot work */
    a->port = (struct api_port) {
        .whoami = do_whoami, .list = do_list, .get = do_get, .lock = do_lock,
        .unlock = do_unlock, .attempt = do_attempt, .revoke = do_revoke,
        .update = do_update, .feed = do_feed, .op_cancel = do_cancel,
        .impl = a,
    };
    return a;
}

struct api_port *api_client_port(struct api_client *a)
{
    return &a->port;
}

/* A reply that is being parsed is freed when its thread has reported. */
static void abandon(struct op *op)
{
    bool later = op->queued && op->begun;

    if (!later) {
        op_free(op);
        return;
    }
    *op->link = op->next;
    if (op->next)
        op->next->link = op->link;
    op->a = NULL;
}

void api_client_destroy(struct api_client *a)
{
    if (!a)
        return;
    loop_pool_destroy(a->pool); /* from here on `begun` stands still */
    a->closing = true;
    httpc_destroy(a->http);
    while (a->ops)
        abandon(a->ops);
    secret_free(a->authorization);
    free(a->base);
    free(a);
}
