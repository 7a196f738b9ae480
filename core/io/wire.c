/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The byte stream under one server connection, over TCP.
 *
 * Writing tries the socket first: a reply normally leaves in one writev
 * without a copy or an allocation. Only what the socket refuses becomes a
 * uv_write with memory of its own. Reading goes through one buffer that all
 * wires of a server share, because bytes are consumed before the callback
 * returns.
 *
 * Called by httpd on the loop thread. It never closes by itself: breakage is
 * reported and the owner decides.
 */

#include "core/io/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

enum { PIECES_MAX = 2 };

struct out {
    uv_write_t req;
    struct wire *wire;
    void *own;
    char copy[];
};

static void on_closed(uv_handle_t *h)
{
    struct wire *w = h->data;

    w->ops->closed(w->arg);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
    struct wire *w = h->data;

    (void) suggested;
    *b = uv_buf_init(w->read_buf, WIRE_READ_SIZE);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    struct wire *w = s->data;

    if (n > 0)
        w->ops->bytes(w->arg, b->base, (size_t) n);
    else if (n < 0)
        w->ops->end(w->arg, n == UV_EOF ? 0 : (int) n);
}

int wire_accept(struct wire *w, uv_stream_t *server,
                const struct wire_ops *ops, void *arg, char *read_buf)
{
    int rc;

    memset(w, 0, sizeof *w);
    w->ops = ops;
    w->arg = arg;
    w->read_buf = read_buf;
    uv_tcp_init(server->loop, &w->tcp);
    w->tcp.data = w;
    rc = uv_accept(server, (uv_stream_t *) &w->tcp);
    if (rc == 0)
        rc = uv_tcp_nodelay(&w->tcp, 1);
    if (rc < 0)
        wire_close(w);
    return rc;
}

void wire_get_peer(const struct wire *w, char out[WIRE_PEER_SIZE])
{
    struct sockaddr_storage a;
    int n = sizeof a;

    if (uv_tcp_getpeername(&w->tcp, (struct sockaddr *) &a, &n) < 0 ||
        uv_ip_name((struct sockaddr *) &a, out, WIRE_PEER_SIZE) < 0)
        memcpy(out, "?", 2);
}

void wire_read(struct wire *w, bool on)
{
    if (w->closing || on == w->reading)
        return;
    w->reading = on;
    if (on)
        uv_read_start((uv_stream_t *) &w->tcp, on_alloc, on_read);
    else
        uv_read_stop((uv_stream_t *) &w->tcp);
}

static void on_written(uv_write_t *req, int status)
{
    struct out *o = req->data;
    struct wire *w = o->wire;

    free(o->own);
    free(o);
    if (w->closing)
        return;
    if (status < 0)
        w->ops->end(w->arg, status);
    else if (wire_unsent(w) == 0)
        w->ops->drained(w->arg);
}

/* Queue what is left after the first `sent` bytes. */
static int write_rest(struct wire *w, const struct iovec *v, unsigned n,
                      void *own, size_t sent)
{
    size_t total = 0, used = 0, skip[PIECES_MAX];
    uv_buf_t bufs[PIECES_MAX];
    unsigned nbufs = 0;
    struct out *o;

    for (unsigned i = 0; i < n; i++) {
        skip[i] = sent < v[i].iov_len ? sent : v[i].iov_len;
        sent -= skip[i];
        if (!own || i + 1 < n)
            total += v[i].iov_len - skip[i];
    }
    o = mem_zalloc(sizeof *o + total);
    o->wire = w;
    o->own = own;
    o->req.data = o;
    for (unsigned i = 0; i < n; i++) {
        size_t len = v[i].iov_len - skip[i];
        char *from = (char *) v[i].iov_base + skip[i];

        if (len == 0)
            continue;
        if (!own || i + 1 < n) {
            from = memcpy(o->copy + used, from, len);
            used += len;
        }
        bufs[nbufs++] = uv_buf_init(from, (unsigned) len);
    }
    if (uv_write(&o->req, (uv_stream_t *) &w->tcp, bufs, nbufs,
                 on_written) == 0)
        return 0;
    free(o->own);
    free(o);
    return -1;
}

int wire_write(struct wire *w, const struct iovec *v, unsigned n, void *own)
{
    uv_buf_t bufs[PIECES_MAX];
    size_t total = 0;
    int rc;

    assert(n > 0 && n <= PIECES_MAX);
    if (w->closing) {
        free(own);
        return -1;
    }
    for (unsigned i = 0; i < n; i++) {
        bufs[i] = uv_buf_init(v[i].iov_base, (unsigned) v[i].iov_len);
        total += v[i].iov_len;
    }
    rc = uv_try_write((uv_stream_t *) &w->tcp, bufs, n);
    if (rc == UV_EAGAIN)
        rc = 0;
    if (rc >= 0 && (size_t) rc < total)
        return write_rest(w, v, n, own, (size_t) rc);
    free(own);
    return rc < 0 ? -1 : 0;
}

size_t wire_unsent(const struct wire *w)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *) &w->tcp);
}

static void on_shut(uv_shutdown_t *req, int status)
{
    (void) req;
    (void) status; /* a broken stream is reported by the reader */
}

void wire_shut(struct wire *w)
{
    if (!w->closing)
        uv_shutdown(&w->shutdown, (uv_stream_t *) &w->tcp, on_shut);
}

void wire_close(struct wire *w)
{
    if (w->closing)
        return;
    w->closing = true;
    uv_close((uv_handle_t *) &w->tcp, on_closed);
}
