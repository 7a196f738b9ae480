/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ARVADOS_API_WIRE_H
#define CORE_ARVADOS_API_WIRE_H

/*
 * Requests and replies of the API port as text. Pure; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/vec.h"
#include "core/model/ctr.h"

struct api_list_req;
struct api_update_req;
struct buf;
struct err;

/* --- requests: appended to out -------------------------------------------*/

enum wire_part {
    WIRE_WHOLE, /* everything, or everything after the given item */
    WIRE_TIES,  /* queued: of the same priority as the given item */
    WIRE_LOWER  /* queued: of a lower priority */
};

/* The query string of a list of containers (Arvados API, "Common resource
 * methods": filters, select, order, limit, count). */
void wire_list_query(struct buf *out, const struct api_list_req *req,
                     enum wire_part part, bool attempts);
/* The query string of a get: everything a struct ctr has. */
void wire_get_query(struct buf *out, bool attempts);
void wire_update_body(struct buf *out, const struct api_update_req *req,
                      bool attempts);
void wire_feed_query(struct buf *out, const char *epoch, int64_t cursor,
                     int64_t wait_ms);

/* --- replies -------------------------------------------------------------*/

struct wire_discovery {
    bool attempts;
    char feed_path[256]; /* "" = no feed */
};

struct wire_attempt {
    int64_t attempt;
    char token[128];
};

struct wire_feed {
    char epoch[64];
    int64_t cursor;
    bool more, resync;
    VEC(char *) uuids; /* of containers */
};

typedef VEC(struct ctr) wire_ctrs;

/* All: -1/ERR_INVALID when the reply is not what it should be; nothing to
 * free then. */
int wire_parse_discovery(const char *text, size_t n,
                         struct wire_discovery *ret, struct err *err);
/* The token's uuid: of any kind a server uses. */
int wire_parse_whoami(const char *text, size_t n, char ret[CTR_UUID_SIZE],
                      struct err *err);
int wire_parse_ctr(const char *text, size_t n, struct ctr *ret,
                   struct err *err);
/* Appends to *ret. Items without a valid uuid are left out. */
int wire_parse_list(const char *text, size_t n, wire_ctrs *ret,
                    struct err *err);
int wire_parse_attempt(const char *text, size_t n, struct wire_attempt *ret,
                       struct err *err);
/* Free with wire_feed_fini. */
int wire_parse_feed(const char *text, size_t n, struct wire_feed *ret,
                    struct err *err);
void wire_feed_fini(struct wire_feed *f);

/* The messages of an error reply as one line in out: its `errors` joined, or
 * the beginning of the text. */
void wire_error_text(const char *text, size_t n, char *out, size_t size);
/* Class of a status that is not a success, and whether the request was surely
 * refused: by rule, so for a 4xx and 503. */
int wire_status_class(int status, bool *ret_refused);
/* Retry-After (RFC 9110, 10.2.3) in ms, at most an hour; 0 = none, a date, or
 * nonsense. value may be NULL. */
int64_t wire_retry_ms(const char *value);

#endif
