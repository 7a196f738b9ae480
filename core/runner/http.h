/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_HTTP_H
#define CORE_RUNNER_HTTP_H

/*
 * A small blocking HTTP/1.1 client: one server, one connection kept alive.
 *
 * The one place of the suite where libcurl cannot travel along: the runner is
 * static and is copied to machines with another libc or none. Plain http, and
 * therefore only to a loopback address, written as a number or `localhost`.
 *
 * Blocking, but never for ever: each call has a deadline, and ends early when
 * a descriptor that the caller names becomes readable.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct http;

struct http_url {
    char host[64]; /* as written, for the Host header */
    bool v6;
    unsigned char addr[16]; /* network order; 4 bytes unless v6 */
    uint16_t port;
    char prefix[256]; /* path before every request's, no slash at the end */
};

/* ERR_CONFIG: not plain http to a loopback address. */
int http_url_parse(const char *url, struct http_url *ret, struct err *err);

struct http_req {
    const char *method;
    const char *path;         /* begins with '/'; already escaped */
    const char *content_type; /* NULL without a body */
    const void *body;         /* NULL: body_len bytes from body_fd */
    int body_fd;
    int64_t body_at;          /* offset in body_fd */
    size_t body_len;
    int64_t deadline_us;      /* monotonic */
    int wake_fd;              /* -1, or: give up when this is readable */
};

struct http_reply {
    int status;
    int64_t retry_after_s;    /* 0 = not stated */
};

/* token: sent as a bearer; copied, overwritten at the end. */
struct http *http_create(const struct http_url *url, const char *token);
void http_destroy(struct http *h); /* NULL is fine */

/*
 * One request, one response of any status, its body appended to *body (whose
 * maximum holds). A kept connection that turns out dead is replaced once.
 * ERR_TRANSIENT: cannot connect, or the connection was lost (the request may
 * or may not have been acted upon); ERR_TIMEOUT; ERR_CANCELLED: wake_fd;
 * ERR_INVALID, ERR_TOO_LARGE: the response. After any error the connection is
 * closed.
 */
int http_call(struct http *h, const struct http_req *req,
              struct http_reply *ret, struct buf *body, struct err *err);

/* Close the connection (a child that inherited it must). */
void http_close(struct http *h);

#endif
