/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP server itself: it listens, admits connections within its limits,
 * and ends gracefully. What happens on a connection is in httpd_conn.c; the
 * map of all parts is in httpd_int.h.
 *
 * Connections beyond a limit are told 503 and closed at once: that costs one
 * write, and a client learns more from it than from a silent queue.
 *
 * Ending: httpd_stop closes the listener and idle connections and waits for
 * the others until its deadline; httpd_destroy cuts off what is left. The
 * struct goes when libuv has closed the listening socket; connections whose
 * handler still owes a reply live on without it (c->h is NULL).
 */

#include "core/io/httpd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/err.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/io/httpd_int.h"
#include "core/io/loop.h"

enum { BACKLOG = 1024, REPLY_HEAD_MAX = 65536 };

static void set_default(int64_t *v, int64_t dflt)
{
    if (*v == 0)
        *v = dflt;
}

static void copy_cfg(struct httpd_cfg *to, const struct httpd_cfg *from)
{
    *to = *from;
    to->address = NULL; /* not needed once bound */
    if (!to->max_head)
        to->max_head = 64 << 10;
    if (!to->max_url)
        to->max_url = 16 << 10;
    if (!to->max_headers)
        to->max_headers = 100;
    if (!to->max_body)
        to->max_body = 1 << 20;
    if (!to->max_conns)
        to->max_conns = 1000;
    if (!to->max_conns_peer)
        to->max_conns_peer = to->max_conns;
    set_default(&to->idle_ms, 60000);
    set_default(&to->head_ms, 10000);
    set_default(&to->body_ms, 60000);
    set_default(&to->write_ms, 30000);
}

/* Bytes for identifiers: no secrets are made of them. */
void httpd_random(struct httpd *h, uint8_t *out, size_t n)
{
    if (h->random_left < n) {
        h->random_left = 0;
        if (getrandom(h->random, sizeof h->random, 0) == sizeof h->random)
            h->random_left = sizeof h->random;
        else
            memset(out, 0, n);
    }
    if (h->random_left < n)
        return;
    h->random_left -= (unsigned) n;
    memcpy(out, h->random + h->random_left, n);
}

/* --- admission -----------------------------------------------------------*/

static void count_peer(struct httpd *h, const char *peer)
{
    unsigned *n = map_get(h->peers, peer);

    if (!n) {
        n = MEM_NEW(unsigned);
        map_set(h->peers, peer, n);
    }
    ++*n;
}

static void stop_if_last(struct httpd *h);

void httpd_forget(struct httpd_conn *c)
{
    unsigned *n;

    if (!c->counted)
        return;
    c->counted = false;
    c->h->n_conns--;
    n = map_get(c->h->peers, c->peer);
    if (n && --*n == 0)
        map_delete(c->h->peers, c->peer);
    stop_if_last(c->h);
}

static bool admit(struct httpd *h, struct httpd_conn *c)
{
    unsigned *n;

    wire_get_peer(&c->wire, c->peer);
    n = map_get(h->peers, c->peer);
    if (h->stopping || h->n_conns >= h->cfg.max_conns ||
        (n && *n >= h->cfg.max_conns_peer))
        return false;
    h->n_conns++;
    count_peer(h, c->peer);
    c->counted = true;
    return true;
}

static void turn_away(struct httpd_conn *c)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "Content-Type: application/json\r\n"
                               "Content-Length: 36\r\n"
                               "Connection: close\r\n\r\n"
                               "{\"errors\":[\"too many connections\"]}\n";
    struct iovec v = {(void *) (uintptr_t) text, sizeof text - 1};

    wire_write(&c->wire, &v, 1, NULL);
    conn_close(c);
}

static void on_connection(uv_stream_t *s, int status)
{
    struct httpd *h = s->data;
    struct httpd_conn *c;

    if (status < 0)
        return;
    c = MEM_NEW(struct httpd_conn);
    c->h = h;
    c->next = h->conns;
    if (c->next)
        c->next->prev = c;
    h->conns = c;
    buf_init(&c->in, 0);
    buf_init(&c->req.text, 0);
    buf_init(&c->req.body, 0);
    if (wire_accept(&c->wire, s, &conn_wire_ops, c, h->read_buf) < 0)
        conn_close(c);
    else if (!admit(h, c))
        turn_away(c);
    else
        conn_open(h, c);
}

/* --- life ----------------------------------------------------------------*/

static int bind_address(struct httpd *h, const char *address, int port,
                        struct err *err)
{
    struct sockaddr_storage a;
    int n = sizeof a, rc;

    if (uv_ip4_addr(address, port, (struct sockaddr_in *) &a) < 0 &&
        uv_ip6_addr(address, port, (struct sockaddr_in6 *) &a) < 0)
        return err_set(err, ERR_CONFIG, "%s is not a numeric address",
                       address);
    rc = uv_tcp_bind(&h->tcp, (struct sockaddr *) &a, 0);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *) &h->tcp, BACKLOG, on_connection);
    if (rc == 0)
        rc = uv_tcp_getsockname(&h->tcp, (struct sockaddr *) &a, &n);
    if (rc < 0)
        return err_set_errno(err, -rc, "listening on %s port %d", address,
                             port);
    /* The port is at the same place in both families. */
    h->port = ntohs(((struct sockaddr_in *) &a)->sin_port);
    return 0;
}

struct httpd *httpd_create(struct loop *l, const struct httpd_cfg *cfg,
                           struct err *err)
{
    struct httpd *h = MEM_NEW(struct httpd);

    h->loop = l;
    copy_cfg(&h->cfg, cfg);
    parse_init(&h->settings);
    h->peers = map_create(free);
    buf_init(&h->head, REPLY_HEAD_MAX);
    uv_tcp_init(loop_uv(l), &h->tcp);
    h->tcp.data = h;
    if (bind_address(h, cfg->address ? cfg->address : "127.0.0.1", cfg->port,
                     err) == 0)
        return h;
    httpd_destroy(h);
    return NULL;
}

int httpd_port(const struct httpd *h)
{
    return h->port;
}

unsigned httpd_conns(const struct httpd *h)
{
    return h->n_conns;
}

static void on_stopped(void *arg)
{
    struct httpd *h = arg;

    h->stop_timer = NULL;
    h->stop_done(h->stop_arg);
}

static void stop_if_last(struct httpd *h)
{
    if (!h->stop_done || h->n_conns > 0)
        return;
    loop_timer_cancel(h->stop_timer);
    h->stop_timer = loop_timer_arm(h->loop, 0, on_stopped, h);
}

/* Closing one may, through a handler, change the list: begin anew each time. */
static void close_all(struct httpd *h, enum conn_state upto)
{
    struct httpd_conn *c = h->conns;

    while (c) {
        if (c->state <= upto) {
            conn_close(c);
            c = h->conns;
        } else {
            c = c->next;
        }
    }
}

static void on_stop_late(void *arg)
{
    struct httpd *h = arg;

    h->stop_timer = NULL;
    close_all(h, CONN_LINGER); /* the last one calls stop_if_last */
}

static void maybe_free(struct httpd *h)
{
    if (!h->destroyed || !h->listener_gone)
        return;
    map_destroy(h->peers);
    buf_fini(&h->head);
    free(h);
}

static void on_listener_closed(uv_handle_t *t)
{
    struct httpd *h = t->data;

    h->listener_gone = true;
    maybe_free(h);
}

static void close_listener(struct httpd *h)
{
    if (!uv_is_closing((uv_handle_t *) &h->tcp))
        uv_close((uv_handle_t *) &h->tcp, on_listener_closed);
}

void httpd_stop(struct httpd *h, int64_t deadline_ms, void (*done)(void *arg),
                void *arg)
{
    h->stopping = true;
    h->stop_done = done;
    h->stop_arg = arg;
    h->stop_timer = loop_timer_arm(h->loop, deadline_ms * 1000, on_stop_late,
                                   h);
    close_listener(h);
    close_all(h, CONN_IDLE);
    stop_if_last(h);
}

void httpd_destroy(struct httpd *h)
{
    if (!h)
        return;
    h->stop_done = NULL;
    loop_timer_cancel(h->stop_timer);
    h->stop_timer = NULL;
    close_all(h, CONN_LINGER);
    for (struct httpd_conn *c = h->conns; c; c = c->next)
        c->h = NULL;
    h->conns = NULL;
    h->destroyed = true;
    close_listener(h);
    maybe_free(h);
}
