/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From bytes to a request: the callbacks of llhttp, and every rule about
 * heads and bodies that goes beyond it.
 *
 * llhttp in its strict mode refuses bare LF, blanks before the colon, folded
 * headers, signed or doubled lengths in one header and the like. The rules
 * here close what it leaves to its user: repeated Host, Content-Length and
 * Transfer-Encoding, both of the latter, codings other than chunked, NUL, and
 * the size of everything that can grow.
 *
 * Text goes into req.text, each piece closed by a NUL and known by its
 * offset. Trailers are counted against the limits of the head and dropped.
 * on_complete pauses the parser: the handler is called by httpd_conn.c, never
 * from inside llhttp. A callback that refuses sets c->bad and returns -1.
 */

#include "core/io/httpd_int.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

enum { BODY_AHEAD = 1 << 20 };

static int refuse(struct httpd_conn *c, int status, const char *text)
{
    c->bad = status;
    c->bad_text = text;
    return -1;
}

void parse_reset(struct httpd_conn *c)
{
    c->bad = 0;
    c->bad_text = NULL;
    c->head_bytes = c->url_bytes = 0;
    c->n_headers = c->n_host = c->n_length = c->n_coding = 0;
    c->in_name = c->in_value = false;
    c->max_body = c->h->cfg.max_body;
    req_reset(&c->req);
}

static int on_begin(llhttp_t *p)
{
    struct httpd_conn *c = p->data;

    parse_reset(c);
    c->state = CONN_HEAD;
    c->req.begun_us = clock_mono_us();
    conn_deadline(c, c->h->cfg.head_ms);
    return 0;
}

static int on_url(llhttp_t *p, const char *s, size_t n)
{
    struct httpd_conn *c = p->data;

    if ((c->url_bytes += n) > c->h->cfg.max_url)
        return refuse(c, 414, "request target is too long");
    for (size_t i = 0; i < n; i++)
        if ((unsigned char) s[i] <= ' ' || (unsigned char) s[i] >= 0x7f)
            return refuse(c, 400, "malformed request target");
    return buf_append(&c->req.text, s, n);
}

static int on_url_complete(llhttp_t *p)
{
    struct httpd_conn *c = p->data;

    return buf_putc(&c->req.text, '\0');
}

/* Close the value that is being collected: trim it and add the NUL. */
static void end_value(struct httpd_conn *c)
{
    struct buf *t = &c->req.text;
    size_t start;

    if (!c->in_value)
        return;
    c->in_value = false;
    start = c->req.fields[c->req.n_fields - 1].value;
    while (t->len > start &&
           (t->data[t->len - 1] == ' ' || t->data[t->len - 1] == '\t'))
        t->len--;
    buf_putc(t, '\0');
}

static int count_header(struct httpd_conn *c)
{
    end_value(c);
    c->in_name = true;
    if (++c->n_headers > c->h->cfg.max_headers)
        return refuse(c, 431, "too many headers");
    return 0;
}

static int begin_field(struct httpd_conn *c)
{
    struct httpd_req *r = &c->req;

    if (count_header(c) < 0)
        return -1;
    if (c->state != CONN_HEAD)
        return 0; /* a trailer */
    if (r->n_fields == r->cap_fields) {
        r->cap_fields = r->cap_fields ? 2 * r->cap_fields : 16;
        r->fields = mem_realloc(r->fields, r->cap_fields, sizeof *r->fields);
    }
    r->fields[r->n_fields++] = (struct httpd_field) {r->text.len, 0};
    return 0;
}

static int on_name(llhttp_t *p, const char *s, size_t n)
{
    struct httpd_conn *c = p->data;
    char *to;

    if (!c->in_name && begin_field(c) < 0)
        return -1;
    if ((c->head_bytes += n) > c->h->cfg.max_head)
        return refuse(c, 431, "headers are too large");
    if (c->state != CONN_HEAD)
        return 0;
    if (!(to = buf_reserve(&c->req.text, n)))
        return refuse(c, 431, "headers are too large");
    for (size_t i = 0; i < n; i++)
        to[i] = (char) (s[i] >= 'A' && s[i] <= 'Z' ? s[i] | 0x20 : s[i]);
    buf_add(&c->req.text, n);
    return 0;
}

static int on_name_complete(llhttp_t *p)
{
    struct httpd_conn *c = p->data;
    struct httpd_field *f;
    const char *name;

    if (!c->in_name)
        return refuse(c, 400, "header without a name");
    c->in_name = false;
    if (c->state != CONN_HEAD)
        return 0;
    f = &c->req.fields[c->req.n_fields - 1];
    buf_putc(&c->req.text, '\0');
    f->value = c->req.text.len;
    c->in_value = true;
    name = c->req.text.data + f->name;
    if (!*name)
        return refuse(c, 400, "header without a name");
    if (strcmp(name, "host") == 0 && ++c->n_host > 1)
        return refuse(c, 400, "more than one Host");
    if (strcmp(name, "content-length") == 0 && ++c->n_length > 1)
        return refuse(c, 400, "more than one Content-Length");
    if (strcmp(name, "transfer-encoding") == 0 && ++c->n_coding > 1)
        return refuse(c, 400, "more than one Transfer-Encoding");
    return 0;
}

/* llhttp passes folded values on. Whoever stands between us and the client
 * may read them differently (RFC 9112, 5.2): a piece of a value that is the
 * first thing on its line is refused. */
static bool is_folded(const struct httpd_conn *c, const char *s)
{
    while (s > c->chunk && (s[-1] == ' ' || s[-1] == '\t'))
        s--;
    return (s > c->chunk ? s[-1] : c->solid) == '\n';
}

static int on_value(llhttp_t *p, const char *s, size_t n)
{
    struct httpd_conn *c = p->data;

    if (n > 0 && is_folded(c, s))
        return refuse(c, 400, "folded header");
    if (memchr(s, '\0', n))
        return refuse(c, 400, "NUL in a header");
    if ((c->head_bytes += n) > c->h->cfg.max_head)
        return refuse(c, 431, "headers are too large");
    if (c->state != CONN_HEAD)
        return 0;
    if (buf_append(&c->req.text, s, n) < 0)
        return refuse(c, 431, "headers are too large");
    return 0;
}

static int on_value_complete(llhttp_t *p)
{
    end_value(p->data);
    return 0;
}

static int check_framing(struct httpd_conn *c)
{
    llhttp_t *p = &c->parser;
    const char *coding = httpd_header(&c->req, "transfer-encoding");

    if (p->http_major != 1 || p->http_minor > 1)
        return refuse(c, 505, "only HTTP 1.0 and 1.1 are served");
    if (p->http_minor == 1 && c->n_host != 1)
        return refuse(c, 400, "no Host header");
    if (coding && (c->n_length || p->http_minor == 0))
        return refuse(c, 400, "contradictory framing of the body");
    if (coding && strcasecmp(coding, "chunked") != 0)
        return refuse(c, 501, "unknown transfer coding");
    return 0;
}

static int check_request(struct httpd_conn *c)
{
    switch (c->parser.method) {
    case HTTP_GET:
    case HTTP_HEAD:
    case HTTP_POST:
    case HTTP_PUT:
    case HTTP_PATCH:
    case HTTP_DELETE:
    case HTTP_OPTIONS:
        break;
    default:
        return refuse(c, 501, "method is not known here");
    }
    c->req.method = llhttp_method_name((llhttp_method_t) c->parser.method);
    if (req_split_target(&c->req) < 0)
        return refuse(c, 400, "malformed request target");
    /* We speak nothing else; an offer to change protocols is passed over. */
    c->parser.upgrade = 0;
    return 0;
}

static int ask_owner(struct httpd_conn *c)
{
    const struct httpd_cfg *cfg = &c->h->cfg;
    const char *text = "refused";
    int status;

    if (!cfg->on_head)
        return 0;
    status = cfg->on_head(cfg->arg, &c->req, &c->max_body, &text);
    return status ? refuse(c, status, text) : 0;
}

/* RFC 9110, 10.1.1: a client may wait for our word before it sends a body. */
static int check_expect(struct httpd_conn *c)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const char *expect = httpd_header(&c->req, "expect");
    struct iovec v = {(void *) go_on, sizeof go_on - 1};

    if (!expect || c->parser.http_minor == 0)
        return 0;
    if (strcasecmp(expect, "100-continue") != 0)
        return refuse(c, 417, "unknown expectation");
    if (c->n_length || c->n_coding)
        wire_write(&c->wire, &v, 1, NULL);
    return 0;
}

static int on_head(llhttp_t *p)
{
    struct httpd_conn *c = p->data;
    bool sized = p->flags & F_CONTENT_LENGTH;

    end_value(c);
    if (c->req.text.over)
        return refuse(c, 431, "headers are too large");
    if (check_framing(c) < 0 || check_request(c) < 0 || ask_owner(c) < 0)
        return -1;
    if (sized && p->content_length > c->max_body)
        return refuse(c, 413, "body is too large");
    if (check_expect(c) < 0)
        return -1;
    c->state = CONN_BODY;
    c->req.body.max = c->max_body;
    /* A length is only a claim: room for what is usual, the rest grows. */
    if (sized && p->content_length > 0)
        buf_reserve(&c->req.body, p->content_length < BODY_AHEAD
                                      ? p->content_length : BODY_AHEAD);
    conn_deadline(c, c->h->cfg.body_ms);
    return 0;
}

static int on_body(llhttp_t *p, const char *s, size_t n)
{
    struct httpd_conn *c = p->data;

    if (buf_append(&c->req.body, s, n) < 0)
        return refuse(c, 413, "body is too large");
    return 0;
}

/* Extensions of chunks mean nothing to us, but must not be endless. */
static int on_extension(llhttp_t *p, const char *s, size_t n)
{
    struct httpd_conn *c = p->data;

    (void) s;
    if ((c->head_bytes += n) > c->h->cfg.max_head)
        return refuse(c, 413, "chunk extensions are too large");
    return 0;
}

static int on_complete(llhttp_t *p)
{
    struct httpd_conn *c = p->data;

    c->keep = llhttp_should_keep_alive(p);
    return HPE_PAUSED;
}

void parse_init(llhttp_settings_t *s)
{
    llhttp_settings_init(s);
    s->on_message_begin = on_begin;
    s->on_url = on_url;
    s->on_url_complete = on_url_complete;
    s->on_header_field = on_name;
    s->on_header_field_complete = on_name_complete;
    s->on_header_value = on_value;
    s->on_header_value_complete = on_value_complete;
    s->on_headers_complete = on_head;
    s->on_body = on_body;
    s->on_chunk_extension_name = on_extension;
    s->on_chunk_extension_value = on_extension;
    s->on_message_complete = on_complete;
}
