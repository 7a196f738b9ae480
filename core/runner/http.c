/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client: URL, connection, request, response.
 *
 * The socket never blocks; every wait is a poll() on the socket and on the
 * caller's wake descriptor until the deadline. A request goes out head and
 * body together when both are small (one packet, one wake-up at the server).
 * While a large body goes out the socket is also watched for an early answer
 * (413, 401): then the rest is not sent and the connection not used again.
 *
 * A kept connection may have been closed by the server while we were idle; the
 * request is then repeated once on a fresh one, provided that not one byte of
 * a response had come. All requests of the runner may be repeated.
 *
 * Single-threaded, like the whole program.
 */
#include "core/runner/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/runner/http_rx.h"

enum {
    HEAD_MAX = 4096,
    READ_SIZE = 16 * 1024,
    CONNECT_MS = 10 * 1000,
};

struct http {
    struct http_url url;
    char *token;
    int fd;     /* -1 = not connected */
    bool fresh; /* no response has come over it yet */
};

/* --- URL ------------------------------------------------------------------ */

static bool is_loopback(struct http_url *u, const char *host)
{
    static const unsigned char one[16] = {[15] = 1};

    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, u->addr) == 1) {
        u->v6 = false;
        return u->addr[0] == 127;
    }
    u->v6 = true;
    return inet_pton(AF_INET6, host, u->addr) == 1 &&
           memcmp(u->addr, one, sizeof one) == 0;
}

/* host, [host], host:port, [host]:port */
static int parse_authority(const char *s, size_t n, struct http_url *u,
                           struct err *err)
{
    char text[sizeof u->host], *host = text, *end, *port = NULL;
    int64_t number = 80;

    if (n == 0 || n >= sizeof text)
        return err_set(err, ERR_CONFIG, "host missing or too long");
    text_copy(text, s, n + 1);
    text_copy(u->host, text, sizeof u->host);
    if (*host == '[') {
        host++;
        end = strchr(host, ']');
        if (!end || (end[1] != '\0' && end[1] != ':'))
            return err_set(err, ERR_CONFIG, "malformed host");
        port = end[1] == ':' ? end + 2 : NULL;
        *end = '\0';
    } else if ((end = strchr(host, ':'))) {
        *end = '\0';
        port = end + 1;
    }
    if (port && (text_parse_i64(port, &number, NULL) < 0 || number < 1 ||
                 number > UINT16_MAX))
        return err_set(err, ERR_CONFIG, "malformed port");
    u->port = (uint16_t) number;
    if (!is_loopback(u, host))
        return err_set(err, ERR_CONFIG,
                       "plain http is allowed to a loopback address only");
    return 0;
}

int http_url_parse(const char *url, struct http_url *ret, struct err *err)
{
    static const char scheme[] = "http://";
    struct http_url u = {0};
    const char *authority = url + strlen(scheme);
    size_t n;

    if (strncmp(url, scheme, strlen(scheme)) != 0)
        return err_set(err, ERR_CONFIG, "%s: only http:// is supported", url);
    n = strcspn(authority, "/?#");
    if (parse_authority(authority, n, &u, err) < 0)
        return err_prefix(err, "%s", url);
    authority += n;
    if (strpbrk(authority, "?# \r\n") ||
        text_copy(u.prefix, authority, sizeof u.prefix) >= sizeof u.prefix)
        return err_set(err, ERR_CONFIG, "%s: malformed path", url);
    n = strlen(u.prefix);
    while (n > 0 && u.prefix[n - 1] == '/')
        u.prefix[--n] = '\0';
    *ret = u;
    return 0;
}

/* --- the connection -------------------------------------------------------- */

struct http *http_create(const struct http_url *url, const char *token)
{
    struct http *h = MEM_NEW(struct http);

    h->url = *url;
    h->token = mem_strdup(token);
    h->fd = -1;
    return h;
}

void http_close(struct http *h)
{
    if (h->fd >= 0)
        close(h->fd);
    h->fd = -1;
}

void http_destroy(struct http *h)
{
    if (!h)
        return;
    http_close(h);
    secret_free(h->token);
    free(h);
}

/* Wait for the socket. 0 = it is ready. */
static int wait_for(int fd, short events, const struct http_req *req,
                    short *ret_events, struct err *err)
{
    for (;;) {
        struct pollfd pf[2] = {
            {.fd = fd, .events = events},
            {.fd = req->wake_fd, .events = POLLIN},
        };
        int64_t left = (req->deadline_us - clock_mono_us() + 999) / 1000;
        int n;

        if (left <= 0)
            return err_set(err, ERR_TIMEOUT, "no answer in time");
        n = poll(pf, 2, left > INT32_MAX ? INT32_MAX : (int) left);
        if (n < 0 && errno != EINTR)
            return err_set_errno(err, errno, "poll");
        if (n > 0 && pf[1].revents)
            return err_set(err, ERR_CANCELLED, "given up");
        if (n > 0 && pf[0].revents) {
            *ret_events = pf[0].revents;
            return 0;
        }
    }
}

static int lost(struct err *err, int errnum, const char *what)
{
    err_set_errno(err, errnum, "%s", what);
    if (err)
        err->class = ERR_TRANSIENT;
    return -1;
}

static int start_connect(struct http *h)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons(h->url.port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(h->url.port)};
    int one = 1;

    h->fd = socket(h->url.v6 ? AF_INET6 : AF_INET,
                   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (h->fd < 0)
        return -1;
    setsockopt(h->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    memcpy(&v4.sin_addr, h->url.addr, sizeof v4.sin_addr);
    memcpy(&v6.sin6_addr, h->url.addr, sizeof v6.sin6_addr);
    return h->url.v6 ? connect(h->fd, (struct sockaddr *) &v6, sizeof v6)
                     : connect(h->fd, (struct sockaddr *) &v4, sizeof v4);
}

static int ensure_connected(struct http *h, const struct http_req *req,
                            struct err *err)
{
    struct http_req limited = *req;
    int64_t latest = clock_mono_us() + CONNECT_MS * INT64_C(1000);
    socklen_t size = sizeof(int);
    short events;
    int error = 0;

    if (h->fd >= 0)
        return 0;
    h->fresh = true;
    if (start_connect(h) == 0)
        return 0;
    if (h->fd < 0 || errno != EINPROGRESS)
        return lost(err, errno, "connect");
    if (limited.deadline_us > latest)
        limited.deadline_us = latest;
    if (wait_for(h->fd, POLLOUT, &limited, &events, err) < 0)
        return -1;
    if (getsockopt(h->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error)
        return lost(err, error ? error : errno, "connect");
    return 0;
}

/* --- the request ----------------------------------------------------------- */

static int build_head(const struct http *h, const struct http_req *req,
                      struct buf *out, struct err *err)
{
    buf_printf(out,
               "%s %s%s HTTP/1.1\r\n"
               "Host: %s\r\n"
               "Authorization: Bearer %s\r\n"
               "Accept: application/json\r\n",
               req->method, h->url.prefix, req->path, h->url.host, h->token);
    if (req->content_type)
        buf_printf(out, "Content-Type: %s\r\n", req->content_type);
    if (req->content_type || req->body_len)
        buf_printf(out, "Content-Length: %zu\r\n", req->body_len);
    buf_puts(out, "\r\n");
    if (out->over)
        return err_set(err, ERR_TOO_LARGE, "HTTP request head");
    return 0;
}

/* Send what can be sent now; -1 with errno. */
static ssize_t send_some(int fd, const struct http_req *req,
                         const struct buf *head, size_t done)
{
    off_t at = req->body_at + (off_t) (done - head->len);

    if (done < head->len) {
        struct iovec parts[2] = {
            {head->data + done, head->len - done},
            {(void *) (uintptr_t) req->body, req->body_len},
        };
        struct msghdr m = {.msg_iov = parts,
                           .msg_iovlen = req->body ? 2 : 1};

        return sendmsg(fd, &m, MSG_NOSIGNAL |
                                   (req->body || !req->body_len ? 0
                                                                : MSG_MORE));
    }
    done -= head->len;
    if (req->body)
        return send(fd, (const char *) req->body + done,
                    req->body_len - done, MSG_NOSIGNAL);
    return sendfile(fd, req->body_fd, &at, req->body_len - done);
}

/* *ret_early: an answer came before all was sent. */
static int send_request(struct http *h, const struct http_req *req,
                        const struct buf *head, bool *ret_early,
                        struct err *err)
{
    size_t total = head->len + req->body_len, done = 0;
    short events;

    while (done < total) {
        ssize_t n = send_some(h->fd, req, head, done);

        if (n > 0) {
            done += (size_t) n;
            continue;
        }
        if (n == 0)
            return err_set(err, ERR_INTERNAL, "the body became shorter");
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return lost(err, errno, "send");
        if (wait_for(h->fd, POLLIN | POLLOUT, req, &events, err) < 0)
            return -1;
        if (events & POLLIN) {
            *ret_early = true;
            return 0;
        }
    }
    return 0;
}

/* --- the response ---------------------------------------------------------- */

static int receive(struct http *h, const struct http_req *req,
                   struct http_rx *rx, struct err *err)
{
    char chunk[READ_SIZE];
    short events;

    while (rx->state != HTTP_RX_DONE) {
        ssize_t n = recv(h->fd, chunk, sizeof chunk, 0);
        size_t used;

        if (n > 0) {
            if (http_rx_feed(rx, chunk, (size_t) n, &used, err) < 0)
                return -1;
            if (used < (size_t) n)
                return err_set(err, ERR_INVALID,
                               "bytes after the HTTP response");
            continue;
        }
        if (n == 0)
            return lost(err, ECONNRESET, "connection closed by the server");
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return lost(err, errno, "receive");
        if (wait_for(h->fd, POLLIN, req, &events, err) < 0)
            return -1;
    }
    return 0;
}

static int exchange(struct http *h, const struct http_req *req,
                    struct http_rx *rx, struct err *err)
{
    CLEANUP(buf_wipe) struct buf head;
    bool early = false;
    int r;

    buf_init(&head, HEAD_MAX);
    if (build_head(h, req, &head, err) < 0 ||
        ensure_connected(h, req, err) < 0)
        return -1;
    r = send_request(h, req, &head, &early, err);
    /* The server may have answered and closed while we were still sending. */
    if (r == 0 || (err && err->class == ERR_TRANSIENT))
        r = receive(h, req, rx, err);
    if (r < 0)
        return -1;
    if (early)
        rx->close = true;
    return 0;
}

int http_call(struct http *h, const struct http_req *req,
              struct http_reply *ret, struct buf *body, struct err *err)
{
    struct err own = {0};
    struct http_rx rx;
    bool again;
    int r;

    do {
        http_rx_init(&rx, body->max - body->len,
                     strcmp(req->method, "HEAD") == 0);
        r = exchange(h, req, &rx, &own);
        again = r < 0 && own.class == ERR_TRANSIENT && !h->fresh && !rx.begun;
        if (r < 0 || rx.close)
            http_close(h);
        if (again)
            http_rx_fini(&rx);
    } while (again);
    if (r == 0) {
        h->fresh = false;
        ret->status = rx.status;
        ret->retry_after_s = rx.retry_after;
        r = buf_append(body, rx.body.data, rx.body.len);
    } else if (err) {
        *err = own;
    }
    http_rx_fini(&rx);
    return r;
}
