/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records out, attributes in: between rows of the store and JSON.
 *
 * Which columns exist, of which type, and which of them are nobody's business
 * is in the store's schema; this file adds what only the API has: the names of
 * resources, `kind`, `etag`. JSON columns hold canonical text, so that a record
 * is written without parsing anything: a page of a thousand costs what its
 * bytes cost.
 *
 * Any thread; no state.
 */
#include "core/apiserver/resource.h"

#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"

enum { JSON_TEXT_MAX = 64 << 20 };

static const struct resource resources[] = {
    {STORE_CONTAINERS, "container", "containers", "Container",
     "arvados#container", "dz642"},
    {STORE_REQUESTS, "container_request", "container_requests",
     "ContainerRequest", "arvados#containerRequest", "xvhdp"},
    {STORE_TOKENS, "api_client_authorization", "api_client_authorizations",
     "ApiClientAuthorization", "arvados#apiClientAuthorization", "gj3su"},
    {STORE_COLLECTIONS, "collection", "collections", "Collection",
     "arvados#collection", "4zz18"},
};

const struct resource *resource_of(enum store_table t)
{
    for (size_t i = 0; i < MEM_COUNT(resources); i++)
        if (resources[i].table == t)
            return &resources[i];
    return NULL;
}

const struct resource *resource_of_kind(const char *kind)
{
    for (size_t i = 0; i < MEM_COUNT(resources); i++)
        if (strcmp(resources[i].kind, kind) == 0)
            return &resources[i];
    return NULL;
}

const struct resource *resource_at(size_t i)
{
    return i < MEM_COUNT(resources) ? &resources[i] : NULL;
}

/* ---------------------------------------------------------------- out -- */

void resource_view_all(const struct resource *r, struct resource_view *ret)
{
    *ret = (struct resource_view){.kind = true, .etag = true};
    for (unsigned col = 0; col < store_col_count(r->table); col++)
        if (!(store_col(r->table, col)->flags & STORE_PRIVATE))
            ret->cols |= STORE_BIT(col);
}

uint64_t resource_view_cols(const struct resource *r,
                            const struct resource_view *v)
{
    int modified = store_col_of(r->table, "modified_at");

    return v->cols | STORE_BIT(0) | (v->etag ? STORE_BIT(modified) : 0);
}

static int select_name(const struct resource *r, const char *name,
                       struct resource_view *v, struct err *err)
{
    int col = store_col_of(r->table, name);

    if (strcmp(name, "kind") == 0)
        v->kind = true;
    else if (strcmp(name, "etag") == 0)
        v->etag = true;
    else if (col < 0 || store_col(r->table, (unsigned) col)->flags &
                            STORE_PRIVATE)
        return err_set(err, ERR_INVALID,
                       "Invalid attribute in select: %.100s", name);
    else
        v->cols |= STORE_BIT(col);
    return 0;
}

int resource_view_select(const struct resource *r, const struct jsn *select,
                         struct resource_view *ret, struct err *err)
{
    struct resource_view v = {0};
    const char *name;

    if (jsn_type(select) != JSN_ARRAY || jsn_count(select) == 0)
        return err_set(err, ERR_INVALID,
                       "select must be an array of attribute names");
    for (size_t i = 0; i < jsn_count(select); i++)
        if (jsn_as_str(jsn_at(select, i), &name, err) < 0 ||
            select_name(r, name, &v, err) < 0)
            return err_prefix(err, "select");
    *ret = v;
    return 0;
}

/* Opaque: changes when the record does. FNV-1a over what says so. */
static void write_etag(const struct resource *r, const struct store_row *row,
                       struct jsn_w *w)
{
    uint64_t h = UINT64_C(14695981039346656037);
    int64_t us = store_i64(row, (unsigned) store_col_of(r->table,
                                                        "modified_at"));
    uint8_t bytes[13];
    char text[14];

    for (const char *s = store_str(row, 0); *s; s++)
        h = (h ^ (unsigned char) *s) * UINT64_C(1099511628211);
    for (int i = 0; i < 8; i++)
        h = (h ^ ((uint64_t) us >> 8 * i & 0xff)) * UINT64_C(1099511628211);
    for (size_t i = 0; i < sizeof bytes; i++, h /= 36)
        bytes[i] = (uint8_t) (h % 36);
    text_base36(bytes, sizeof bytes, text);
    jsn_w_str(w, "etag", text);
}

static void write_column(const struct store_col *c,
                         const struct store_value *v, struct jsn_w *w)
{
    if (v->kind == STORE_NULL) {
        jsn_w_null(w, c->name);
        return;
    }
    switch (c->type) {
    case STORE_STR:
        jsn_w_strn(w, c->name, v->s, v->n);
        break;
    case STORE_I64:
        jsn_w_i64(w, c->name, v->i);
        break;
    case STORE_F64:
        jsn_w_f64(w, c->name, v->kind == STORE_INT ? (double) v->i : v->f);
        break;
    case STORE_BOOL:
        jsn_w_bool(w, c->name, v->i != 0);
        break;
    case STORE_TIME:
        jsn_w_time(w, c->name, v->i);
        break;
    case STORE_JSON:
        jsn_w_raw(w, c->name, v->s);
        break;
    }
}

void resource_write_members(const struct resource *r,
                            const struct resource_view *v,
                            const struct store_row *row, struct jsn_w *w)
{
    if (v->kind)
        jsn_w_str(w, "kind", r->kind);
    if (v->etag)
        write_etag(r, row, w);
    for (uint64_t left = v->cols & row->set; left; left &= left - 1) {
        unsigned col = (unsigned) __builtin_ctzll(left);
        write_column(store_col(r->table, col), &row->v[col], w);
    }
}

void resource_write(const struct resource *r, const struct resource_view *v,
                    const struct store_row *row, struct jsn_w *w,
                    const char *key)
{
    jsn_w_obj(w, key);
    resource_write_members(r, v, row, w);
    jsn_w_end_obj(w);
}

/* ----------------------------------------------------------------- in -- */

/* Sent back by clients that change a record they have read. */
static bool is_ignored(const char *name)
{
    static const char *const names[] = {
        "kind", "etag", "href", "created_at", "modified_at",
        "modified_by_user_uuid", "modified_by_client_uuid",
        "unsigned_manifest_text"};

    for (size_t i = 0; i < MEM_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int read_json(struct store_row *row, unsigned col,
                     const struct jsn *v, struct err *err)
{
    struct buf text;

    if (jsn_type(v) != JSN_ARRAY && jsn_type(v) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "must be an array or object");
    buf_init(&text, JSON_TEXT_MAX);
    if (jsn_print(v, true, &text) < 0) {
        buf_fini(&text);
        return err_set(err, ERR_TOO_LARGE, "too long");
    }
    store_set_strn(row, col, text.data, text.len);
    buf_fini(&text);
    return 0;
}

static int read_value(struct store_row *row, unsigned col,
                      const struct store_col *c, const struct jsn *v,
                      struct err *err)
{
    const char *s;
    int64_t i;
    double f;
    bool b;

    switch (c->type) {
    case STORE_STR:
        if (jsn_as_str(v, &s, err) < 0)
            return -1;
        store_set_str(row, col, s);
        return 0;
    case STORE_I64:
        if (jsn_as_i64(v, &i, err) < 0)
            return -1;
        store_set_i64(row, col, i);
        return 0;
    case STORE_F64:
        if (jsn_as_f64(v, &f, err) < 0)
            return -1;
        store_set_f64(row, col, f);
        return 0;
    case STORE_BOOL:
        if (jsn_as_bool(v, &b, err) < 0)
            return -1;
        store_set_i64(row, col, b);
        return 0;
    case STORE_TIME:
        if (jsn_as_str(v, &s, err) < 0 || text_parse_time(s, &i, err) < 0)
            return -1;
        store_set_i64(row, col, i);
        return 0;
    case STORE_JSON:
        return read_json(row, col, v, err);
    }
    return -1;
}

/* Null in a column that cannot hold it means: what it was made with. */
static void read_null(struct store_row *row, unsigned col,
                      const struct store_col *c)
{
    if (c->flags & STORE_NULLABLE)
        store_set_null(row, col);
}

static int read_attr(const struct resource *r, const char *name,
                     const struct jsn *v, uint64_t secret,
                     struct store_row *row, struct err *err)
{
    int col = store_col_of(r->table, name);
    const struct store_col *c;

    if (is_ignored(name))
        return 0;
    if (col < 0)
        return err_set(err, ERR_INVALID, "unknown attribute '%.100s' for %s",
                       name, r->model);
    c = store_col(r->table, (unsigned) col);
    if (c->flags & STORE_PRIVATE && !(secret & STORE_BIT(col)))
        return err_set(err, ERR_INVALID, "unknown attribute '%.100s' for %s",
                       name, r->model);
    if (jsn_type(v) == JSN_NULL)
        read_null(row, (unsigned) col, c);
    else if (read_value(row, (unsigned) col, c, v, err) < 0)
        return err_prefix(err, "%s", name);
    return 0;
}

int resource_read(const struct resource *r, const struct jsn *attrs,
                  uint64_t secret, struct store_row *ret, struct err *err)
{
    struct jsn_iter it = {0};

    if (jsn_type(attrs) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "%s must be an object", r->one);
    while (jsn_next(attrs, &it))
        if (read_attr(r, it.key, it.value, secret, ret, err) < 0)
            return -1;
    return 0;
}
