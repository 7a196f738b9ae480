/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_HTTPD_H
#define CORE_IO_HTTPD_H

/*
 * A strict HTTP/1.1 server on the loop (RFC 9110, RFC 9112), for the API
 * server and the management API alike.
 *
 * Everything happens on the loop thread. A request reaches the handler when
 * its head and body have arrived whole. The handler replies at once or later,
 * exactly once; requests of one connection are handled one after the other,
 * so pipelined requests are answered in order. A malformed request never
 * reaches the handler: it is answered with a 4xx and the body
 * {"errors":["..."]}, and its connection is closed.
 *
 * Refused beyond what llhttp refuses: more than one Host, Content-Length or
 * Transfer-Encoding; the last two together; a coding other than chunked; no
 * Host in HTTP/1.1; CONNECT; NUL; a path with a bad escape, an encoded NUL or
 * a dot segment; anything beyond the limits below.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct httpd;
struct httpd_req;
struct loop;

struct httpd_cfg {
    const char *address;     /* numeric, v4 or v6; NULL = 127.0.0.1 */
    int port;                /* 0 = any free one, see httpd_port() */

    /* Limits; 0 = the default in brackets. */
    size_t max_head;         /* bytes of all headers [64 KiB]; else 431 */
    size_t max_url;          /* bytes of the target [16 KiB]; else 414 */
    unsigned max_headers;    /* [100]; else 431 */
    size_t max_body;         /* bytes [1 MiB]; else 413; see on_head */
    unsigned max_conns;      /* connections in all [1000]; more get 503 */
    unsigned max_conns_peer; /* from one address [max_conns] */
    int64_t idle_ms;         /* between requests [60 s]: closed */
    int64_t head_ms;         /* first byte to end of head [10 s]: 408 */
    int64_t body_ms;         /* end of head to end of body [60 s]: 408 */
    int64_t write_ms;        /* without the client taking a byte [30 s] */

    /*
     * Optional, when the head has arrived and no byte of the body: method,
     * path, headers can be read. May change *max_body for this request.
     * Returns 0 to go on, or a status (>= 400) with *text set (a string that
     * lives until the next turn) to refuse it before its body is read.
     */
    int (*on_head)(void *arg, struct httpd_req *req, size_t *max_body,
                   const char **text);
    /* The request is the handler's until it has replied. */
    void (*handler)(void *arg, struct httpd_req *req);
    /* Optional, for logs and metrics: when a reply goes out, also one that
     * the server made itself (the method is "" if it was never read). */
    void (*on_reply)(void *arg, const struct httpd_req *req, int status,
                     size_t body_len);
    void *arg;
};

/* Binds and listens; the config is copied (strings too). */
struct httpd *httpd_create(struct loop *l, const struct httpd_cfg *cfg,
                           struct err *err);
int httpd_port(const struct httpd *h);
unsigned httpd_conns(const struct httpd *h);

/*
 * Graceful end: no new connections, idle ones are closed, requests that have
 * arrived are answered (with Connection: close) for at most deadline_ms. Then
 * done(arg), never inside the call. Call httpd_destroy afterwards.
 */
void httpd_stop(struct httpd *h, int64_t deadline_ms, void (*done)(void *arg),
                void *arg);
/* Closes whatever is open. Requests not yet replied to stay valid until they
 * are; `done` of a stop under way does not fire. NULL is fine. */
void httpd_destroy(struct httpd *h);

/* --- reading a request: borrowed until the reply -------------------------*/

const char *httpd_method(const struct httpd_req *req); /* "GET" */
/* Percent-decoded, repeated slashes collapsed, starts with '/'. Never has a
 * "." or ".." segment. Note that an encoded slash counts as a slash. */
const char *httpd_path(const struct httpd_req *req);
/* As sent. */
const char *httpd_target(const struct httpd_req *req);
/* After the '?', undecoded; "" if none. See core/io/form.h. */
const char *httpd_query(const struct httpd_req *req);
/* Name in any case; the first such header, blanks trimmed; NULL = absent. */
const char *httpd_header(const struct httpd_req *req, const char *name);
/* The token in the value of an Authorization header, "Bearer T" or Arvados'
 * older "OAuth2 T"; NULL: the value is NULL, or of another scheme. */
const char *httpd_token(const char *authorization);
/* All headers in order: false at the end. Names are in lower case. */
bool httpd_header_at(const struct httpd_req *req, size_t i,
                     const char **name, const char **value);
/* NUL-terminated beyond *ret_len; never NULL. */
const char *httpd_body(const struct httpd_req *req, size_t *ret_len);
/* Numeric address of the client, without port. */
const char *httpd_peer(const struct httpd_req *req);
/* X-Request-Id if the client sent a usable one (visible ASCII, at most 1024),
 * else "req-" and 20 characters; the reply carries it. */
const char *httpd_request_id(const struct httpd_req *req);
/* Microseconds since the first byte of the request. */
int64_t httpd_age_us(const struct httpd_req *req);

/* --- replying ------------------------------------------------------------*/

/*
 * fn(arg) when the client has gone before the reply: it closed its side, or
 * the connection broke, or the server is being destroyed. At most once, never
 * inside this call, not after the reply. The request must still be replied
 * to; nobody may be there to read it. NULL takes it back.
 */
void httpd_on_gone(struct httpd_req *req, void (*fn)(void *arg), void *arg);

struct httpd_header {
    const char *name; /* NULL ends the array */
    const char *value;
};

/*
 * Reply, and give the request back: it is gone afterwards. content_type NULL
 * = none. extra: headers beyond Content-Type, Content-Length, Date,
 * Connection and X-Request-Id; NULL = none; control characters in values are
 * replaced. The body is borrowed until this returns (what the socket does not
 * take at once is copied). For HEAD the body's length is sent, not the body;
 * 204 and 304 have none.
 */
void httpd_reply(struct httpd_req *req, int status, const char *content_type,
                 const struct httpd_header *extra, const void *body,
                 size_t len);
/* The same with a body from malloc() that the server frees. */
void httpd_reply_take(struct httpd_req *req, int status,
                      const char *content_type,
                      const struct httpd_header *extra, void *body,
                      size_t len);
/* {"errors":["..."]} and a newline. */
void httpd_reply_error(struct httpd_req *req, int status, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));

/* "Not Found"; "Unknown" for a code without a name. */
const char *httpd_reason(int status);

#endif
