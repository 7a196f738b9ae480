/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a handler reads of a request, and the one place where a target becomes
 * a path.
 *
 * The path is decoded once, here, so that routing and permission checks see
 * the same bytes as whatever opens a file in the end: after decoding it has
 * no NUL, no repeated slash and no "." or ".." segment; those are refused,
 * not repaired, because no honest client sends them.
 */

#include "core/io/httpd_int.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/io/loop.h"

enum { KEEP_BYTES = 16384 }; /* more than this is not kept for the next one */

static void shrink(struct buf *b)
{
    if (b->cap > KEEP_BYTES)
        buf_fini(b);
    else
        buf_reset(b);
}

void req_reset(struct httpd_req *r)
{
    shrink(&r->text);
    shrink(&r->body);
    r->target = r->path = r->query = 0;
    r->n_fields = 0;
    r->method = "";
    r->id[0] = '\0';
    r->begun_us = 0;
}

void req_fini(struct httpd_req *r)
{
    buf_fini(&r->text);
    buf_fini(&r->body);
    free(r->fields);
}

static bool is_dots(const char *segment, size_t n)
{
    return (n == 1 && segment[0] == '.') ||
           (n == 2 && segment[0] == '.' && segment[1] == '.');
}

/* Decode, collapse slashes, refuse dot segments; in place. */
static int clean_path(char *s)
{
    char *to = s;

    if (text_decode_uri(s, false) < 0)
        return -1;
    for (const char *from = s; *from;) {
        size_t n = strcspn(from, "/");

        if (is_dots(from, n))
            return -1;
        memmove(to, from, n);
        to += n;
        from += n;
        if (*from == '/')
            *to++ = '/';
        from += strspn(from, "/");
    }
    *to = '\0';
    return 0;
}

/* Where the path begins: origin-form, or after the authority of an
 * absolute-form (RFC 9112, 3.2). NULL: neither. */
static const char *skip_authority(const char *target)
{
    if (strncasecmp(target, "http://", 7) == 0)
        target += 7;
    else if (strncasecmp(target, "https://", 8) == 0)
        target += 8;
    else
        return target[0] == '/' ? target : NULL;
    return target + strcspn(target, "/?");
}

int req_split_target(struct httpd_req *r)
{
    const char *target = r->text.data + r->target;
    const char *start, *query;
    size_t from, n;

    if (strchr(target, '#'))
        return -1;
    if (strcmp(target, "*") == 0 && strcmp(r->method, "OPTIONS") == 0)
        start = target;
    else if (!(start = skip_authority(target)))
        return -1;
    query = strchr(start, '?');
    n = query ? (size_t) (query - start) : strlen(start);
    from = (size_t) (start - r->text.data);
    r->query = query ? (size_t) (query + 1 - r->text.data)
                     : from + n; /* the NUL: an empty string */
    if (!buf_reserve(&r->text, n + 2)) /* may move the text */
        return -1;
    r->path = r->text.len;
    if (n == 0)
        buf_putc(&r->text, '/');
    buf_append(&r->text, r->text.data + from, n);
    buf_putc(&r->text, '\0');
    return clean_path(r->text.data + r->path);
}

const char *httpd_method(const struct httpd_req *r)
{
    return r->method;
}

const char *httpd_path(const struct httpd_req *r)
{
    return r->text.data + r->path;
}

const char *httpd_target(const struct httpd_req *r)
{
    return r->text.data + r->target;
}

const char *httpd_query(const struct httpd_req *r)
{
    return r->text.data + r->query;
}

bool httpd_header_at(const struct httpd_req *r, size_t i, const char **name,
                     const char **value)
{
    if (i >= r->n_fields)
        return false;
    *name = r->text.data + r->fields[i].name;
    *value = r->text.data + r->fields[i].value;
    return true;
}

const char *httpd_header(const struct httpd_req *r, const char *name)
{
    const char *have, *value;

    for (size_t i = 0; httpd_header_at(r, i, &have, &value); i++)
        if (strcasecmp(have, name) == 0)
            return value;
    return NULL;
}

const char *httpd_token(const char *authorization)
{
    static const char *const schemes[] = {"Bearer ", "OAuth2 "};

    for (size_t i = 0; authorization && i < MEM_COUNT(schemes); i++) {
        size_t n = strlen(schemes[i]);

        if (strncasecmp(authorization, schemes[i], n) == 0)
            return authorization + n + strspn(authorization + n, " ");
    }
    return NULL;
}

const char *httpd_body(const struct httpd_req *r, size_t *ret_len)
{
    *ret_len = r->body.len;
    return r->body.data;
}

static struct httpd_conn *conn_of(struct httpd_req *r)
{
    return MEM_CONTAINER(r, struct httpd_conn, req);
}

const char *httpd_peer(const struct httpd_req *r)
{
    return ((const struct httpd_conn *) (const void *)
            ((const char *) r - offsetof(struct httpd_conn, req)))->peer;
}

static bool is_usable_id(const char *s)
{
    size_t n = 0;

    if (!s)
        return false;
    for (; s[n]; n++)
        if (s[n] <= ' ' || s[n] > '~')
            return false;
    return n > 0 && n <= 1024;
}

const char *httpd_request_id(const struct httpd_req *req)
{
    struct httpd_req *r = (struct httpd_req *) (uintptr_t) req;
    struct httpd_conn *c = conn_of(r);
    const char *given;
    uint8_t random[20];

    if (r->id[0])
        return r->id;
    if (is_usable_id(given = httpd_header(r, "x-request-id")))
        return given;
    if (!c->h)
        return "";
    httpd_random(c->h, random, sizeof random);
    memcpy(r->id, "req-", 4);
    text_base36(random, 20, r->id + 4);
    return r->id;
}

int64_t httpd_age_us(const struct httpd_req *r)
{
    return r->begun_us ? clock_mono_us() - r->begun_us : 0;
}

static void tell_gone(void *arg)
{
    struct httpd_req *r = arg;
    void (*fn)(void *) = r->gone_fn;

    r->gone_timer = NULL;
    r->gone_fn = NULL;
    fn(r->gone_arg);
}

void httpd_on_gone(struct httpd_req *r, void (*fn)(void *arg), void *arg)
{
    struct httpd_conn *c = conn_of(r);

    loop_timer_cancel(r->gone_timer);
    r->gone_timer = NULL;
    r->gone_fn = fn;
    r->gone_arg = arg;
    if (fn && c->h && (c->eof || c->state == CONN_CLOSED))
        r->gone_timer = loop_timer_arm(c->h->loop, 0, tell_gone, r);
}
