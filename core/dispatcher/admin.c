/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The management API: a table of routes over core/io/httpd.
 *
 * Every request passes one gate first: no ManagementToken configured -> 403
 * (404 for /_health/ping, as in Arvados; /metrics is closed too, which it is
 * not there); no token given -> 401; a wrong one -> 403. Comparison takes the
 * same time whatever is given. Parameters come in the query or in a form
 * body. Errors are {"errors":["..."]}; success of a POST is an empty 200.
 *
 * Loop thread. The dispatcher behind it may be absent for a while at the
 * start (the API server does not answer yet): 503 with the reason then, so
 * that an operator sees a process that speaks.
 */
#include "core/dispatcher/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/metric.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/dispatch/dispatch.h"
#include "core/dispatcher/view.h"
#include "core/io/form.h"
#include "core/io/httpd.h"
#include "core/io/url.h"

enum { ADMIN_REPLY_MAX = 256 << 20, ADMIN_FIELDS = 16 };

struct admin {
    struct httpd *httpd;
    struct dispatch *dispatch;
    struct logger *log;
    struct metrics *metrics;
    char *token;
    char problem[512];
};

/* One request on its way through a route. */
struct call {
    struct admin *admin;
    struct httpd_req *req;
    struct dispatch *dispatch;
    struct form *query, *form;
    struct buf out;
};

static const char *parameter(const struct call *c, const char *name)
{
    const char *v = form_get(c->query, name);

    if (!v)
        v = form_get(c->form, name);
    return v ? v : "";
}

static void reply_json(struct call *c)
{
    if (c->out.over)
        httpd_reply_error(c->req, 500, "the answer is too large");
    else
        httpd_reply(c->req, 200, "application/json", NULL, c->out.data,
                    c->out.len);
}

static void reply_done(struct call *c, int rc, const struct err *err)
{
    if (rc == 0)
        httpd_reply(c->req, 200, NULL, NULL, "", 0);
    else
        httpd_reply_error(c->req, err->class == ERR_NOT_FOUND ? 404 : 422,
                          "%s", err->text);
}

/* A required parameter; 400 and NULL when it is missing. */
static const char *required(struct call *c, const char *name)
{
    const char *v = parameter(c, name);

    if (*v)
        return v;
    httpd_reply_error(c->req, 400, "parameter %s is missing", name);
    return NULL;
}

/* --- routes ------------------------------------------------------------------ */

static void get_containers(struct call *c)
{
    view_containers(c->dispatch, &c->out);
    reply_json(c);
}

static void get_container(struct call *c)
{
    const char *uuid = required(c, "container_uuid");

    if (!uuid)
        return;
    if (view_container(c->dispatch, uuid, &c->out) < 0)
        httpd_reply_error(c->req, 404, "container %s is not known here",
                          uuid);
    else
        reply_json(c);
}

static void get_explain(struct call *c)
{
    const char *uuid = required(c, "container_uuid");

    if (!uuid)
        return;
    if (view_explain(c->dispatch, uuid, &c->out) < 0)
        httpd_reply_error(c->req, 404, "container %s is not known here",
                          uuid);
    else
        reply_json(c);
}

static void kill_container(struct call *c)
{
    const char *uuid = required(c, "container_uuid");
    struct err err;

    if (uuid)
        reply_done(c,
                   dispatch_kill_container(c->dispatch, uuid,
                                           parameter(c, "reason"), &err),
                   &err);
}

static void get_instances(struct call *c)
{
    view_instances(c->dispatch, &c->out);
    reply_json(c);
}

static void set_behavior(struct call *c, enum dispatch_behavior b)
{
    const char *id = required(c, "instance_id");
    struct err err;

    if (id)
        reply_done(c, dispatch_set_behavior(c->dispatch, id, b, &err), &err);
}

static void hold_instance(struct call *c)
{
    set_behavior(c, DISPATCH_HOLD);
}

static void drain_instance(struct call *c)
{
    set_behavior(c, DISPATCH_DRAIN);
}

static void run_instance(struct call *c)
{
    set_behavior(c, DISPATCH_RUN);
}

static void kill_instance(struct call *c)
{
    const char *id = required(c, "instance_id");
    struct err err;

    if (id)
        reply_done(c,
                   dispatch_kill_instance(c->dispatch, id,
                                          parameter(c, "reason"), &err),
                   &err);
}

static void get_health(struct call *c)
{
    view_health(c->dispatch, c->admin->problem, &c->out);
    reply_json(c);
}

static void get_metrics(struct call *c)
{
    if (c->dispatch)
        dispatch_update_metrics(c->dispatch);
    metrics_print(c->admin->metrics, &c->out);
    if (c->out.over)
        httpd_reply_error(c->req, 500, "the answer is too large");
    else
        httpd_reply(c->req, 200, "text/plain; version=0.0.4", NULL,
                    c->out.data, c->out.len);
}

#define DISPATCH "/arvados/v1/dispatch/"

/*      method  path                          function         needs one */
#define ADMIN_ROUTES(X)                                                       \
    X("GET",  DISPATCH "containers",          get_containers,  true)          \
    X("GET",  DISPATCH "container",           get_container,   true)          \
    X("POST", DISPATCH "containers/kill",     kill_container,  true)          \
    X("GET",  DISPATCH "explain",             get_explain,     true)          \
    X("GET",  DISPATCH "instances",           get_instances,   true)          \
    X("POST", DISPATCH "instances/hold",      hold_instance,   true)          \
    X("POST", DISPATCH "instances/drain",     drain_instance,  true)          \
    X("POST", DISPATCH "instances/run",       run_instance,    true)          \
    X("POST", DISPATCH "instances/kill",      kill_instance,   true)          \
    X("GET",  "/metrics",                     get_metrics,     false)         \
    X("GET",  "/_health/ping",                get_health,      false)

static const struct route {
    const char *method, *path;
    void (*handle)(struct call *c);
    bool needs_dispatch;
} routes[] = {
#define X(method, path, fn, needs) { method, path, fn, needs },
    ADMIN_ROUTES(X)
#undef X
};

/* --- the gate ---------------------------------------------------------------- */

static bool may_pass(struct admin *a, struct httpd_req *req)
{
    const char *token = httpd_token(httpd_header(req, "authorization"));

    if (!*a->token) {
        httpd_reply_error(req,
                          strcmp(httpd_path(req), "/_health/ping") ? 403 : 404,
                          "disabled: there is no ManagementToken");
        return false;
    }
    if (!token) {
        httpd_reply_error(req, 401, "a management token is needed");
        return false;
    }
    if (!secret_equal(token, a->token)) {
        httpd_reply_error(req, 403, "the management token is wrong");
        return false;
    }
    return true;
}

static const struct route *find_route(struct httpd_req *req)
{
    const char *method = httpd_method(req);
    bool path_known = false;

    if (!strcmp(method, "HEAD"))
        method = "GET";
    for (size_t i = 0; i < MEM_COUNT(routes); i++) {
        if (strcmp(routes[i].path, httpd_path(req)) != 0)
            continue;
        if (!strcmp(routes[i].method, method))
            return &routes[i];
        path_known = true;
    }
    httpd_reply_error(req, path_known ? 405 : 404, "%s",
                      path_known ? "method not allowed" : "no such route");
    return NULL;
}

static int read_parameters(struct call *c)
{
    size_t n;
    const char *body = httpd_body(c->req, &n);
    const char *query = httpd_query(c->req);
    struct err err;

    c->query = form_parse(query, strlen(query), ADMIN_FIELDS, &err);
    if (c->query && n)
        c->form = form_parse(body, n, ADMIN_FIELDS, &err);
    if (c->query && (!n || c->form))
        return 0;
    httpd_reply_error(c->req, 400, "%s", err.text);
    return -1;
}

static void on_request(void *arg, struct httpd_req *req)
{
    struct admin *a = arg;
    struct call c = { .admin = a, .req = req, .dispatch = a->dispatch };
    const struct route *route;

    if (!may_pass(a, req))
        return;
    route = find_route(req);
    if (!route)
        return;
    if (route->needs_dispatch && !a->dispatch) {
        httpd_reply_error(req, 503, "%s", a->problem);
        return;
    }
    buf_init(&c.out, ADMIN_REPLY_MAX);
    if (read_parameters(&c) == 0)
        route->handle(&c);
    form_free(c.query);
    form_free(c.form);
    buf_fini(&c.out);
}

/* --- life -------------------------------------------------------------------- */

struct admin *admin_create(const struct admin_options *o, struct err *err)
{
    struct admin *a = MEM_NEW(struct admin);
    struct httpd_cfg cfg = { .handler = on_request, .arg = a };
    struct url url;

    a->log = o->log;
    a->metrics = o->metrics;
    a->token = mem_strdup(o->token);
    text_copy(a->problem, "starting", sizeof a->problem);
    if (url_parse(o->url, &url, err) < 0)
        goto error;
    if (url.tls) {
        err_set(err, ERR_CONFIG, "%s: https is not served here", o->url);
        goto error;
    }
    cfg.address = url.host;
    cfg.port = url.port;
    a->httpd = httpd_create(o->loop, &cfg, err);
    if (!a->httpd)
        goto error;
    return a;
error:
    admin_destroy(a);
    return NULL;
}

void admin_set_dispatch(struct admin *a, struct dispatch *d)
{
    a->dispatch = d;
    if (d)
        a->problem[0] = 0;
}

void admin_set_problem(struct admin *a, const char *text)
{
    text_copy(a->problem, text, sizeof a->problem);
}

void admin_stop(struct admin *a, void (*done)(void *arg), void *arg)
{
    httpd_stop(a->httpd, 2000, done, arg);
}

void admin_destroy(struct admin *a)
{
    if (!a)
        return;
    httpd_destroy(a->httpd);
    secret_free(a->token);
    free(a);
}
