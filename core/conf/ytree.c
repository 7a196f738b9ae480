/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML text to a tree of our own, by libyaml's event interface.
 *
 * Why events and a tree of ours, not libyaml's documents: limits must hold
 * before memory is spent, lines must survive into every message, and a
 * hand-made alias bomb must cost no more than the node limit. Steps:
 *
 *   1. events are read one by one and built into nodes; depth and number are
 *      checked at each; an anchored node is remembered by name;
 *   2. an alias becomes a deep copy of its anchor (every copied node counts),
 *      so that each node has one parent and freeing is trivial;
 *   3. a map's `<<` members are merged: own keys win over merged ones, the
 *      first of several merged maps over the later ones;
 *   4. duplicate keys are refused.
 *
 * The parse is refused with the line of what was wrong. Nothing here knows
 * what a setting is. Called once at the start of a program, any thread.
 */
#include "core/conf/ytree.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/vec.h"

struct anchor {
    char *name;
    const struct ytree *node;
};

struct reader {
    yaml_parser_t parser;
    const char *name;
    size_t nodes;
    unsigned depth;
    VEC(struct anchor) anchors;
    VEC(struct ytree *) merged; /* kept: anchors may point into them */
};

static int refuse(const struct reader *r, unsigned line, struct err *err,
                  const char *what)
{
    return err_set(err, ERR_CONFIG, "%s:%u: %s", r->name, line, what);
}

static struct ytree *node_create(struct reader *r, enum ytree_kind kind,
                                     unsigned line)
{
    struct ytree *node = MEM_NEW(struct ytree);

    node->kind = kind;
    node->line = line;
    r->nodes++;
    return node;
}

void ytree_free(struct ytree *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->n; i++)
        ytree_free(node->v[i]);
    free(node->v);
    free(node->key);
    free(node->text);
    free(node);
}

static void node_add(struct ytree *parent, struct ytree *child)
{
    if (!(parent->n & (parent->n - 1)))
        parent->v = mem_realloc(parent->v, parent->n ? 2 * parent->n : 1,
                                sizeof *parent->v);
    parent->v[parent->n++] = child;
}

/* NULL when the limit on nodes is reached. */
static struct ytree *node_copy(struct reader *r,
                                   const struct ytree *from)
{
    struct ytree *to;

    if (r->nodes >= YTREE_NODES)
        return NULL;
    to = node_create(r, from->kind, from->line);
    to->text = mem_strdup(from->text);
    to->key = mem_strdup(from->key);
    to->quoted = from->quoted;
    for (size_t i = 0; i < from->n; i++) {
        struct ytree *child = node_copy(r, from->v[i]);

        if (!child) {
            ytree_free(to);
            return NULL;
        }
        node_add(to, child);
    }
    return to;
}

struct ytree *ytree_get(const struct ytree *map, const char *key)
{
    if (!map || map->kind != YTREE_MAP)
        return NULL;
    for (size_t i = 0; i < map->n; i++)
        if (!strcmp(map->v[i]->key, key))
            return map->v[i];
    return NULL;
}

/* Copy the members of `from` that `into` lacks. */
static int merge_map(struct reader *r, struct ytree *into,
                     const struct ytree *from, struct err *err)
{
    if (from->kind != YTREE_MAP)
        return refuse(r, from->line, err, "`<<` needs a map or a list of maps");
    for (size_t i = 0; i < from->n; i++) {
        struct ytree *copy;

        if (ytree_get(into, from->v[i]->key))
            continue;
        copy = node_copy(r, from->v[i]);
        if (!copy)
            return refuse(r, from->line, err, "too many values");
        node_add(into, copy);
    }
    return 0;
}

static int merge(struct reader *r, struct ytree *map,
                 const struct ytree *source, struct err *err)
{
    if (source->kind != YTREE_SEQ)
        return merge_map(r, map, source, err);
    for (size_t i = 0; i < source->n; i++)
        if (merge_map(r, map, source->v[i], err) < 0)
            return -1;
    return 0;
}

static int next_event(struct reader *r, yaml_event_t *ev, struct err *err)
{
    if (yaml_parser_parse(&r->parser, ev))
        return 0;
    return err_set(err, ERR_CONFIG, "%s:%zu: %s", r->name,
                   r->parser.problem_mark.line + 1,
                   r->parser.problem ? r->parser.problem : "malformed YAML");
}

static int read_node(struct reader *r, yaml_event_t *ev,
                     struct ytree **ret, struct err *err);

static unsigned line_of(const yaml_event_t *ev)
{
    return (unsigned) ev->start_mark.line + 1;
}

static void remember(struct reader *r, const yaml_char_t *anchor,
                     const struct ytree *node)
{
    struct anchor a = { .node = node };

    if (!anchor)
        return;
    a.name = mem_strdup((const char *) anchor);
    VEC_PUSH(&r->anchors, a);
}

static int read_alias(struct reader *r, const yaml_event_t *ev,
                      struct ytree **ret, struct err *err)
{
    const char *name = (const char *) ev->data.alias.anchor;

    for (size_t i = r->anchors.n; i-- > 0;) {
        if (strcmp(r->anchors.v[i].name, name) != 0)
            continue;
        *ret = node_copy(r, r->anchors.v[i].node);
        if (!*ret)
            return refuse(r, line_of(ev), err, "too many values");
        free((*ret)->key);
        (*ret)->key = NULL;
        (*ret)->line = line_of(ev);
        return 0;
    }
    return refuse(r, line_of(ev), err, "alias of an anchor not seen before");
}

static int read_scalar(struct reader *r, const yaml_event_t *ev,
                       struct ytree **ret, struct err *err)
{
    size_t n = ev->data.scalar.length;
    const char *text = (const char *) ev->data.scalar.value;

    if (strlen(text) != n)
        return refuse(r, line_of(ev), err, "a value contains a NUL byte");
    *ret = node_create(r, YTREE_SCALAR, line_of(ev));
    (*ret)->text = mem_strdup(text);
    (*ret)->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    remember(r, ev->data.scalar.anchor, *ret);
    return 0;
}

static int read_seq(struct reader *r, struct ytree *seq, struct err *err)
{
    for (;;) {
        yaml_event_t ev;
        struct ytree *child = NULL;
        int rc;

        if (next_event(r, &ev, err) < 0)
            return -1;
        if (ev.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&ev);
            return 0;
        }
        rc = read_node(r, &ev, &child, err);
        yaml_event_delete(&ev);
        if (rc < 0)
            return -1;
        node_add(seq, child);
    }
}

/* The value after a key: into the map, or merged into it. */
static int read_member(struct reader *r, struct ytree *map,
                       const char *key, bool plain_key,
                       struct ytree *merges, struct err *err)
{
    yaml_event_t ev;
    struct ytree *child = NULL;
    int rc;

    if (next_event(r, &ev, err) < 0)
        return -1;
    rc = read_node(r, &ev, &child, err);
    yaml_event_delete(&ev);
    if (rc < 0)
        return -1;
    if (plain_key && !strcmp(key, "<<")) {
        node_add(merges, child);
        return 0;
    }
    if (ytree_get(map, key)) {
        err_set(err, ERR_CONFIG, "%s:%u: key %s is there twice", r->name,
                child->line, key);
        ytree_free(child);
        return -1;
    }
    child->key = mem_strdup(key);
    node_add(map, child);
    return 0;
}

static int read_members(struct reader *r, struct ytree *map,
                        struct ytree *merges, struct err *err)
{
    for (;;) {
        yaml_event_t ev;
        int rc;

        if (next_event(r, &ev, err) < 0)
            return -1;
        if (ev.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&ev);
            return 0;
        }
        if (ev.type != YAML_SCALAR_EVENT)
            rc = refuse(r, line_of(&ev), err, "a key must be a plain word");
        else
            rc = read_member(r, map, (const char *) ev.data.scalar.value,
                             ev.data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
                             merges, err);
        yaml_event_delete(&ev);
        if (rc < 0)
            return -1;
    }
}

static int read_map(struct reader *r, struct ytree *map, struct err *err)
{
    struct ytree *merges = node_create(r, YTREE_SEQ, map->line);
    int rc = read_members(r, map, merges, err);

    for (size_t i = 0; rc == 0 && i < merges->n; i++)
        rc = merge(r, map, merges->v[i], err);
    VEC_PUSH(&r->merged, merges);
    return rc;
}

static int read_collection(struct reader *r, const yaml_event_t *ev,
                           struct ytree **ret, struct err *err)
{
    bool is_map = ev->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *anchor = is_map ? ev->data.mapping_start.anchor
                                       : ev->data.sequence_start.anchor;
    struct ytree *node;
    int rc;

    if (++r->depth > YTREE_DEPTH)
        return refuse(r, line_of(ev), err, "nested too deeply");
    node = node_create(r, is_map ? YTREE_MAP : YTREE_SEQ, line_of(ev));
    rc = is_map ? read_map(r, node, err) : read_seq(r, node, err);
    r->depth--;
    if (rc < 0) {
        ytree_free(node);
        return -1;
    }
    /* Only now: an alias inside its own anchor would never end. */
    remember(r, anchor, node);
    *ret = node;
    return 0;
}

static int read_node(struct reader *r, yaml_event_t *ev,
                     struct ytree **ret, struct err *err)
{
    if (r->nodes >= YTREE_NODES)
        return refuse(r, line_of(ev), err, "too many values");
    switch (ev->type) {
    case YAML_ALIAS_EVENT:
        return read_alias(r, ev, ret, err);
    case YAML_SCALAR_EVENT:
        return read_scalar(r, ev, ret, err);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return read_collection(r, ev, ret, err);
    default:
        return refuse(r, line_of(ev), err, "malformed YAML");
    }
}

/* Read events up to the one wanted; anything else is malformed. */
static int expect(struct reader *r, yaml_event_type_t want, struct err *err)
{
    yaml_event_t ev;
    int rc = 0;

    if (next_event(r, &ev, err) < 0)
        return -1;
    if (ev.type != want)
        rc = refuse(r, line_of(&ev), err,
                    want == YAML_STREAM_END_EVENT
                        ? "more than one document"
                        : "nothing but comments in this file");
    yaml_event_delete(&ev);
    return rc;
}

static int read_stream(struct reader *r, struct ytree **ret,
                       struct err *err)
{
    yaml_event_t ev;
    int rc;

    if (expect(r, YAML_STREAM_START_EVENT, err) < 0 ||
        expect(r, YAML_DOCUMENT_START_EVENT, err) < 0 ||
        next_event(r, &ev, err) < 0)
        return -1;
    rc = read_node(r, &ev, ret, err);
    yaml_event_delete(&ev);
    if (rc < 0)
        return -1;
    if (expect(r, YAML_DOCUMENT_END_EVENT, err) < 0)
        return -1;
    return expect(r, YAML_STREAM_END_EVENT, err);
}

int ytree_parse(const char *text, size_t n, const char *name,
               struct ytree **ret, struct err *err)
{
    struct reader r = { .name = name };
    struct ytree *root = NULL;
    int rc;

    if (n > YTREE_FILE_MAX)
        return err_set(err, ERR_CONFIG, "%s: larger than 4 MiB", name);
    if (!yaml_parser_initialize(&r.parser))
        return err_set(err, ERR_INTERNAL, "%s: no memory for a parser", name);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *) text, n);
    rc = read_stream(&r, &root, err);
    yaml_parser_delete(&r.parser);
    for (size_t i = 0; i < r.anchors.n; i++)
        free(r.anchors.v[i].name);
    VEC_FINI(&r.anchors);
    for (size_t i = 0; i < r.merged.n; i++)
        ytree_free(r.merged.v[i]);
    VEC_FINI(&r.merged);
    if (rc < 0) {
        ytree_free(root);
        return -1;
    }
    *ret = root;
    return 0;
}

/* --- meaning of scalars --------------------------------------------------- */

bool ytree_is_null(const struct ytree *node)
{
    const char *t;

    if (!node)
        return true;
    if (node->kind != YTREE_SCALAR || node->quoted)
        return false;
    t = node->text;
    return !*t || !strcmp(t, "~") || !strcmp(t, "null") ||
           !strcmp(t, "Null") || !strcmp(t, "NULL");
}

int ytree_bool(const struct ytree *node, bool *ret)
{
    static const char *const yes[] = { "y", "yes", "true", "on" };
    static const char *const no[] = { "n", "no", "false", "off" };

    if (node->kind != YTREE_SCALAR || node->quoted)
        return -1;
    for (size_t i = 0; i < MEM_COUNT(yes); i++) {
        if (!strcasecmp(node->text, yes[i]))
            return *ret = true, 0;
        if (!strcasecmp(node->text, no[i]))
            return *ret = false, 0;
    }
    return -1;
}

/* A plain scalar that is a decimal number in JSON's spelling. */
static bool is_number(const char *t)
{
    char *end;
    double d;

    if (*t == '-')
        t++;
    if (!isdigit((unsigned char) *t) ||
        (*t == '0' && isdigit((unsigned char) t[1])))
        return false;
    if (strspn(t, "0123456789.eE+-") != strlen(t))
        return false;
    errno = 0;
    d = strtod(t, &end);
    return !*end && !errno && isfinite(d) && end[-1] != '.';
}

static void write_scalar(const struct ytree *node, struct jsn_w *w,
                         const char *key)
{
    bool b;

    if (ytree_is_null(node))
        jsn_w_null(w, key);
    else if (ytree_bool(node, &b) == 0)
        jsn_w_bool(w, key, b);
    else if (!node->quoted && is_number(node->text))
        jsn_w_raw(w, key, node->text);
    else
        jsn_w_str(w, key, node->text);
}

static void write_node(const struct ytree *node, struct jsn_w *w,
                       const char *key)
{
    if (node->kind == YTREE_SCALAR) {
        write_scalar(node, w, key);
        return;
    }
    if (node->kind == YTREE_MAP)
        jsn_w_obj(w, key);
    else
        jsn_w_arr(w, key);
    for (size_t i = 0; i < node->n; i++)
        write_node(node->v[i], w, node->v[i]->key);
    if (node->kind == YTREE_MAP)
        jsn_w_end_obj(w);
    else
        jsn_w_end_arr(w);
}

int ytree_to_json(const struct ytree *node, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    write_node(node, &w, NULL);
    return out->over ? -1 : 0;
}
