/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A JSON writer for drivers, which link nothing of the core. It appends to
 * one growing text and keeps a single bit of state: whether the next value
 * needs a comma in front. Well-formed nesting is the caller's business.
 */

#include "drivers/common/jsonw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void jsonw_fini(struct jsonw *w)
{
    free(w->text);
    memset(w, 0, sizeof *w);
}

static int grow(struct jsonw *w, size_t n)
{
    size_t cap = w->cap ? w->cap : 256;
    char *text;

    while (cap < w->len + n + 1)
        cap *= 2;
    if (w->failed || cap > JSONW_MAX)
        return -1;
    if (cap == w->cap)
        return 0;
    if (!(text = realloc(w->text, cap)))
        return -1;
    w->text = text;
    w->cap = cap;
    return 0;
}

static void put(struct jsonw *w, const char *s, size_t n)
{
    if (n > JSONW_MAX || grow(w, n)) {
        w->failed = 1;
        return;
    }
    memcpy(w->text + w->len, s, n);
    w->len += n;
    w->text[w->len] = '\0';
}

static void puts_(struct jsonw *w, const char *s)
{
    put(w, s, strlen(s));
}

static void quote(struct jsonw *w, const char *s)
{
    char escape[8];

    put(w, "\"", 1);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c >= 0x20 && c != '"' && c != '\\') {
            put(w, s, 1);
            continue;
        }
        if (c < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        else
            snprintf(escape, sizeof escape, "\\%c", c);
        puts_(w, escape);
    }
    put(w, "\"", 1);
}

static void begin(struct jsonw *w, const char *key)
{
    if (w->comma)
        put(w, ",", 1);
    if (key) {
        quote(w, key);
        put(w, ":", 1);
    }
    w->comma = 1;
}

void jsonw_obj(struct jsonw *w, const char *key)
{
    begin(w, key);
    put(w, "{", 1);
    w->comma = 0;
}

void jsonw_arr(struct jsonw *w, const char *key)
{
    begin(w, key);
    put(w, "[", 1);
    w->comma = 0;
}

void jsonw_end_obj(struct jsonw *w)
{
    put(w, "}", 1);
    w->comma = 1;
}

void jsonw_end_arr(struct jsonw *w)
{
    put(w, "]", 1);
    w->comma = 1;
}

void jsonw_str(struct jsonw *w, const char *key, const char *s)
{
    begin(w, key);
    quote(w, s);
}

void jsonw_i64(struct jsonw *w, const char *key, int64_t v)
{
    char text[24];

    begin(w, key);
    snprintf(text, sizeof text, "%lld", (long long)v);
    puts_(w, text);
}

/* JSON has no infinity and no other decimal point than the point. */
void jsonw_f64(struct jsonw *w, const char *key, double v)
{
    char text[40];

    begin(w, key);
    snprintf(text, sizeof text, "%.17g", isfinite(v) ? v : 0.0);
    for (char *p = text; *p; p++)
        if (*p == ',')
            *p = '.';
    puts_(w, text);
}

void jsonw_tags(struct jsonw *w, const char *key, const struct cdc_tag *tags,
                uint32_t n)
{
    jsonw_obj(w, key);
    for (uint32_t i = 0; i < n; i++)
        jsonw_str(w, tags[i].key, tags[i].value);
    jsonw_end_obj(w);
}
