/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What goes over the wire between dispatcher and API server, as functions
 * from records to text and from text to records.
 *
 * Requests are those of Arvados' own dispatcher (same filters, same order,
 * count=none), so that they meet the indexes which a real server has. The
 * queue is ordered by priority, then uuid; a page continues by key, never by
 * offset, because an offset skips items while the queue moves. Filters cannot
 * say "or", therefore the two parts WIRE_TIES and WIRE_LOWER.
 *
 * Called by api_client.c; replies also on a thread of its pool. Pure.
 */

#include "core/arvados/api_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arvados/ctr_json.h"
#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/port/api.h"

enum { QUERY_JSON_MAX = 16384, RETRY_MAX_S = 3600 };

/* --- requests ------------------------------------------------------------*/

/* Mounts are left out of lists: servers find them expensive. */
static const char *const list_fields[] = {
    "uuid", "state", "priority", "locked_by_uuid", "lock_count",
    "created_at", "exit_code", "container_image", "runtime_constraints",
    "scheduling_parameters",
};

static void put_select(struct jsn_w *w, const char *key, bool attempts,
                       bool mounts)
{
    jsn_w_arr(w, key);
    for (size_t i = 0; i < MEM_COUNT(list_fields); i++)
        jsn_w_str(w, NULL, list_fields[i]);
    if (attempts)
        jsn_w_str(w, NULL, "attempt");
    if (mounts)
        jsn_w_str(w, NULL, "mounts");
    jsn_w_end_arr(w);
}

/* "name=" and the JSON text that is in json, encoded; json is emptied. */
static void put_param(struct buf *out, const char *name, struct buf *json)
{
    if (out->len > 0)
        buf_putc(out, '&');
    buf_puts(out, name);
    buf_putc(out, '=');
    text_encode_uri(out, json->data);
    buf_reset(json);
}

static void put_select_param(struct buf *out, struct buf *json, bool attempts,
                             bool mounts)
{
    struct jsn_w w;

    jsn_w_init(&w, json);
    put_select(&w, NULL, attempts, mounts);
    put_param(out, "select", json);
}

static void put_filter(struct jsn_w *w, const char *attr, const char *op,
                       const char *operand)
{
    jsn_w_arr(w, NULL);
    jsn_w_str(w, NULL, attr);
    jsn_w_str(w, NULL, op);
    jsn_w_str(w, NULL, operand);
    jsn_w_end_arr(w);
}

/* As a string: that is what every dispatcher of Arvados sends. */
static void put_priority(struct jsn_w *w, const char *op, int64_t priority)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long) priority);
    put_filter(w, "priority", op, text);
}

static void put_queued(struct jsn_w *w, const struct api_list_req *req,
                       enum wire_part part)
{
    put_filter(w, "state", "=", "Queued");
    if (part == WIRE_TIES) {
        put_priority(w, "=", req->after->priority);
        put_filter(w, "uuid", ">", req->after->uuid);
        return;
    }
    put_priority(w, ">", 0);
    if (part == WIRE_LOWER)
        put_priority(w, "<", req->after->priority);
}

static void put_filters(struct jsn_w *w, const struct api_list_req *req,
                        enum wire_part part)
{
    jsn_w_arr(w, NULL);
    switch (req->which) {
    case API_LIST_QUEUED:
        put_queued(w, req, part);
        break;
    case API_LIST_MINE:
        put_filter(w, "locked_by_uuid", "=", req->token_uuid);
        break;
    case API_LIST_UUIDS:
        jsn_w_arr(w, NULL);
        jsn_w_str(w, NULL, "uuid");
        jsn_w_str(w, NULL, "in");
        jsn_w_arr(w, NULL);
        for (size_t i = 0; i < req->n_uuids; i++)
            jsn_w_str(w, NULL, req->uuids[i]);
        jsn_w_end_arr(w);
        jsn_w_end_arr(w);
        break;
    }
    if (req->which != API_LIST_QUEUED && req->after)
        put_filter(w, "uuid", ">", req->after->uuid);
    jsn_w_end_arr(w);
}

void wire_list_query(struct buf *out, const struct api_list_req *req,
                     enum wire_part part, bool attempts)
{
    CLEANUP(buf_fini) struct buf json;
    struct jsn_w w;

    buf_init(&json, QUERY_JSON_MAX);
    jsn_w_init(&w, &json);
    put_filters(&w, req, part);
    put_param(out, "filters", &json);
    buf_puts(&json, req->which == API_LIST_QUEUED
                        ? "[\"priority desc\",\"uuid\"]" : "[\"uuid\"]");
    put_param(out, "order", &json);
    put_select_param(out, &json, attempts, false);
    buf_printf(out, "&count=none&limit=%lld", (long long) req->limit);
}

void wire_get_query(struct buf *out, bool attempts)
{
    CLEANUP(buf_fini) struct buf json;

    buf_init(&json, QUERY_JSON_MAX);
    put_select_param(out, &json, attempts, true);
}

void wire_update_body(struct buf *out, const struct api_update_req *req,
                      bool attempts)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_obj(&w, "container");
    if (req->set_cancelled)
        jsn_w_str(&w, "state", "Cancelled");
    if (req->error || req->no_retry) {
        jsn_w_obj(&w, "runtime_status");
        if (req->error)
            jsn_w_str(&w, "error", req->error);
        if (req->no_retry)
            jsn_w_bool(&w, "noRetry", true);
        jsn_w_end_obj(&w);
    }
    jsn_w_end_obj(&w);
    put_select(&w, "select", attempts, true);
    jsn_w_end_obj(&w);
}

void wire_feed_query(struct buf *out, const char *epoch, int64_t cursor,
                     int64_t wait_ms)
{
    buf_puts(out, "epoch=");
    text_encode_uri(out, epoch);
    buf_printf(out, "&since=%lld&wait=%lld", (long long) cursor,
               (long long) ((wait_ms + 999) / 1000));
}

/* --- replies -------------------------------------------------------------*/

/* Where the API lies on the given host: the path of a URL, because the token
 * must not follow a URL to another host. */
static void copy_path(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;

    if (path && strlen(path) < size && !strpbrk(path, "?#"))
        text_copy(out, path, size);
}

int wire_parse_discovery(const char *text, size_t n,
                         struct wire_discovery *ret, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, err);
    struct wire_discovery d = {0};
    const struct jsn *ours;
    const char *feed = "";

    if (!j)
        return -1;
    if (!jsn_has(j, "basePath"))
        return err_set(err, ERR_INVALID, "not a discovery document");
    ours = jsn_get(j, "cdc");
    if (ours && (jsn_opt_bool(ours, "attempts", &d.attempts, err) < 0 ||
                 jsn_opt_str(ours, "feed", &feed, err) < 0))
        return -1;
    copy_path(feed, d.feed_path, sizeof d.feed_path);
    *ret = d;
    return 0;
}

int wire_parse_whoami(const char *text, size_t n, char ret[CTR_UUID_SIZE],
                      struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, err);
    const char *uuid;

    if (!j || jsn_str(j, "uuid", &uuid, err) < 0)
        return -1;
    if (!text_is_uuid(uuid, NULL))
        return err_set(err, ERR_INVALID, "%.40s is no token uuid", uuid);
    text_copy(ret, uuid, CTR_UUID_SIZE);
    return 0;
}

int wire_parse_ctr(const char *text, size_t n, struct ctr *ret,
                   struct err *err)
{
    struct err why = {0};
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, &why);

    if (j)
        return ctr_parse(j, ret, err);
    if (ctr_salvage(text, n, why.text, ret) == 0)
        return 0;
    return err_set(err, ERR_INVALID, "%s", why.text);
}

static void add_salvaged(void *arg, const char *text, size_t n)
{
    wire_ctrs *ret = arg;
    struct ctr c;

    if (wire_parse_ctr(text, n, &c, NULL) == 0)
        VEC_PUSH(ret, c);
}

int wire_parse_list(const char *text, size_t n, wire_ctrs *ret,
                    struct err *err)
{
    struct err why = {0};
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, &why);
    struct jsn *items;
    struct ctr c;

    /* One record that our parser cannot take must not hide the others. */
    if (!j && ctr_split(text, n, "items", add_salvaged, ret) == 0)
        return 0;
    if (!j)
        return err_set(err, ERR_INVALID, "%s", why.text);
    if (jsn_arr(j, "items", &items, err) < 0)
        return -1;
    for (size_t i = 0; i < jsn_count(items); i++)
        if (ctr_parse(jsn_at(items, i), &c, NULL) == 0)
            VEC_PUSH(ret, c);
    return 0;
}

int wire_parse_attempt(const char *text, size_t n, struct wire_attempt *ret,
                       struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, err);
    struct wire_attempt a = {0};
    const char *token;

    if (!j || jsn_i64(j, "attempt", &a.attempt, err) < 0 ||
        jsn_str(j, "api_token", &token, err) < 0)
        return -1;
    if (a.attempt < 1 || text_copy(a.token, token, sizeof a.token) >=
                             sizeof a.token)
        return err_set(err, ERR_INVALID, "not an attempt");
    *ret = a;
    return 0;
}

static int parse_feed(const struct jsn *j, struct wire_feed *f,
                      struct err *err)
{
    const char *epoch, *kind, *uuid;
    struct jsn *items;

    if (jsn_str(j, "epoch", &epoch, err) < 0 ||
        jsn_i64(j, "cursor", &f->cursor, err) < 0 ||
        jsn_opt_bool(j, "more", &f->more, err) < 0 ||
        jsn_opt_bool(j, "resync", &f->resync, err) < 0 ||
        jsn_arr(j, "items", &items, err) < 0)
        return -1;
    if (text_copy(f->epoch, epoch, sizeof f->epoch) >= sizeof f->epoch)
        return err_set(err, ERR_INVALID, "epoch is too long");
    for (size_t i = 0; i < jsn_count(items); i++) {
        const struct jsn *item = jsn_at(items, i);

        if (jsn_str(item, "kind", &kind, err) < 0 ||
            jsn_str(item, "uuid", &uuid, err) < 0)
            return -1;
        /* Of other kinds there may be more in time: they are not for us. */
        if (strcmp(kind, "arvados#container") == 0 &&
            text_is_uuid(uuid, "dz642"))
            VEC_PUSH(&f->uuids, mem_strdup(uuid));
    }
    return 0;
}

int wire_parse_feed(const char *text, size_t n, struct wire_feed *ret,
                    struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, err);
    struct wire_feed f = {0};

    if (!j)
        return -1;
    if (parse_feed(j, &f, err) < 0) {
        wire_feed_fini(&f);
        return -1;
    }
    *ret = f;
    return 0;
}

void wire_feed_fini(struct wire_feed *f)
{
    for (size_t i = 0; i < f->uuids.n; i++)
        free(f->uuids.v[i]);
    VEC_FINI(&f->uuids);
}

/* --- errors --------------------------------------------------------------*/

/* One line: control characters become blanks. */
static void one_line(char *s)
{
    for (; *s; s++)
        if ((unsigned char) *s < ' ' || *s == 0x7f)
            *s = ' ';
}

void wire_error_text(const char *text, size_t n, char *out, size_t size)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, NULL);
    const struct jsn *errors = jsn_get(j, "errors");
    size_t used = 0;
    const char *s;

    out[0] = '\0';
    for (size_t i = 0; i < jsn_count(errors) && used < size; i++)
        if (jsn_as_str(jsn_at(errors, i), &s, NULL) == 0)
            used += (size_t) snprintf(out + used, size - used, "%s%s",
                                      used ? "; " : "", s);
    if (used == 0)
        snprintf(out, size, "%.*s", n < 200 ? (int) n : 200, text);
    one_line(out);
}

int wire_status_class(int status, bool *ret_refused)
{
    *ret_refused = status == 503 || status < 500;
    switch (status) {
    case 401:
    case 403:
        return ERR_AUTH;
    case 404:
    case 410:
        return ERR_NOT_FOUND;
    case 409:
    case 422:
        return ERR_CONFLICT;
    case 408:
        return ERR_TRANSIENT;
    case 429:
    case 503:
        return ERR_RATE_LIMITED;
    case 405:
    case 501:
        *ret_refused = true;
        return ERR_UNSUPPORTED;
    case 413:
        return ERR_TOO_LARGE;
    default:
        break;
    }
    if (status >= 500)
        return ERR_TRANSIENT;
    return status >= 400 ? ERR_INVALID : ERR_CONFIG;
}

int64_t wire_retry_ms(const char *value)
{
    int64_t s;

    if (!value || text_parse_i64(value, &s, NULL) < 0 || s < 0)
        return 0;
    return (s < RETRY_MAX_S ? s : RETRY_MAX_S) * 1000;
}
