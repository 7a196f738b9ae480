/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters: what a client asks in JSON, as conditions of the store.
 *
 * A filter is [attr, operator, operand]: all must hold. An attribute may name
 * a member of a JSON column ("runtime_status.error") and, in requests, an
 * attribute of the container ("container.state"). Operands are checked against
 * the column's type here, so that the store never compares a number with a
 * word: every Arvados dispatcher asks ["priority",">","0"] with a text, times
 * are compared as microseconds. A text "(a < b)" compares two columns.
 *
 * Everything a client may get wrong is an ERR_INVALID that shows the filter;
 * nothing is guessed. Pure; any thread.
 */
#include "core/apiserver/filters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/apiserver/operand.h"
#include "core/apiserver/resource.h"
#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/text.h"

enum { KEY_MAX = 200, TEXT_MAX = 1 << 20 };

static const struct op {
    const char *name;
    enum store_op op;
} ops[] = {
    {"=", STORE_OP_EQ},         {"==", STORE_OP_EQ},
    {"!=", STORE_OP_NE},        {"<>", STORE_OP_NE},
    {"<", STORE_OP_LT},         {"<=", STORE_OP_LE},
    {">", STORE_OP_GT},         {">=", STORE_OP_GE},
    {"like", STORE_OP_LIKE},    {"ilike", STORE_OP_ILIKE},
    {"in", STORE_OP_IN},        {"not in", STORE_OP_NOT_IN},
    {"exists", STORE_OP_EXISTS}, {"contains", STORE_OP_CONTAINS},
};

void filters_fini(struct filters *f)
{
    for (size_t i = 0; i < f->values.n; i++)
        free(f->values.v[i]);
    for (size_t i = 0; i < f->texts.n; i++)
        free(f->texts.v[i]);
    VEC_FINI(&f->values);
    VEC_FINI(&f->texts);
    VEC_FINI(&f->conds);
    VEC_FINI(&f->order);
}

static struct store_value *new_values(struct filters *f, size_t n)
{
    struct store_value *v = mem_calloc(n ? n : 1, sizeof *v);

    VEC_PUSH(&f->values, v);
    return v;
}

char *filters_keep(struct filters *f, char *text)
{
    VEC_PUSH(&f->texts, text);
    return text;
}

/* --------------------------------------------------------- attributes -- */

static int find_op(const char *name, enum store_op *ret, struct err *err)
{
    for (size_t i = 0; i < MEM_COUNT(ops); i++)
        if (strcasecmp(ops[i].name, name) == 0) {
            *ret = ops[i].op;
            return 0;
        }
    return err_set(err, ERR_INVALID, "Invalid operator '%.30s'", name);
}

static int find_col(enum store_table t, const char *name, size_t n,
                    unsigned *ret, struct err *err)
{
    CLEANUP(mem_free) char *copy = mem_strndup(name, n);
    int col = store_col_of(t, copy);

    if (col < 0 || store_col(t, (unsigned) col)->flags & STORE_PRIVATE)
        return err_set(err, ERR_INVALID, "Invalid attribute '%.100s'", copy);
    *ret = (unsigned) col;
    return 0;
}

/* A member's name becomes part of a JSON path. */
static int check_key(const char *key, struct err *err)
{
    size_t n = strlen(key);

    if (n == 0 || n > KEY_MAX || strpbrk(key, "\"\\"))
        return err_set(err, ERR_INVALID, "Invalid member name '%.100s'", key);
    return 0;
}

/* "attr", "attr.key", "container.attr", "container.attr.key" */
static int read_attr(struct store_cond *c, const struct resource *r,
                     const char *attr, struct err *err)
{
    static const char prefix[] = "container.";
    const char *dot;

    c->table = r->table;
    if (r->table == STORE_REQUESTS &&
        strncmp(attr, prefix, sizeof prefix - 1) == 0) {
        c->table = STORE_CONTAINERS;
        attr += sizeof prefix - 1;
    }
    dot = strchr(attr, '.');
    if (find_col(c->table, attr, dot ? (size_t) (dot - attr) : strlen(attr),
                 &c->col, err) < 0)
        return -1;
    if (!dot)
        return 0;
    if (store_col(c->table, c->col)->type != STORE_JSON)
        return err_set(err, ERR_INVALID, "'%.100s' has no members", attr);
    c->key = dot + 1;
    return check_key(c->key, err);
}

/* ----------------------------------------------------------- operands -- */

static int read_one(struct filters *f, struct store_cond *c,
                    const struct jsn *j, struct err *err)
{
    struct store_value *v = new_values(f, 1);
    enum store_type type = store_col(c->table, c->col)->type;
    bool like = c->op == STORE_OP_LIKE || c->op == STORE_OP_ILIKE;

    if (jsn_type(j) == JSN_ARRAY && type != STORE_JSON)
        return err_set(err, ERR_INVALID, "the operand must not be an array");
    if (like && ((type != STORE_STR && type != STORE_JSON) ||
                 jsn_type(j) != JSN_STRING))
        return err_set(err, ERR_INVALID, "like compares texts only");
    if (operand_read(f, c, j, v, err) < 0)
        return -1;
    if (v->kind == STORE_NULL && c->op != STORE_OP_EQ &&
        c->op != STORE_OP_NE)
        return err_set(err, ERR_INVALID, "null goes with = and != only");
    c->v = v;
    c->n = 1;
    return 0;
}

static int read_many(struct filters *f, struct store_cond *c,
                     const struct jsn *j, struct err *err)
{
    size_t n = jsn_count(j);
    struct store_value *v;

    if (jsn_type(j) != JSN_ARRAY)
        return err_set(err, ERR_INVALID, "the operand must be an array");
    if (n > FILTERS_OPERANDS_MAX)
        return err_set(err, ERR_INVALID, "more than %d operands",
                       FILTERS_OPERANDS_MAX);
    v = new_values(f, n);
    for (size_t i = 0; i < n; i++)
        if (operand_read(f, c, jsn_at(j, i), &v[i], err) < 0)
            return -1;
    c->v = v;
    c->n = n;
    return 0;
}

/* A text or an array of texts; each element goes through `check`. */
static int read_texts(struct filters *f, struct store_cond *c,
                      const struct jsn *j, bool keys, struct err *err)
{
    size_t n = jsn_type(j) == JSN_ARRAY ? jsn_count(j) : 1;
    struct store_value *v = new_values(f, n);

    if (n == 0 || n > FILTERS_MAX)
        return err_set(err, ERR_INVALID, "1 to %d operands", FILTERS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct jsn *e = jsn_type(j) == JSN_ARRAY ? jsn_at(j, i) : j;
        if (operand_text(e, &v[i], err) < 0 ||
            (keys && check_key(v[i].s, err) < 0))
            return -1;
    }
    c->v = v;
    c->n = n;
    return 0;
}

/* ["properties", "exists", "key"] or ["properties.key", "exists", true] */
static int read_exists(struct filters *f, struct store_cond *c,
                       const struct jsn *j, struct err *err)
{
    struct store_value *v;
    bool there;

    if (!c->key)
        return read_texts(f, c, j, true, err);
    if (jsn_as_bool(j, &there, err) < 0)
        return -1;
    v = new_values(f, 1);
    v->kind = STORE_TEXT;
    v->s = c->key;
    v->n = strlen(c->key);
    c->key = NULL;
    c->v = v;
    c->n = 1;
    c->negate = !there;
    return 0;
}

/* ["container_uuid", "is_a", "arvados#container"] */
static int read_is_a(struct filters *f, struct store_cond *c,
                     const struct jsn *j, struct err *err)
{
    struct store_value *v = new_values(f, 1);
    const struct resource *r;
    const char *kind;

    if (jsn_type(j) == JSN_ARRAY && jsn_count(j) == 1)
        j = jsn_at(j, 0);
    if (jsn_as_str(j, &kind, err) < 0)
        return -1;
    if (store_col(c->table, c->col)->type != STORE_STR || c->key)
        return err_set(err, ERR_INVALID, "is_a goes with uuids only");
    if (!(r = resource_of_kind(kind)))
        return err_set(err, ERR_INVALID, "unknown kind '%.60s'", kind);
    v->kind = STORE_TEXT;
    v->s = filters_keep(f, mem_printf("_____-%s-_______________", r->infix));
    v->n = strlen(v->s);
    c->op = STORE_OP_LIKE;
    c->v = v;
    c->n = 1;
    return 0;
}

static int read_values(struct filters *f, struct store_cond *c,
                       const struct jsn *operand, struct err *err)
{
    switch (c->op) {
    case STORE_OP_IN:
    case STORE_OP_NOT_IN:
        return read_many(f, c, operand, err);
    case STORE_OP_EXISTS:
    case STORE_OP_CONTAINS:
        if (store_col(c->table, c->col)->type != STORE_JSON)
            return err_set(err, ERR_INVALID,
                           "exists and contains go with JSON only");
        return c->op == STORE_OP_EXISTS
                   ? read_exists(f, c, operand, err)
                   : read_texts(f, c, operand, false, err);
    default:
        return read_one(f, c, operand, err);
    }
}

static int read_triple(struct filters *f, const struct resource *r,
                       const struct jsn *j, struct err *err)
{
    struct store_cond c = {.other = -1};
    const char *attr, *op;

    if (jsn_count(j) != 3)
        return err_set(err, ERR_INVALID,
                       "a filter has an attribute, an operator, an operand");
    if (jsn_as_str(jsn_at(j, 0), &attr, err) < 0 ||
        jsn_as_str(jsn_at(j, 1), &op, err) < 0 ||
        read_attr(&c, r, attr, err) < 0)
        return -1;
    if (strcasecmp(op, "is_a") == 0) {
        if (read_is_a(f, &c, jsn_at(j, 2), err) < 0)
            return -1;
    } else if (find_op(op, &c.op, err) < 0 ||
               read_values(f, &c, jsn_at(j, 2), err) < 0) {
        return -1;
    }
    VEC_PUSH(&f->conds, c);
    return 0;
}

/* "(a < b)" */
static int read_comparison(struct filters *f, const struct resource *r,
                           const char *text, struct err *err)
{
    struct store_cond c = {.table = r->table};
    char a[64], op[4], b[64], rest;
    unsigned other;

    if (sscanf(text, "(%63[a-z_] %3[<>=] %63[a-z_]%c", a, op, b, &rest) != 4 ||
        rest != ')' || text[strlen(text) - 1] != ')')
        return err_set(err, ERR_INVALID, "Invalid expression '%.100s'", text);
    if (find_col(r->table, a, strlen(a), &c.col, err) < 0 ||
        find_col(r->table, b, strlen(b), &other, err) < 0 ||
        find_op(op, &c.op, err) < 0)
        return -1;
    c.other = (int) other;
    VEC_PUSH(&f->conds, c);
    return 0;
}

static int read_filter(struct filters *f, const struct resource *r,
                       const struct jsn *j, struct err *err)
{
    const char *text;

    if (jsn_type(j) == JSN_ARRAY)
        return read_triple(f, r, j, err);
    if (jsn_as_str(j, &text, err) < 0)
        return -1;
    return read_comparison(f, r, text, err);
}

/* The error shows which filter it was. */
static int blame(const struct jsn *j, struct err *err)
{
    CLEANUP(buf_fini) struct buf text;

    buf_init(&text, TEXT_MAX);
    jsn_print(j, false, &text);
    return err_prefix(err, "filter %.200s", text.data);
}

int filters_read(struct filters *f, const struct resource *r,
                 const struct jsn *filters, struct err *err)
{
    if (jsn_type(filters) != JSN_ARRAY)
        return err_set(err, ERR_INVALID, "filters must be an array");
    if (jsn_count(filters) > FILTERS_MAX)
        return err_set(err, ERR_INVALID, "more than %d filters", FILTERS_MAX);
    for (size_t i = 0; i < jsn_count(filters); i++)
        if (read_filter(f, r, jsn_at(filters, i), err) < 0)
            return blame(jsn_at(filters, i), err);
    return 0;
}

/* -------------------------------------------------------------- order -- */

static bool ordered_by(const struct filters *f, unsigned col)
{
    for (size_t i = 0; i < f->order.n; i++)
        if (f->order.v[i].col == col)
            return true;
    return false;
}

/* Column 0 is unique: nothing after it matters. */
static void push_order(struct filters *f, unsigned col, bool desc)
{
    if (!ordered_by(f, 0) && !ordered_by(f, col))
        VEC_PUSH(&f->order, (struct store_order){.col = col, .desc = desc});
}

void filters_order_add(struct filters *f, const struct resource *r,
                       const char *element)
{
    char name[64] = "", way[8] = "", table[64];
    const char *bare = name;
    unsigned col;

    if (sscanf(element, " %63[A-Za-z0-9_.] %7s", name, way) < 1)
        return;
    if (sscanf(name, "%63[a-z_].", table) == 1 &&
        strcmp(table, r->many) == 0 && name[strlen(table)] == '.')
        bare = name + strlen(table) + 1;
    if (way[0] && strcasecmp(way, "asc") && strcasecmp(way, "desc"))
        return;
    if (find_col(r->table, bare, strlen(bare), &col, NULL) == 0)
        push_order(f, col, strcasecmp(way, "desc") == 0);
}

void filters_order_end(struct filters *f, const struct resource *r,
                       uint64_t cols)
{
    push_order(f, (unsigned) store_col_of(r->table, "modified_at"), true);
    push_order(f, 0, true);
    for (size_t i = f->order.n; i-- > 0;)
        if (!(cols & STORE_BIT(f->order.v[i].col)))
            VEC_REMOVE(&f->order, i);
}
