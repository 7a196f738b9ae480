/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing JSON: a streaming writer, and a parsed value back to text.
 *
 * Replies of ten thousand entries are written straight into the buffer that
 * goes to the socket, never built as a tree. What comes out is always valid
 * JSON: strings are repaired rather than refused, since a log field or a
 * payload's message may hold any bytes. The only thing that can go wrong is a
 * full buffer, which its owner sees in buf->over at the end.
 *
 * `comma` says whether the next item at this level needs one before it; after
 * a closing bracket that is always so, and nothing has to be stacked.
 *
 * Any thread, one writer per buffer.
 */
#include "core/base/jsn.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/base/vec.h"

void jsn_w_init(struct jsn_w *w, struct buf *out)
{
    *w = (struct jsn_w){.out = out};
}

static void put_escape(struct buf *out, unsigned char c)
{
    switch (c) {
    case '"':
        buf_puts(out, "\\\"");
        break;
    case '\\':
        buf_puts(out, "\\\\");
        break;
    case '\n':
        buf_puts(out, "\\n");
        break;
    case '\r':
        buf_puts(out, "\\r");
        break;
    case '\t':
        buf_puts(out, "\\t");
        break;
    default:
        buf_printf(out, "\\u%04x", c);
    }
}

/* The length of the start of s that needs no change. */
static size_t plain_prefix(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n) {
        unsigned char c = (unsigned char) s[i];
        uint32_t cp;
        size_t len = 1;
        if (c < 0x20 || c == '"' || c == '\\')
            break;
        if (c >= 0x80 && (len = text_utf8_char(s + i, n - i, &cp)) == 0)
            break;
        i += len;
    }
    return i;
}

static void put_string(struct buf *out, const char *s, size_t n)
{
    static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

    buf_putc(out, '"');
    while (n > 0) {
        size_t plain = plain_prefix(s, n);
        buf_append(out, s, plain);
        s += plain;
        n -= plain;
        if (n == 0)
            break;
        unsigned char c = (unsigned char) *s;
        if (c >= 0x80 || c == 0)
            buf_puts(out, replacement);
        else
            put_escape(out, c);
        s++;
        n--;
    }
    buf_putc(out, '"');
}

static void begin(struct jsn_w *w, const char *key)
{
    if (w->comma)
        buf_putc(w->out, ',');
    w->comma = true;
    if (key) {
        put_string(w->out, key, strlen(key));
        buf_putc(w->out, ':');
    }
}

static void open_level(struct jsn_w *w, const char *key, char bracket)
{
    begin(w, key);
    buf_putc(w->out, bracket);
    w->depth++;
    w->comma = false;
}

static void close_level(struct jsn_w *w, char bracket)
{
    assert(w->depth > 0);
    buf_putc(w->out, bracket);
    w->depth--;
    w->comma = true;
}

void jsn_w_obj(struct jsn_w *w, const char *key)
{
    open_level(w, key, '{');
}

void jsn_w_arr(struct jsn_w *w, const char *key)
{
    open_level(w, key, '[');
}

void jsn_w_end_obj(struct jsn_w *w)
{
    close_level(w, '}');
}

void jsn_w_end_arr(struct jsn_w *w)
{
    close_level(w, ']');
}

void jsn_w_str(struct jsn_w *w, const char *key, const char *s)
{
    if (s)
        jsn_w_strn(w, key, s, strlen(s));
    else
        jsn_w_null(w, key);
}

void jsn_w_strn(struct jsn_w *w, const char *key, const char *s, size_t n)
{
    begin(w, key);
    put_string(w->out, s, n);
}

void jsn_w_i64(struct jsn_w *w, const char *key, int64_t v)
{
    begin(w, key);
    buf_printf(w->out, "%jd", (intmax_t) v);
}

/* Always with a point or an exponent, so that it reads back as a double. */
void jsn_w_f64(struct jsn_w *w, const char *key, double v)
{
    char text[TEXT_F64_SIZE];

    if (!isfinite(v)) {
        jsn_w_null(w, key);
        return;
    }
    begin(w, key);
    text_format_f64(v, text);
    buf_puts(w->out, text);
    if (!strpbrk(text, ".e"))
        buf_puts(w->out, ".0");
}

void jsn_w_bool(struct jsn_w *w, const char *key, bool v)
{
    begin(w, key);
    buf_puts(w->out, v ? "true" : "false");
}

void jsn_w_null(struct jsn_w *w, const char *key)
{
    begin(w, key);
    buf_puts(w->out, "null");
}

void jsn_w_time(struct jsn_w *w, const char *key, int64_t us)
{
    char text[TEXT_TIME_SIZE];

    if (us)
        jsn_w_str(w, key, text_format_time(us, text));
    else
        jsn_w_null(w, key);
}

void jsn_w_raw(struct jsn_w *w, const char *key, const char *json)
{
    begin(w, key);
    buf_puts(w->out, json);
}

static int by_key(const void *a, const void *b)
{
    const struct jsn_iter *x = a;
    const struct jsn_iter *y = b;

    return strcmp(x->key, y->key);
}

static void print(struct jsn_w *w, const char *key, const struct jsn *j,
                  bool sorted);

static void print_object(struct jsn_w *w, const struct jsn *j, bool sorted)
{
    struct jsn_iter it = {0};
    VEC(struct jsn_iter) members = {0};

    /* Its size is bounded by the text that j was parsed from. */
    while (jsn_next(j, &it))
        VEC_PUSH(&members, it);
    if (sorted && members.n > 1)
        qsort(members.v, members.n, sizeof members.v[0], by_key);
    for (size_t i = 0; i < members.n; i++)
        print(w, members.v[i].key, members.v[i].value, sorted);
    VEC_FINI(&members);
}

static void print_scalar(struct jsn_w *w, const char *key,
                         const struct jsn *j)
{
    const char *s = NULL;
    int64_t i = 0;
    double f = 0;
    bool b = false;

    switch (jsn_type(j)) {
    case JSN_BOOL:
        jsn_as_bool(j, &b, NULL);
        jsn_w_bool(w, key, b);
        break;
    case JSN_INT:
        jsn_as_i64(j, &i, NULL);
        jsn_w_i64(w, key, i);
        break;
    case JSN_DOUBLE:
        jsn_as_f64(j, &f, NULL);
        jsn_w_f64(w, key, f);
        break;
    case JSN_STRING:
        jsn_as_str(j, &s, NULL);
        jsn_w_str(w, key, s);
        break;
    default:
        jsn_w_null(w, key);
    }
}

/* Recursion is bounded by JSN_DEPTH. */
static void print(struct jsn_w *w, const char *key, const struct jsn *j,
                  bool sorted)
{
    switch (jsn_type(j)) {
    case JSN_OBJECT:
        jsn_w_obj(w, key);
        print_object(w, j, sorted);
        jsn_w_end_obj(w);
        break;
    case JSN_ARRAY:
        jsn_w_arr(w, key);
        for (size_t i = 0; i < jsn_count(j); i++)
            print(w, NULL, jsn_at(j, i), sorted);
        jsn_w_end_arr(w);
        break;
    default:
        print_scalar(w, key, j);
    }
}

void jsn_w_value(struct jsn_w *w, const char *key, const struct jsn *v)
{
    print(w, key, v, false);
}

int jsn_print(const struct jsn *j, bool sorted, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    print(&w, NULL, j, sorted);
    return out->over ? -1 : 0;
}
