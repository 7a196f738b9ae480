/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_HTTPD_INT_H
#define CORE_IO_HTTPD_INT_H

/*
 * What the parts of the HTTP server share; nobody else includes this.
 *
 *   httpd.c        listening, limits on connections, graceful end
 *   httpd_conn.c   one connection: states, deadlines, order of requests
 *   httpd_parse.c  bytes -> request, with all rules on heads and bodies
 *   httpd_req.c    what handlers read
 *   httpd_reply.c  what they send
 */

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "core/base/buf.h"
#include "core/io/httpd.h"
#include "core/io/wire.h"

struct map;

/*
 *   IDLE -> HEAD -> BODY -> BUSY -> SEND -> IDLE ...
 *                                        -> CLOSED
 *   any of the first three, on a malformed request or at a deadline:
 *     -> SEND -> LINGER -> CLOSED
 */
enum conn_state {
    CONN_IDLE,   /* between requests */
    CONN_HEAD,   /* a request has begun */
    CONN_BODY,   /* its head is complete */
    CONN_BUSY,   /* the handler has it */
    CONN_SEND,   /* replied; the kernel has not yet taken everything */
    CONN_LINGER, /* our side is shut; what still arrives is thrown away, so
                  * that the kernel sends no reset that destroys the reply */
    CONN_CLOSED
};

struct httpd_field {
    size_t name, value; /* offsets into req.text */
};

/* The request of a connection: there is never more than one at a time, so it
 * is part of the connection and its memory is used again. */
struct httpd_req {
    struct buf text; /* target, path, header names and values; NULs between */
    size_t target, path, query;
    struct httpd_field *fields; /* cfg.max_headers of them, on demand */
    unsigned n_fields, cap_fields;
    struct buf body;
    const char *method;
    bool pending; /* the handler owes a reply */
    char id[25];
    int64_t begun_us;
    void (*gone_fn)(void *arg);
    void *gone_arg;
    struct loop_timer *gone_timer;
};

struct httpd_conn {
    struct wire wire;
    struct httpd *h; /* NULL after the server was destroyed */
    struct httpd_conn *next, *prev;
    enum conn_state state;
    bool wire_gone; /* `closed` came */
    bool eof;       /* the client closed its side */
    bool keep;      /* keep the connection after this reply */
    bool linger;
    bool feeding;   /* conn_feed is on the stack */
    bool counted;   /* in the server's list and counters */
    char peer[WIRE_PEER_SIZE];

    struct loop_timer *timer;
    int64_t timer_ms, due_ms; /* uv_now scale; due_ms 0 = none */
    size_t unsent;            /* at the last look, to see progress */

    llhttp_t parser;
    struct buf in; /* bytes of later requests */
    int bad;       /* status of the refusal, and its text */
    const char *bad_text;
    size_t head_bytes, url_bytes;
    unsigned n_headers, n_host, n_length, n_coding;
    const char *chunk; /* what is being parsed */
    char solid;    /* the last byte before it that is no blank */
    bool in_name;  /* inside a header name */
    bool in_value; /* a value has begun and is not yet terminated */
    size_t max_body;

    struct httpd_req req;
};

struct httpd {
    struct loop *loop;
    struct httpd_cfg cfg;
    llhttp_settings_t settings;
    uv_tcp_t tcp;
    int port;
    struct httpd_conn *conns;
    unsigned n_conns;
    struct map *peers; /* address -> unsigned * */
    bool stopping, destroyed, listener_gone;
    struct loop_timer *stop_timer;
    void (*stop_done)(void *arg);
    void *stop_arg;
    struct buf head; /* scratch of httpd_reply */
    int64_t date_s;
    char date[40];
    unsigned random_left;
    uint8_t random[4000];
    char read_buf[WIRE_READ_SIZE];
};

/* httpd.c */
void httpd_forget(struct httpd_conn *c); /* the connection has closed */
void httpd_random(struct httpd *h, uint8_t *out, size_t n);

/* httpd_conn.c */
void conn_open(struct httpd *h, struct httpd_conn *c);
void conn_close(struct httpd_conn *c);
void conn_deadline(struct httpd_conn *c, int64_t ms); /* 0 = none */
/* Send a reply; own as for wire_write. */
void conn_send(struct httpd_conn *c, const struct iovec *v, unsigned n,
               void *own);
/* Free the memory when neither wire nor handler needs it any more. */
void conn_maybe_free(struct httpd_conn *c);
extern const struct wire_ops conn_wire_ops;

/* httpd_parse.c */
void parse_init(llhttp_settings_t *s);
void parse_reset(struct httpd_conn *c);

/* httpd_req.c */
void req_reset(struct httpd_req *req);
void req_fini(struct httpd_req *req);
/* Fill path and query from the target; -1: malformed. */
int req_split_target(struct httpd_req *req);

/* httpd_reply.c */
/* Answer what never became a request; closes the connection. */
void reply_refusal(struct httpd_conn *c, int status, const char *text);

#endif
