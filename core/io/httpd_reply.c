/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replies: one head made in a scratch buffer, the body as it lies, both in
 * one system call.
 *
 * The head is built by appending, not by printf: this is the hot path. Values
 * of extra headers may come from a client (a request id, a file name), so
 * control characters in them become blanks and can never end a header.
 *
 * After httpd_reply the request belongs to the connection again, which may go
 * on with the next one before httpd_reply returns.
 */

#include "core/io/httpd_int.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/io/loop.h"

enum { ERROR_MAX = 4096, ERROR_JSON_MAX = 8 * ERROR_MAX };

#define REASONS(X)                                                            \
    X(200, "OK") X(201, "Created") X(202, "Accepted") X(204, "No Content")    \
    X(206, "Partial Content") X(301, "Moved Permanently") X(302, "Found")     \
    X(304, "Not Modified") X(400, "Bad Request") X(401, "Unauthorized")       \
    X(403, "Forbidden") X(404, "Not Found") X(405, "Method Not Allowed")      \
    X(406, "Not Acceptable") X(408, "Request Timeout") X(409, "Conflict")     \
    X(410, "Gone") X(411, "Length Required") X(412, "Precondition Failed")    \
    X(413, "Content Too Large") X(414, "URI Too Long")                        \
    X(415, "Unsupported Media Type") X(416, "Range Not Satisfiable")          \
    X(417, "Expectation Failed") X(422, "Unprocessable Content")              \
    X(429, "Too Many Requests") X(431, "Request Header Fields Too Large")     \
    X(500, "Internal Server Error") X(501, "Not Implemented")                 \
    X(502, "Bad Gateway") X(503, "Service Unavailable")                       \
    X(504, "Gateway Timeout") X(505, "HTTP Version Not Supported")            \
    X(507, "Insufficient Storage")

const char *httpd_reason(int status)
{
    switch (status) {
#define X(code, text)                                                         \
    case code:                                                                \
        return text;
        REASONS(X)
#undef X
    default:
        return "Unknown";
    }
}

static void put_num(struct buf *b, uint64_t v)
{
    char digits[20], *p = digits + sizeof digits;

    do
        *--p = (char) ('0' + v % 10);
    while (v /= 10);
    buf_append(b, p, (size_t) (digits + sizeof digits - p));
}

static void put_header(struct buf *b, const char *name, const char *value)
{
    size_t n = strlen(value);
    char *to;

    buf_puts(b, name);
    buf_append(b, ": ", 2);
    if ((to = buf_reserve(b, n))) {
        for (size_t i = 0; i < n; i++)
            to[i] = (unsigned char) value[i] < ' ' || value[i] == 0x7f
                        ? ' ' : value[i];
        buf_add(b, n);
    }
    buf_append(b, "\r\n", 2);
}

/* RFC 9110, 6.6.1; made once a second. */
static const char *date(struct httpd *h)
{
    time_t now = time(NULL);
    struct tm tm;

    if (now != h->date_s) {
        h->date_s = now;
        gmtime_r(&now, &tm);
        strftime(h->date, sizeof h->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    }
    return h->date;
}

struct reply {
    int status;
    const char *type;
    const struct httpd_header *extra;
    const void *body;
    size_t len;
    void *own;
};

static void make_head(struct httpd_conn *c, const struct reply *r)
{
    struct buf *b = &c->h->head;

    buf_reset(b);
    buf_append(b, "HTTP/1.1 ", 9);
    put_num(b, (uint64_t) r->status);
    buf_putc(b, ' ');
    buf_puts(b, httpd_reason(r->status));
    buf_append(b, "\r\n", 2);
    put_header(b, "Date", date(c->h));
    put_header(b, "X-Request-Id", httpd_request_id(&c->req));
    if (r->type)
        put_header(b, "Content-Type", r->type);
    if (r->status != 204 && r->status != 304) {
        buf_puts(b, "Content-Length: ");
        put_num(b, r->len);
        buf_append(b, "\r\n", 2);
    }
    if (!c->keep)
        buf_puts(b, "Connection: close\r\n");
    else if (c->parser.http_minor == 0)
        buf_puts(b, "Connection: keep-alive\r\n");
    for (const struct httpd_header *e = r->extra; e && e->name; e++)
        put_header(b, e->name, e->value);
    buf_append(b, "\r\n", 2);
    assert(!b->over); /* our own headers beyond all measure */
}

static bool has_body(const struct httpd_conn *c, const struct reply *r)
{
    return r->len > 0 && r->status != 204 && r->status != 304 &&
           strcmp(c->req.method, "HEAD") != 0;
}

static void send_reply(struct httpd_conn *c, struct reply *r)
{
    struct iovec v[2];
    unsigned n = 1;

    make_head(c, r);
    if (c->h->cfg.on_reply)
        c->h->cfg.on_reply(c->h->cfg.arg, &c->req, r->status, r->len);
    v[0] = (struct iovec) {c->h->head.data, c->h->head.len};
    if (has_body(c, r)) {
        v[n++] = (struct iovec) {(void *) (uintptr_t) r->body, r->len};
    } else {
        free(r->own);
        r->own = NULL;
    }
    conn_send(c, v, n, r->own);
}

/* The handler is done with the request. */
static void finish(struct httpd_req *req, struct reply *r)
{
    struct httpd_conn *c = MEM_CONTAINER(req, struct httpd_conn, req);

    assert(req->pending); /* replied to twice */
    req->pending = false;
    req->gone_fn = NULL;
    loop_timer_cancel(req->gone_timer);
    req->gone_timer = NULL;
    if (c->state == CONN_CLOSED) {
        if (c->h && c->h->cfg.on_reply)
            c->h->cfg.on_reply(c->h->cfg.arg, req, r->status, r->len);
        free(r->own);
        conn_maybe_free(c);
        return;
    }
    if (c->h->stopping)
        c->keep = false;
    send_reply(c, r);
}

void httpd_reply(struct httpd_req *req, int status, const char *content_type,
                 const struct httpd_header *extra, const void *body,
                 size_t len)
{
    finish(req, &(struct reply) {status, content_type, extra, body, len,
                                 NULL});
}

void httpd_reply_take(struct httpd_req *req, int status,
                      const char *content_type,
                      const struct httpd_header *extra, void *body,
                      size_t len)
{
    finish(req, &(struct reply) {status, content_type, extra, body, len,
                                 body});
}

static void put_errors(struct buf *b, const char *text)
{
    struct jsn_w w;

    jsn_w_init(&w, b);
    jsn_w_obj(&w, NULL);
    jsn_w_arr(&w, "errors");
    jsn_w_str(&w, NULL, text);
    jsn_w_end_arr(&w);
    jsn_w_end_obj(&w);
    buf_putc(b, '\n');
}

void httpd_reply_error(struct httpd_req *req, int status, const char *fmt, ...)
{
    CLEANUP(buf_fini) struct buf b;
    char text[ERROR_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_init(&b, ERROR_JSON_MAX);
    put_errors(&b, text);
    httpd_reply(req, status, "application/json", NULL, b.data, b.len);
}

void reply_refusal(struct httpd_conn *c, int status, const char *text)
{
    CLEANUP(buf_fini) struct buf b;

    buf_init(&b, ERROR_JSON_MAX);
    put_errors(&b, text);
    c->keep = false;
    c->linger = true;
    send_reply(c, &(struct reply) {status, "application/json", NULL, b.data,
                                   b.len, NULL});
}
