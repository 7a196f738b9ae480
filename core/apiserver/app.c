/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server as a whole: what it is made of, and what a request meets first.
 *
 * On the loop: the HTTP server, routing, rate limits, the change feed, the
 * counters. Off it: everything that parses, asks the database or touches a
 * file (call.c). A request that needs neither is answered at once: OPTIONS,
 * the discovery document, /metrics, /_health/ping.
 *
 * Stopping: long polls are answered, nothing new is accepted, what has arrived
 * is finished; the store is closed last, when no job is out.
 */
#include "core/apiserver/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/apiserver/discovery.h"
#include "core/apiserver/feed.h"
#include "core/apiserver/files.h"
#include "core/apiserver/handlers.h"
#include "core/apiserver/janitor.h"
#include "core/apiserver/limit.h"
#include "core/apiserver/routes.h"
#include "core/apiserver/stats.h"
#include "core/apiserver/status.h"
#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/io/form.h"
#include "core/io/httpd.h"
#include "core/io/loop.h"

static const char api_prefix[] = "/arvados/v1/";
static const char discovery_path[] = "/discovery/v1/apis/arvados/v1/rest";

enum { BODY_JSON = 16 << 20, BODY_BYTES = 16 << 20, METRICS_MAX = 4 << 20 };

/* ---------------------------------------------------------- management -- */

/* As in Arvados: the ManagementToken, literally; none set, no such route. */
static bool may_manage(struct app *app, struct httpd_req *req)
{
    const char *auth = httpd_header(req, "Authorization");
    const char *token = app->cfg.management_token, *given;

    if (!*token) {
        httpd_reply(req, 404, "text/plain", NULL, "disabled\n", 9);
        return false;
    }
    if (!auth) {
        httpd_reply(req, 401, "text/plain", NULL, "authorization required\n",
                    23);
        return false;
    }
    given = httpd_token(auth);
    if (given && secret_equal(given, token))
        return true;
    httpd_reply(req, 403, "text/plain", NULL, "authorization error\n", 20);
    return false;
}

static void reply_metrics(struct app *app, struct httpd_req *req)
{
    struct buf out;
    size_t len;
    char *text;

    buf_init(&out, METRICS_MAX);
    stats_print(app->stats, app, httpd_conns(app->httpd), &out);
    text = buf_take(&out, &len);
    httpd_reply_take(req, 200, "text/plain; version=0.0.4", NULL, text, len);
}

static bool manage(struct app *app, struct httpd_req *req, const char *path)
{
    static const char ok[] = "{\"health\":\"OK\"}\n";
    bool metrics = strcmp(path, "/metrics") == 0;

    if (!metrics && strcmp(path, "/_health/ping") != 0)
        return false;
    if (!may_manage(app, req))
        return true;
    if (metrics)
        reply_metrics(app, req);
    else
        httpd_reply(req, 200, "application/json", NULL, ok, sizeof ok - 1);
    return true;
}

/* ------------------------------------------------------------- routing -- */

/* POST that means another method: by header or form field. */
static const char *true_method(struct httpd_req *req)
{
    const char *method = httpd_method(req);
    const char *over = httpd_header(req, "X-Http-Method-Override");
    const char *type = httpd_header(req, "Content-Type"), *body;
    CLEANUP(form_cleanup) struct form *form = NULL;
    size_t len;

    if (strcmp(method, "POST") != 0)
        return method;
    body = httpd_body(req, &len);
    if (!over && type && strstr(type, "urlencoded") &&
        memmem(body, len, "_method=", 8) &&
        (form = form_parse(body, len, 200, NULL)))
        over = form_get(form, "_method");
    if (over && strcasecmp(over, "GET") == 0)
        return "GET";
    return method;
}

static void start_call(struct app *app, struct httpd_req *req,
                       const char *path)
{
    const char *method = true_method(req), *rest;
    const struct route *route;
    char id[128];
    bool other;

    route = routes_find(method, path, id, sizeof id, &rest, &other);
    if (route)
        call_start(app, req, route, id, rest, method);
    else if (other)
        httpd_reply_error(req, 405, "method not allowed");
    else
        httpd_reply_error(req, 404, "Path not found");
}

static void on_request(void *arg, struct httpd_req *req)
{
    static const struct httpd_header retry[] = {{"Retry-After", "1"}, {0}};
    static const char slow[] = "{\"errors\":[\"too many requests\"]}\n";
    struct app *app = arg;
    const char *path = httpd_path(req);

    if (manage(app, req, path))
        return;
    if (strcmp(httpd_method(req), "OPTIONS") == 0) {
        httpd_reply(req, 200, NULL, call_cors, NULL, 0);
        return;
    }
    if (strcmp(path, discovery_path) == 0) {
        httpd_reply(req, 200, "application/json", call_cors, app->discovery,
                    strlen(app->discovery));
        return;
    }
    if (strncmp(path, api_prefix, sizeof api_prefix - 1) != 0) {
        httpd_reply_error(req, 404, "Path not found");
        return;
    }
    if (!limit_pass(app->limit, httpd_token(httpd_header(req, "Authorization")),
                    httpd_peer(req), clock_mono_us())) {
        httpd_reply(req, 429, "application/json", retry, slow,
                    sizeof slow - 1);
        return;
    }
    start_call(app, req, path + sizeof api_prefix - 1);
}

/* Before the body: how much of it may come. */
static int on_head(void *arg, struct httpd_req *req, size_t *max_body,
                   const char **text)
{
    struct app *app = arg;
    const char *path = httpd_path(req), *rest;
    const struct route *route = NULL;
    size_t max = BODY_JSON;
    char id[128];
    bool other;

    (void) text;
    if (strncmp(path, api_prefix, sizeof api_prefix - 1) == 0)
        route = routes_find(httpd_method(req), path + sizeof api_prefix - 1,
                            id, sizeof id, &rest, &other);
    if (route && route->flags & ROUTE_BYTES)
        max = BODY_BYTES;
    if ((int64_t) max > app->cfg.max_body)
        max = (size_t) app->cfg.max_body;
    *max_body = max;
    return 0;
}

static void on_reply(void *arg, const struct httpd_req *req, int status,
                     size_t len)
{
    struct app *app = arg;
    const char *method = httpd_method(req);
    const char *path = *method ? httpd_path(req) : "";
    char code[16], us[24];

    (void) len;
    stats_reply(app->stats, method, path, status, httpd_age_us(req));
    if (!logger_enabled(app->log, LOG_DEBUG))
        return;
    snprintf(code, sizeof code, "%d", status);
    snprintf(us, sizeof us, "%lld", (long long) httpd_age_us(req));
    log_event(app->log, LOG_DEBUG, "request", "Method", method, "Path", path,
              "Status", code, "Microseconds", us, "RequestID",
              httpd_request_id(req), NULL);
}

/* -------------------------------------------------------- construction -- */

static void on_change(void *arg, int64_t seq, enum store_table t,
                      const char *key)
{
    feed_add(((struct app *) arg)->feed, seq, t, key);
}

static int open_data(struct app *app, struct err *err)
{
    const struct app_cfg *cfg = &app->cfg;
    struct store_opts store = {.path = cfg->database, .full = cfg->durable,
                               .readers = (unsigned) cfg->readers,
                               .max_queued = (unsigned) cfg->max_calls};
    struct files_opts files = {.dir = cfg->files_dir,
                               .durable = cfg->durable,
                               .max_file = cfg->max_file,
                               .max_attempt = cfg->max_attempt_bytes,
                               .max_files = cfg->max_attempt_files};

    if (store_open(app->loop, &store, &app->store, err) < 0 ||
        files_open(&files, &app->files, err) < 0)
        return -1;
    store_watch(app->store, on_change, app);
    return 0;
}

static int listen_on(struct app *app, struct err *err)
{
    const struct app_cfg *cfg = &app->cfg;
    struct httpd_cfg http = {
        .address = cfg->address,
        .port = cfg->port,
        .max_conns = (unsigned) cfg->max_conns,
        .max_conns_peer = (unsigned) cfg->max_conns_peer,
        .on_head = on_head,
        .handler = on_request,
        .on_reply = on_reply,
        .arg = app};

    app->httpd = httpd_create(app->loop, &http, err);
    return app->httpd ? 0 : -1;
}

/* Where clients reach us; a port of 0 stands for the one we got. */
static char *public_url(const struct app *app)
{
    const char *url = app->cfg.external_url;
    size_t n = strlen(url);

    if (n == 0)
        return mem_printf("http://127.0.0.1:%d", app_port(app));
    if (n > 2 && strcmp(url + n - 2, ":0") == 0)
        return mem_printf("%.*s:%d", (int) (n - 2), url, app_port(app));
    return mem_strdup(url);
}

struct app *app_create(struct loop *l, const struct app_cfg *cfg,
                       struct logger *log, struct err *err)
{
    struct app *app = MEM_NEW(struct app);
    CLEANUP(mem_free) char *url = NULL;

    app->cfg = *cfg;
    app->loop = l;
    app->log = log;
    app->feed = feed_create(l, cfg->feed_length);
    app->limit = limit_create(cfg->max_rate);
    app->stats = stats_create();
    app->status = status_create(l, &app->cfg);
    if (open_data(app, err) < 0 || listen_on(app, err) < 0)
        goto error;
    app->janitor = janitor_create(app);
    url = public_url(app);
    app->discovery = discovery_make(&app->cfg, url);
    return app;
error:
    app_destroy(app);
    return NULL;
}

int app_port(const struct app *app)
{
    return httpd_port(app->httpd);
}

/* No connection is left; a job of our own may be. */
static void wait_for_jobs(void *arg)
{
    struct app *app = arg;

    if (janitor_stop(app->janitor) || app->calls > 0)
        loop_timer_arm(app->loop, 5000, wait_for_jobs, app);
    else
        app->stopped(app->stopped_arg);
}

void app_stop(struct app *app, int64_t deadline_ms, void (*done)(void *arg),
              void *arg)
{
    app->stopping = true;
    app->stopped = done;
    app->stopped_arg = arg;
    feed_flush(app->feed);
    httpd_stop(app->httpd, deadline_ms, wait_for_jobs, app);
}

void app_destroy(struct app *app)
{
    if (!app)
        return;
    janitor_destroy(app->janitor);
    status_destroy(app->status);
    httpd_destroy(app->httpd);
    store_close(app->store);
    files_close(app->files);
    feed_destroy(app->feed);
    limit_destroy(app->limit);
    stats_destroy(app->stats);
    free(app->discovery);
    free(app);
}
