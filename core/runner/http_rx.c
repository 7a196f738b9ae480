/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response parser.
 *
 * Bytes are taken one line at a time (status, headers, chunk sizes, trailers)
 * or in runs (bodies). A line is collected until CR LF and then judged as a
 * whole; nothing is guessed and nothing repaired: what is not exactly HTTP/1.1
 * comes from a peer that is not ours, and whatever follows on that connection
 * cannot be trusted.
 *
 * Pure: no I/O, no time. http.c feeds it.
 */
#include "core/runner/http_rx.h"

#include <string.h>
#include <strings.h>

#include "core/base/err.h"

enum { RETRY_AFTER_MAX = 3600 };

void http_rx_init(struct http_rx *rx, size_t body_max, bool head)
{
    *rx = (struct http_rx){.length = -1, .head_request = head};
    buf_init(&rx->body, body_max);
    buf_init(&rx->line, HTTP_RX_LINE_MAX);
}

void http_rx_fini(struct http_rx *rx)
{
    buf_wipe(&rx->body);
    buf_fini(&rx->line);
}

static int bad(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "malformed HTTP response: %s", what);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A character of a token (RFC 9110, 5.6.2). */
static bool is_token(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

/* Digits only, at most 15 of them: no sign, no blank, no overflow. */
static int parse_length(const char *s, int64_t *ret)
{
    int64_t v = 0;
    size_t n = strlen(s);

    if (n == 0 || n > 15)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(s[i]))
            return -1;
        v = v * 10 + (s[i] - '0');
    }
    *ret = v;
    return 0;
}

static int parse_status(struct http_rx *rx, const char *s, struct err *err)
{
    if (strncmp(s, "HTTP/1.", 7) != 0 || (s[7] != '1' && s[7] != '0') ||
        s[8] != ' ' || !is_digit(s[9]) || !is_digit(s[10]) ||
        !is_digit(s[11]) || (s[12] != ' ' && s[12] != '\0'))
        return bad(err, "status line");
    rx->http10 = s[7] == '0';
    rx->close = rx->http10;
    rx->status = (s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0');
    if (rx->status < 100 || rx->status > 599)
        return bad(err, "status code");
    rx->state = HTTP_RX_HEADER;
    return 0;
}

static int set_length(struct http_rx *rx, const char *value, struct err *err)
{
    int64_t v;

    if (rx->length >= 0)
        return bad(err, "two Content-Length fields");
    if (parse_length(value, &v) < 0)
        return bad(err, "Content-Length");
    rx->length = v;
    return 0;
}

static int set_coding(struct http_rx *rx, const char *value, struct err *err)
{
    if (rx->chunked || strcasecmp(value, "chunked") != 0 || rx->http10)
        return bad(err, "Transfer-Encoding");
    rx->chunked = true;
    return 0;
}

static int apply(struct http_rx *rx, const char *name, const char *value,
                 struct err *err)
{
    int64_t v;

    if (strcasecmp(name, "Content-Length") == 0)
        return set_length(rx, value, err);
    if (strcasecmp(name, "Transfer-Encoding") == 0)
        return set_coding(rx, value, err);
    if (strcasecmp(name, "Connection") == 0 && strcasestr(value, "close"))
        rx->close = true;
    if (strcasecmp(name, "Retry-After") == 0 && parse_length(value, &v) == 0)
        rx->retry_after = v > RETRY_AFTER_MAX ? RETRY_AFTER_MAX : v;
    return 0;
}

/* `name: value`, in place. */
static int parse_header(struct http_rx *rx, char *s, struct err *err)
{
    size_t n = 0;
    char *value, *end;

    if (++rx->headers > HTTP_RX_HEADERS_MAX)
        return err_set(err, ERR_TOO_LARGE, "HTTP response: too many headers");
    while (is_token(s[n]))
        n++;
    if (n == 0 || s[n] != ':')
        return bad(err, "header field");
    s[n] = '\0';
    value = s + n + 1;
    value += strspn(value, " \t");
    end = value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    for (const char *p = value; *p; p++) {
        if ((unsigned char) *p < 0x20 && *p != '\t')
            return bad(err, "control character in a header field");
    }
    return apply(rx, s, value, err);
}

static void begin_body(struct http_rx *rx, int64_t left)
{
    rx->left = left;
    rx->state = left == 0 ? HTTP_RX_DONE : HTTP_RX_BODY;
}

static int end_of_head(struct http_rx *rx, struct err *err)
{
    if (rx->status < 200) {
        if (++rx->interims > HTTP_RX_INTERIM_MAX || rx->status == 101)
            return bad(err, "interim response");
        rx->state = HTTP_RX_STATUS;
        return 0;
    }
    if (rx->chunked && rx->length >= 0)
        return bad(err, "Content-Length beside chunked");
    if (rx->head_request || rx->status == 204 || rx->status == 304)
        begin_body(rx, 0);
    else if (rx->chunked)
        rx->state = HTTP_RX_CHUNK_SIZE;
    else if (rx->length < 0)
        return bad(err, "no length");
    else if ((uint64_t) rx->length > rx->body.max)
        return err_set(err, ERR_TOO_LARGE, "HTTP response: body of %lld bytes",
                       (long long) rx->length);
    else
        begin_body(rx, rx->length);
    return 0;
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Extensions (after ';') are legal and mean nothing to us. */
static int parse_chunk_size(struct http_rx *rx, const char *s,
                            struct err *err)
{
    int64_t v = 0;
    size_t n = 0;

    while (hex_value(s[n]) >= 0 && n < 9)
        v = v * 16 + hex_value(s[n++]);
    if (n == 0 || n == 9 || (s[n] != '\0' && s[n] != ';'))
        return bad(err, "chunk size");
    if ((uint64_t) v > rx->body.max - rx->body.len)
        return err_set(err, ERR_TOO_LARGE, "HTTP response: body too large");
    rx->left = v;
    rx->state = v ? HTTP_RX_CHUNK_DATA : HTTP_RX_TRAILER;
    return 0;
}

static int on_line(struct http_rx *rx, char *s, struct err *err)
{
    if (strlen(s) != rx->line.len)
        return bad(err, "NUL byte");
    switch (rx->state) {
    case HTTP_RX_STATUS:
        return parse_status(rx, s, err);
    case HTTP_RX_HEADER:
        return *s ? parse_header(rx, s, err) : end_of_head(rx, err);
    case HTTP_RX_CHUNK_SIZE:
        return parse_chunk_size(rx, s, err);
    case HTTP_RX_CHUNK_END:
        rx->state = HTTP_RX_CHUNK_SIZE;
        return *s ? bad(err, "chunk end") : 0;
    case HTTP_RX_TRAILER:
        if (*s == '\0')
            rx->state = HTTP_RX_DONE;
        else if (++rx->headers > HTTP_RX_HEADERS_MAX)
            return err_set(err, ERR_TOO_LARGE, "HTTP response: trailers");
        return 0;
    default:
        return bad(err, "internal");
    }
}

/* Collect up to CR LF; *ret_used bytes were taken. */
static int take_line(struct http_rx *rx, const char *p, size_t n,
                     size_t *ret_used, struct err *err)
{
    const char *lf = memchr(p, '\n', n);
    size_t take = lf ? (size_t) (lf - p) + 1 : n;
    int r;

    *ret_used = take;
    if (buf_append(&rx->line, p, take) < 0)
        return err_set(err, ERR_TOO_LARGE, "HTTP response: line too long");
    if (!lf)
        return 0;
    if (rx->line.len < 2 || rx->line.data[rx->line.len - 2] != '\r')
        return bad(err, "LF without CR");
    buf_truncate(&rx->line, rx->line.len - 2);
    if (memchr(rx->line.data, '\r', rx->line.len))
        return bad(err, "CR without LF");
    r = on_line(rx, rx->line.data, err);
    buf_reset(&rx->line);
    return r;
}

static int take_data(struct http_rx *rx, const char *p, size_t n,
                     size_t *ret_used, struct err *err)
{
    size_t take = (int64_t) n < rx->left ? n : (size_t) rx->left;

    *ret_used = take;
    if (buf_append(&rx->body, p, take) < 0)
        return err_set(err, ERR_TOO_LARGE, "HTTP response: body too large");
    rx->left -= (int64_t) take;
    if (rx->left == 0)
        rx->state = rx->state == HTTP_RX_BODY ? HTTP_RX_DONE
                                              : HTTP_RX_CHUNK_END;
    return 0;
}

int http_rx_feed(struct http_rx *rx, const char *p, size_t n,
                 size_t *ret_used, struct err *err)
{
    size_t at = 0;

    while (at < n && rx->state != HTTP_RX_DONE) {
        bool data = rx->state == HTTP_RX_BODY ||
                    rx->state == HTTP_RX_CHUNK_DATA;
        size_t used = 0;

        rx->begun = true;
        if ((data ? take_data : take_line)(rx, p + at, n - at, &used, err) < 0)
            return -1;
        at += used;
    }
    *ret_used = at;
    return 0;
}
