/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking face of the HTTP client: start a call, run the loop until its
 * callback stops it. One call at a time. A body that the server refuses with
 * {"errors": [...]} becomes one line of an error; the code becomes a class.
 */
#include "core/ctl/client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/ctl/cred.h"
#include "core/io/httpc.h"
#include "core/io/loop.h"

enum { CLIENT_REPLY_MAX = 64 << 20 };

struct client {
    struct loop *loop;
    struct httpc *httpc;
    struct cred cred;
    bool interrupted, answered;
    /* of the call under way */
    struct err err;
    int status;
    char *body;
    size_t len;
};

struct client *client_create(struct cred *cred, struct err *err)
{
    struct client *c = MEM_NEW(struct client);
    struct httpc_cfg cfg = { .max_conns = 2, .user_agent = "crunchctl" };

    c->cred = *cred;
    memset(cred, 0, sizeof *cred);
    c->loop = loop_create(err);
    if (!c->loop) {
        client_destroy(c);
        return NULL;
    }
    c->httpc = httpc_create(c->loop, &cfg);
    return c;
}

void client_destroy(struct client *c)
{
    if (!c)
        return;
    httpc_destroy(c->httpc);
    loop_destroy(c->loop);
    cred_fini(&c->cred);
    free(c);
}

bool client_has_dispatch(const struct client *c)
{
    return c->cred.dispatch_url != NULL;
}

static void on_reply(void *arg, const struct httpc_result *r)
{
    struct client *c = arg;

    c->answered = true;
    c->err = r->err;
    c->status = r->status;
    c->body = r->err.class ? NULL : httpc_take_body(r, &c->len);
    loop_stop(c->loop);
}

/* The server's own words, if it has any. */
static void explain_refusal(const struct client *c, char *out, size_t size)
{
    CLEANUP(jsn_cleanup) struct jsn *j =
        c->body ? jsn_parse(c->body, c->len, NULL) : NULL;
    const struct jsn *errors = jsn_get(j, "errors");
    size_t used = 0;

    snprintf(out, size, "the server answered %d", c->status);
    for (size_t i = 0; i < jsn_count(errors) && used < size - 1; i++) {
        const char *text = "";

        if (jsn_as_str(jsn_at(errors, i), &text, NULL) == 0)
            used += (size_t) snprintf(out + used, size - used, "%s%s",
                                      i ? "; " : "", text);
    }
}

static enum err_class class_of(int status)
{
    switch (status) {
    case 400:
    case 422:
    case 416:
        return ERR_INVALID;
    case 401:
    case 403:
        return ERR_AUTH;
    case 404:
        return ERR_NOT_FOUND;
    case 429:
    case 503:
        return ERR_RATE_LIMITED;
    default:
        return ERR_TRANSIENT;
    }
}

static int exchange(struct client *c, enum client_server server,
                    const char *method, const char *path, const char *json,
                    const char *header, struct err *err)
{
    const char *base = server == CLIENT_API ? c->cred.api_url
                                            : c->cred.dispatch_url;
    const char *token = server == CLIENT_API ? c->cred.api_token
                                             : c->cred.dispatch_token;
    size_t trim = strlen(base);
    CLEANUP(mem_free) char *url = NULL;
    CLEANUP(mem_free) char *auth = mem_printf("Authorization: Bearer %s",
                                              token);
    const char *headers[] = { auth, "Content-Type: application/json", header,
                              NULL };
    struct httpc_request req = {
        .method = method, .headers = headers, .body = json,
        .body_len = json ? strlen(json) : 0, .max_reply = CLIENT_REPLY_MAX,
    };
    char text[400];

    while (trim && base[trim - 1] == '/')
        trim--;
    url = mem_printf("%.*s%s", (int) trim, base, path);
    req.url = url;
    free(c->body);
    c->body = NULL;
    c->answered = false;
    httpc_start(c->httpc, &req, on_reply, c);
    while (!c->answered)
        loop_run(c->loop);
    explicit_bzero(auth, strlen(auth));
    if (c->err.class) {
        *err = c->err;
        return err_prefix(err, server == CLIENT_API
                                   ? "no answer from the API server"
                                   : "no answer from the dispatcher");
    }
    if (c->status / 100 == 2)
        return 0;
    explain_refusal(c, text, sizeof text);
    return err_set(err, class_of(c->status), "%s", text);
}

struct jsn *client_call_with(struct client *c, enum client_server server,
                             const char *method, const char *path,
                             const char *json, const char *header,
                             struct err *err)
{
    struct err local;

    if (!err)
        err = &local;
    if (server == CLIENT_DISPATCH && !c->cred.dispatch_url) {
        err_set(err, ERR_CONFIG,
                "no dispatcher: set CDC_DISPATCH_URL and "
                "CDC_MANAGEMENT_TOKEN");
        return NULL;
    }
    if (exchange(c, server, method, path, json, header, err) < 0)
        return NULL;
    if (!c->len)
        return jsn_parse("{}", 2, err);
    return jsn_parse(c->body, c->len, err);
}

struct jsn *client_call(struct client *c, enum client_server server,
                        const char *method, const char *path,
                        const char *json, struct err *err)
{
    return client_call_with(c, server, method, path, json, NULL, err);
}

int client_fetch(struct client *c, const char *path, int64_t offset,
                 struct buf *out, struct err *err)
{
    char range[64];
    struct err local;

    if (!err)
        err = &local;
    snprintf(range, sizeof range, "Range: bytes=%lld-", (long long) offset);
    if (exchange(c, CLIENT_API, "GET", path, NULL, offset ? range : NULL,
                 err) < 0)
        return c->status == 416 ? 0 : -1;
    if (buf_append(out, c->body, c->len) < 0)
        return err_set(err, ERR_TOO_LARGE, "the answer is too large");
    return 0;
}

/* --- waiting ------------------------------------------------------------------- */

static void on_interrupt(void *arg, int signum)
{
    struct client *c = arg;

    (void) signum;
    c->interrupted = true;
    loop_stop(c->loop);
}

int client_catch_interrupt(struct client *c, struct err *err)
{
    return loop_signal(c->loop, SIGINT, on_interrupt, c, err);
}

static void on_awake(void *arg)
{
    struct client *c = arg;

    loop_stop(c->loop);
}

bool client_sleep(struct client *c, int64_t ms)
{
    struct loop_timer *t;

    if (c->interrupted)
        return false;
    t = loop_timer_arm(c->loop, ms * 1000, on_awake, c);
    loop_run(c->loop);
    if (c->interrupted)
        loop_timer_cancel(t);
    return !c->interrupted;
}
