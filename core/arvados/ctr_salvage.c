/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Getting the outline of a record that our JSON parser refuses.
 *
 * A server may hand out JSON that is well formed but beyond what we hold: an
 * integer of thirty digits as a number of cores, a mount's content nested a
 * hundred deep. Somebody's request, committed once, would otherwise fail every
 * page of the queue that it is on. So when a page does not parse, it is cut
 * into its items by matching brackets and quotes, nothing more; an item that
 * fails by itself yields uuid, state, priority and lock, and is marked
 * invalid, upon which the dispatcher cancels it with the reason.
 *
 * The scanner looks at the outermost level only, never recurses, and never
 * reads beyond the text. Pure; called from api_wire.c.
 */

#include "core/arvados/ctr_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/model/ctr.h"

struct span {
    const char *p, *end;
};

static void skip_blanks(struct span *s)
{
    while (s->p < s->end && strchr(" \t\r\n", *s->p) && *s->p)
        s->p++;
}

static bool take(struct span *s, char c)
{
    skip_blanks(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

/* Past a string; *ret is what lies between its quotes, escapes and all. */
static bool take_string(struct span *s, struct span *ret)
{
    if (!take(s, '"'))
        return false;
    ret->p = s->p;
    while (s->p < s->end && *s->p != '"')
        s->p += *s->p == '\\' && s->end - s->p > 1 ? 2 : 1;
    ret->end = s->p;
    return take(s, '"');
}

/* Past one value of any kind. */
static bool take_value(struct span *s, struct span *ret)
{
    struct span ignored;
    size_t depth = 0;

    skip_blanks(s);
    ret->p = s->p;
    while (s->p < s->end) {
        char c = *s->p;

        if (c == '"') {
            if (!take_string(s, &ignored))
                return false;
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            break;
        else if (c == '}' || c == ']')
            depth--;
        s->p++;
    }
    ret->end = s->p;
    return depth == 0 && ret->end > ret->p;
}

static bool is(const struct span *s, const char *text)
{
    size_t n = strlen(text);

    return (size_t) (s->end - s->p) == n && memcmp(s->p, text, n) == 0;
}

/* Call fn for every member of the outermost object. */
static bool walk(const char *text, size_t n,
                 void (*fn)(void *arg, const struct span *key,
                            const struct span *value),
                 void *arg)
{
    struct span s = {text, text + n}, key, value;

    if (!take(&s, '{'))
        return false;
    if (take(&s, '}'))
        return true;
    do {
        if (!take_string(&s, &key) || !take(&s, ':') ||
            !take_value(&s, &value))
            return false;
        fn(arg, &key, &value);
    } while (take(&s, ','));
    return take(&s, '}');
}

/* A string without escapes, or "". */
static void copy_plain(const struct span *value, char *out, size_t size)
{
    struct span s = *value, text;

    if (take_string(&s, &text) && (size_t) (text.end - text.p) < size &&
        !memchr(text.p, '\\', (size_t) (text.end - text.p)))
        text_copy(out, text.p, (size_t) (text.end - text.p) + 1);
}

static void note(void *arg, const struct span *key, const struct span *value)
{
    struct ctr *c = arg;
    char text[40] = "";

    if (is(key, "uuid")) {
        copy_plain(value, c->uuid, sizeof c->uuid);
    } else if (is(key, "locked_by_uuid")) {
        copy_plain(value, c->locked_by, sizeof c->locked_by);
    } else if (is(key, "state")) {
        copy_plain(value, text, sizeof text);
        ctr_state_of(text, &c->state);
    } else if (is(key, "priority")) {
        snprintf(text, sizeof text, "%.*s", (int) (value->end - value->p),
                 value->p);
        c->priority = strtoll(text, NULL, 10);
    }
}

int ctr_salvage(const char *text, size_t n, const char *why, struct ctr *ret)
{
    struct ctr c = {.state = CTR_STATE_COUNT};

    if (!walk(text, n, note, &c) || !text_is_uuid(c.uuid, "dz642") ||
        c.state == CTR_STATE_COUNT || c.priority < 0)
        return -1;
    snprintf(c.invalid, sizeof c.invalid, "the record cannot be decoded: %s",
             why);
    *ret = c;
    return 0;
}

struct find {
    const char *key;
    struct span found;
};

static void find_key(void *arg, const struct span *key,
                     const struct span *value)
{
    struct find *f = arg;

    if (is(key, f->key))
        f->found = *value;
}

int ctr_split(const char *text, size_t n, const char *key,
              void (*each)(void *arg, const char *text, size_t n), void *arg)
{
    struct find f = {.key = key};
    struct span item;

    if (!walk(text, n, find_key, &f) || !f.found.p || !take(&f.found, '['))
        return -1;
    if (take(&f.found, ']'))
        return 0;
    do {
        if (!take_value(&f.found, &item))
            return -1;
        each(arg, item.p, (size_t) (item.end - item.p));
    } while (take(&f.found, ','));
    return take(&f.found, ']') ? 0 : -1;
}
