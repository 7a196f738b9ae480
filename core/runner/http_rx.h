/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_HTTP_RX_H
#define CORE_RUNNER_HTTP_RX_H

/*
 * Receiving one HTTP/1.1 response (RFC 9112): a strict, incremental parser.
 *
 * Refused, always: a bare LF, folded headers, blanks before a colon, an
 * unknown transfer coding, two lengths that differ in anything, a length
 * beside chunked, a response without either (its end could not be told from
 * a lost connection), more than the limits below. Interim responses (1xx) are
 * skipped, a few of them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"

struct err;

enum {
    HTTP_RX_LINE_MAX = 8 * 1024,
    HTTP_RX_HEADERS_MAX = 100,
    HTTP_RX_INTERIM_MAX = 4,
};

enum http_rx_state {
    HTTP_RX_STATUS,
    HTTP_RX_HEADER,
    HTTP_RX_BODY,
    HTTP_RX_CHUNK_SIZE,
    HTTP_RX_CHUNK_DATA,
    HTTP_RX_CHUNK_END,
    HTTP_RX_TRAILER,
    HTTP_RX_DONE,
};

struct http_rx {
    enum http_rx_state state;
    int status;
    bool close;          /* the connection ends with this response */
    int64_t retry_after; /* seconds; 0 = not stated */
    struct buf body;

    /* private */
    struct buf line;
    bool head_request;
    bool http10;
    bool chunked;
    int64_t length; /* -1 = none seen */
    int64_t left;   /* of the body or chunk */
    int headers;
    int interims;
    bool begun;     /* at least one byte came */
};

/* body_max bounds the decoded body. head: a response to HEAD has none. */
void http_rx_init(struct http_rx *rx, size_t body_max, bool head);
void http_rx_fini(struct http_rx *rx);

/* Take bytes; *ret_used of them belonged to the response (all, unless it is
 * complete). -1: it is malformed (ERR_INVALID) or too large. */
int http_rx_feed(struct http_rx *rx, const char *p, size_t n,
                 size_t *ret_used, struct err *err);

#endif
