/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the API server.
 *
 * Each call is one request; a status becomes an error class (table in the
 * header), the first text of Arvados' error body becomes the error's text.
 * What may pass by itself is repeated with pauses of 50 ms, doubled up to 10 s
 * and spread by a quarter, as long as the caller has patience: little while
 * the payload runs (the next second comes anyway), ten minutes for the first
 * and the last word. A pause ends when the wake descriptor does.
 *
 * Nothing here decides what a refusal means; run.c does.
 */
#include "core/runner/api.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/runner/http.h"

enum {
    PATH_MAX_BYTES = 16 * 1024,
    PAUSE_FIRST_MS = 50,
    PAUSE_MAX_MS = 10 * 1000,
    UPDATE_MAX = 256 * 1024,
};

struct api {
    struct http *http;
    char uuid[TEXT_UUID_SIZE];
    int wake_fd;
    int64_t patience_us;
    int64_t last_ok_us;
};

struct api *api_create(const struct http_url *url, const char *uuid,
                       const char *token)
{
    struct api *a = MEM_NEW(struct api);

    a->http = http_create(url, token);
    text_copy(a->uuid, uuid, sizeof a->uuid);
    a->wake_fd = -1;
    return a;
}

void api_destroy(struct api *a)
{
    if (!a)
        return;
    http_destroy(a->http);
    free(a);
}

void api_forget(struct api *a)
{
    http_destroy(a->http);
    a->http = NULL;
}

void api_set_wake(struct api *a, int fd)
{
    a->wake_fd = fd;
}

void api_set_patience(struct api *a, int64_t until_us)
{
    a->patience_us = until_us;
}

int64_t api_last_ok_us(const struct api *a)
{
    return a->last_ok_us;
}

static enum err_class class_of(int status)
{
    if (status == 401 || status == 403)
        return ERR_AUTH;
    if (status == 404)
        return ERR_NOT_FOUND;
    if (status == 413)
        return ERR_TOO_LARGE;
    if (status == 408 || status == 429 || status >= 500)
        return ERR_TRANSIENT;
    return ERR_INVALID;
}

/* {"errors": ["text", ...]}, or nothing that we know. */
static int refused(const struct http_reply *reply, const struct buf *body,
                   struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(body->data, body->len,
                                                   NULL);
    const char *text = "no reason given";

    jsn_as_str(jsn_at(jsn_get(j, "errors"), 0), &text, NULL);
    err_set(err, class_of(reply->status), "HTTP %d: %s", reply->status, text);
    if (err)
        err->retry_ms = reply->retry_after_s * 1000;
    return -1;
}

static int call_once(struct api *a, struct http_req *req, struct buf *ret,
                     struct err *err)
{
    CLEANUP(buf_wipe) struct buf body;
    struct http_reply reply;

    buf_init(&body, API_RECORD_MAX);
    req->wake_fd = a->wake_fd;
    req->deadline_us = clock_mono_us() + API_CALL_MS * INT64_C(1000);
    if (http_call(a->http, req, &reply, &body, err) < 0)
        return -1;
    if (reply.status != 200)
        return refused(&reply, &body, err);
    a->last_ok_us = clock_mono_us();
    if (ret && buf_append(ret, body.data, body.len) < 0)
        return err_set(err, ERR_TOO_LARGE, "the server's answer");
    return 0;
}

/* -1 when there is no time left for a pause, or it was cut short. */
static int pause_ms(const struct api *a, int64_t ms, struct err *err)
{
    struct pollfd pf = {.fd = a->wake_fd, .events = POLLIN};
    unsigned char spread;
    int n;

    secret_random(&spread, sizeof spread);
    ms += ms * spread / 1024;
    if (clock_mono_us() + ms * 1000 > a->patience_us)
        return -1;
    do
        n = poll(&pf, 1, (int) ms);
    while (n < 0 && errno == EINTR);
    return n == 0 ? 0 : err_set(err, ERR_CANCELLED, "given up");
}

static int call(struct api *a, struct http_req *req, struct buf *ret,
                struct err *err)
{
    struct err own = {0};
    int64_t ms = PAUSE_FIRST_MS;

    for (;;) {
        int64_t wait = ms;

        if (call_once(a, req, ret, &own) == 0)
            return 0;
        if (own.class != ERR_TRANSIENT && own.class != ERR_TIMEOUT)
            break;
        if (wait < own.retry_ms)
            wait = own.retry_ms;
        if (pause_ms(a, wait, &own) < 0)
            break;
        ms = ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : ms * 2;
    }
    err_prefix(&own, "%s %.80s", req->method, req->path);
    if (err)
        *err = own;
    return -1;
}

static int get(struct api *a, const char *rest, struct buf *ret,
               struct err *err)
{
    CLEANUP(mem_free) char *path =
        mem_printf("/arvados/v1/containers/%s%s", a->uuid, rest);
    struct http_req req = {.method = "GET", .path = path};

    return call(a, &req, ret, err);
}

int api_get(struct api *a, struct buf *record, struct err *err)
{
    return get(a, "", record, err);
}

int api_get_state(struct api *a, struct buf *record, struct err *err)
{
    return get(a, "?select=%5B%22state%22%2C%22priority%22%5D", record, err);
}

int api_get_auth(struct api *a, struct buf *record, struct err *err)
{
    return get(a, "/auth", record, err);
}

int api_get_secrets(struct api *a, struct buf *reply, struct err *err)
{
    return get(a, "/secret_mounts", reply, err);
}

int api_update(struct api *a, const char *members, struct buf *ret,
               struct err *err)
{
    CLEANUP(mem_free) char *path =
        mem_printf("/arvados/v1/containers/%s", a->uuid);
    CLEANUP(buf_fini) struct buf body;
    struct http_req req = {.method = "PUT", .path = path,
                           .content_type = "application/json"};

    buf_init(&body, UPDATE_MAX);
    buf_printf(&body, "{\"container\":%s}", members);
    if (body.over)
        return err_set(err, ERR_TOO_LARGE, "update of the container");
    req.body = body.data;
    req.body_len = body.len;
    return call(a, &req, ret, err);
}

/* Slashes stay: each part is escaped by itself. */
static void escape_path(struct buf *out, const char *path)
{
    while (*path) {
        size_t n = strcspn(path, "/");
        CLEANUP(mem_free) char *part = mem_strndup(path, n);

        text_encode_uri(out, part);
        path += n;
        if (*path)
            buf_putc(out, *path++);
    }
}

int api_put_file(struct api *a, const char *kind, const char *path, int fd,
                 int64_t at, size_t n, struct err *err)
{
    CLEANUP(buf_fini) struct buf url;
    struct http_req req = {
        .method = "PUT",
        .content_type = "application/octet-stream",
        .body_fd = fd,
        .body_at = at,
        .body_len = n,
    };

    buf_init(&url, PATH_MAX_BYTES);
    buf_printf(&url, "/arvados/v1/containers/%s/%s/", a->uuid, kind);
    escape_path(&url, path);
    buf_printf(&url, "?offset=%lld", (long long) at);
    if (url.over)
        return err_set(err, ERR_TOO_LARGE, "name of a file");
    req.path = url.data;
    return call(a, &req, NULL, err);
}
