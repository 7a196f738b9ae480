/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection of the HTTP server: its states (httpd_int.h), its deadlines,
 * and the order of its requests.
 *
 * Bytes are parsed only in the first three states. While a handler has the
 * request, or the client has not yet taken the last reply, further bytes are
 * stashed, up to a limit at which reading stops: so a client can have one
 * reply outstanding, never a queue of them. Reading goes on while a handler
 * works, because that is how a client that leaves is noticed.
 *
 * Replies are sent from the handler's own stack when they are ready at once;
 * conn_feed then simply goes on with the next request, so a long pipeline
 * does not recurse.
 *
 * Deadlines are lazy: setting one stores a number, and the one timer of the
 * connection is only touched when it would fire too late. Expiry looks at the
 * number again.
 *
 * A connection is freed when its wire is closed and no handler owes a reply.
 */

#include "core/io/httpd_int.h"

#include <stdlib.h>

#include "core/base/mem.h"
#include "core/io/loop.h"

enum { STASH_MAX = WIRE_READ_SIZE, LINGER_MS = 1000 };

static void on_late(void *arg);

static int64_t now_ms(const struct httpd_conn *c)
{
    return (int64_t) uv_now(loop_uv(c->h->loop));
}

static void arm(struct httpd_conn *c)
{
    loop_timer_cancel(c->timer);
    c->timer_ms = c->due_ms;
    c->timer = loop_timer_arm(c->h->loop, (c->due_ms - now_ms(c)) * 1000,
                              on_late, c);
}

void conn_deadline(struct httpd_conn *c, int64_t ms)
{
    c->due_ms = ms ? now_ms(c) + ms : 0;
    if (ms && (!c->timer || c->timer_ms > c->due_ms))
        arm(c);
}

static void late_send(struct httpd_conn *c)
{
    size_t left = wire_unsent(&c->wire);

    if (left == c->unsent) {
        conn_close(c);
        return;
    }
    c->unsent = left;
    conn_deadline(c, c->h->cfg.write_ms);
}

static void on_late(void *arg)
{
    struct httpd_conn *c = arg;

    c->timer = NULL;
    if (c->due_ms == 0)
        return;
    if (c->due_ms > now_ms(c)) {
        arm(c);
        return;
    }
    c->due_ms = 0;
    if (c->state == CONN_HEAD)
        reply_refusal(c, 408, "the head of the request took too long");
    else if (c->state == CONN_BODY)
        reply_refusal(c, 408, "the body of the request took too long");
    else if (c->state == CONN_SEND)
        late_send(c);
    else if (c->state != CONN_BUSY)
        conn_close(c);
}

static void tell_gone(struct httpd_conn *c)
{
    void (*fn)(void *) = c->req.gone_fn;

    loop_timer_cancel(c->req.gone_timer);
    c->req.gone_timer = NULL;
    c->req.gone_fn = NULL;
    if (c->req.pending && fn)
        fn(c->req.gone_arg);
}

void conn_close(struct httpd_conn *c)
{
    if (c->state == CONN_CLOSED)
        return;
    c->state = CONN_CLOSED;
    loop_timer_cancel(c->timer);
    c->timer = NULL;
    wire_close(&c->wire);
    if (c->h)
        httpd_forget(c);
    tell_gone(c);
}

void conn_maybe_free(struct httpd_conn *c)
{
    if (!c->wire_gone || c->req.pending)
        return;
    if (c->h) {
        if (c->prev)
            c->prev->next = c->next;
        else
            c->h->conns = c->next;
        if (c->next)
            c->next->prev = c->prev;
    }
    req_fini(&c->req);
    buf_fini(&c->in);
    free(c);
}

static void on_closed(void *arg)
{
    struct httpd_conn *c = arg;

    c->wire_gone = true;
    conn_maybe_free(c);
}

/* --- requests, one after the other ---------------------------------------*/

static void stash(struct httpd_conn *c, const char *data, size_t n)
{
    buf_append(&c->in, data, n);
    if (c->in.len >= STASH_MAX)
        wire_read(&c->wire, false);
}

static void ready(struct httpd_conn *c)
{
    c->state = CONN_BUSY;
    c->req.pending = true;
    conn_deadline(c, 0);
    c->h->cfg.handler(c->h->cfg.arg, &c->req);
}

/* llhttp 9 calls it an invalid version, too, when a good one is not followed
 * by CRLF. */
static bool is_other_version(const struct httpd_conn *c, llhttp_errno_t e)
{
    return e == HPE_INVALID_VERSION && c->parser.http_major != 1;
}

static void refuse(struct httpd_conn *c, llhttp_errno_t e)
{
    if (c->bad)
        reply_refusal(c, c->bad, c->bad_text);
    else
        reply_refusal(c, is_other_version(c, e) ? 505 : 400,
                      llhttp_get_error_reason(&c->parser));
}

/* Remember the last byte that is no blank: see is_folded(). */
static void note_solid(struct httpd_conn *c, const char *data, size_t n)
{
    while (n > 0 && (data[n - 1] == ' ' || data[n - 1] == '\t'))
        n--;
    if (n > 0)
        c->solid = data[n - 1];
}

/* Returns how many bytes were used. */
static size_t parse(struct httpd_conn *c, const char *data, size_t n)
{
    llhttp_errno_t e;

    c->chunk = data;
    e = llhttp_execute(&c->parser, data, n);
    if (e == HPE_OK) {
        note_solid(c, data, n);
        return n;
    }
    if (e != HPE_PAUSED) {
        refuse(c, e);
        return n;
    }
    n = (size_t) (llhttp_get_error_pos(&c->parser) - data);
    llhttp_resume(&c->parser);
    ready(c);
    return n;
}

static void feed(struct httpd_conn *c, const char *data, size_t n)
{
    c->feeding = true;
    while (n > 0 && c->state < CONN_BUSY) {
        size_t used = parse(c, data, n);

        data += used;
        n -= used;
    }
    c->feeding = false;
    if (c->state == CONN_BUSY || c->state == CONN_SEND)
        stash(c, data, n);
    else if (c->state < CONN_BUSY && c->eof)
        conn_close(c);
}

/* Go on with what arrived while the last request was being served. */
static void resume(struct httpd_conn *c)
{
    struct buf in = c->in;

    buf_init(&c->in, in.max);
    if (!c->eof)
        wire_read(&c->wire, true);
    feed(c, in.data, in.len);
    buf_fini(&in);
}

static void linger(struct httpd_conn *c)
{
    c->state = CONN_LINGER;
    buf_fini(&c->in);
    wire_shut(&c->wire);
    wire_read(&c->wire, true);
    conn_deadline(c, LINGER_MS);
}

/* The kernel has taken the whole reply. */
static void sent(struct httpd_conn *c)
{
    if (c->keep) {
        c->state = CONN_IDLE;
        conn_deadline(c, c->h->cfg.idle_ms);
        if (!c->feeding)
            resume(c);
    } else if ((c->linger || c->in.len > 0) && !c->eof) {
        linger(c);
    } else {
        conn_close(c);
    }
}

void conn_send(struct httpd_conn *c, const struct iovec *v, unsigned n,
               void *own)
{
    if (c->state == CONN_CLOSED) {
        free(own);
        return;
    }
    c->state = CONN_SEND;
    if (wire_write(&c->wire, v, n, own) < 0) {
        conn_close(c);
        return;
    }
    req_reset(&c->req); /* not before: the body may be the request's own */
    if ((c->unsent = wire_unsent(&c->wire)) == 0)
        sent(c);
    else
        conn_deadline(c, c->h->cfg.write_ms);
}

/* --- what the wire reports -----------------------------------------------*/

static void on_bytes(void *arg, const char *data, size_t n)
{
    struct httpd_conn *c = arg;

    if (c->state < CONN_BUSY)
        feed(c, data, n);
    else if (c->state == CONN_BUSY || c->state == CONN_SEND)
        stash(c, data, n);
}

static void on_end(void *arg, int status)
{
    struct httpd_conn *c = arg;

    c->eof = true;
    if (status < 0 || c->state < CONN_BUSY || c->state == CONN_LINGER)
        conn_close(c);
    else if (c->state == CONN_BUSY)
        tell_gone(c);
}

static void on_drained(void *arg)
{
    struct httpd_conn *c = arg;

    if (c->state == CONN_SEND)
        sent(c);
}

const struct wire_ops conn_wire_ops = {
    .bytes = on_bytes,
    .end = on_end,
    .drained = on_drained,
    .closed = on_closed,
};

/* The wire has been accepted. */
void conn_open(struct httpd *h, struct httpd_conn *c)
{
    const struct httpd_cfg *cfg = &h->cfg;

    llhttp_init(&c->parser, HTTP_REQUEST, &h->settings);
    c->parser.data = c;
    buf_init(&c->in, 2 * STASH_MAX);
    buf_init(&c->req.text, cfg->max_head + 3 * cfg->max_url +
                           4 * (size_t) cfg->max_headers + 64);
    buf_init(&c->req.body, cfg->max_body);
    c->req.method = "";
    conn_deadline(c, cfg->idle_ms);
    wire_read(&c->wire, true);
}
