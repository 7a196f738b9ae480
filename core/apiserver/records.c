/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists and single records, the same for every resource.
 *
 * A page is written straight from the database's rows into the reply: its cost
 * is that of the page, whatever the length of the table, as long as an index
 * fits the order (core/store lists them). `count=none` saves counting all
 * matches. A page ends early when it grows large, so that a short page is not
 * the last one: only an empty page is. Rows of others are left out by the
 * query, never by a look at the result.
 *
 * READ lane.
 */
#include "core/apiserver/records.h"

#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/filters.h"
#include "core/base/err.h"
#include "core/base/mem.h"

enum { LIST_DEFAULT = 100, PAGE_BYTES = 16 << 20 };

struct list {
    struct call *c;
    const struct resource *r;
    struct resource_view view;
    struct filters filters;
    struct store_query q;
    bool count;
    struct jsn_w w;
};

static void list_fini(struct list *l)
{
    filters_fini(&l->filters);
}

static int read_order(struct list *l, struct err *err)
{
    const char *text = params_text(&l->c->params, "order"), *s;
    const struct jsn *order = NULL;

    if (text && text[strspn(text, " ")] != '[') {
        while (*text) {
            size_t n = strcspn(text, ",");
            CLEANUP(mem_free) char *element = mem_strndup(text, n);
            filters_order_add(&l->filters, l->r, element);
            text += n + (text[n] == ',');
        }
        return 0;
    }
    if (params_json(&l->c->params, "order", &order, err) < 0)
        return -1;
    if (order && jsn_type(order) != JSN_ARRAY)
        return err_set(err, ERR_INVALID, "order must be an array");
    for (size_t i = 0; i < jsn_count(order); i++) {
        if (jsn_as_str(jsn_at(order, i), &s, err) < 0)
            return err_prefix(err, "order");
        filters_order_add(&l->filters, l->r, s);
    }
    return 0;
}

static int read_limits(struct list *l, struct err *err)
{
    const char *count = params_text(&l->c->params, "count");
    bool ignored = false;

    l->q.limit = LIST_DEFAULT;
    if (params_i64(&l->c->params, "limit", &l->q.limit, err) < 0 ||
        params_i64(&l->c->params, "offset", &l->q.offset, err) < 0 ||
        params_bool(&l->c->params, "distinct", &l->q.distinct, err) < 0 ||
        params_bool(&l->c->params, "include_trash", &ignored, err) < 0)
        return -1;
    if (l->q.limit < 0 || l->q.offset < 0)
        return err_set(err, ERR_INVALID,
                       "limit and offset must not be negative");
    if (l->q.limit > l->c->app->cfg.max_items)
        l->q.limit = l->c->app->cfg.max_items;
    l->count = !count || !*count || strcmp(count, "exact") == 0;
    if (!l->count && strcmp(count, "none") != 0)
        return err_set(err, ERR_INVALID, "count must be exact or none");
    return 0;
}

/* Manifests are long: a list shows them only when asked. */
static void trim_view(struct list *l)
{
    if (l->r->table == STORE_COLLECTIONS &&
        !params_text(&l->c->params, "select"))
        l->view.cols &= ~STORE_BIT(L_manifest_text);
    l->view.kind = true;
}

static int list_read(struct list *l, struct err *err)
{
    const struct jsn *filters = NULL;

    if (call_view(l->c, l->r, &l->view, err) < 0 ||
        params_json(&l->c->params, "filters", &filters, err) < 0 ||
        (filters && filters_read(&l->filters, l->r, filters, err) < 0) ||
        read_order(l, err) < 0 || read_limits(l, err) < 0)
        return -1;
    trim_view(l);
    filters_order_end(&l->filters, l->r, l->view.cols);
    l->q.table = l->r->table;
    l->q.cols = l->q.distinct ? l->view.cols
                              : resource_view_cols(l->r, &l->view);
    l->q.conds = l->filters.conds.v;
    l->q.n_conds = l->filters.conds.n;
    l->q.order = l->filters.order.v;
    l->q.n_order = l->filters.order.n;
    l->q.reader = who_reader(&l->c->who);
    return 0;
}

static bool write_item(void *arg, const struct store_row *row)
{
    struct list *l = arg;

    resource_write(l->r, &l->view, row, &l->w, NULL);
    return l->w.out->len < PAGE_BYTES;
}

static int list_write(struct list *l, struct store_tx *tx, struct err *err)
{
    CLEANUP(mem_free) char *kind = mem_printf("%sList", l->r->kind);
    int64_t available = 0;

    call_json(l->c, &l->w);
    jsn_w_str(&l->w, "kind", kind);
    jsn_w_str(&l->w, "etag", "");
    jsn_w_str(&l->w, "self_link", "");
    jsn_w_i64(&l->w, "offset", l->q.offset);
    jsn_w_i64(&l->w, "limit", l->q.limit);
    jsn_w_arr(&l->w, "items");
    if (l->q.limit > 0 && store_find(tx, &l->q, write_item, l, err) < 0)
        return -1;
    jsn_w_end_arr(&l->w);
    if (l->count && store_count(tx, &l->q, &available, err) < 0)
        return -1;
    if (l->count)
        jsn_w_i64(&l->w, "items_available", available);
    jsn_w_end_obj(&l->w);
    return 0;
}

enum store_next records_list(struct call *c, struct store_tx *tx)
{
    CLEANUP(list_fini) struct list l = {
        .c = c, .r = resource_of(c->route->table)};
    struct err err = {0};

    if (list_read(&l, &err) < 0 || list_write(&l, tx, &err) < 0)
        return call_fail_err(c, &err);
    return STORE_DONE;
}

enum store_next records_get(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    const struct resource *r = resource_of(c->route->table);
    struct resource_view view;
    struct err err = {0};

    if (call_view(c, r, &view, &err) < 0 ||
        call_find(c, tx, r->table, c->id, resource_view_cols(r, &view), &row,
                  &err) < 0)
        return call_fail_err(c, &err);
    return call_record(c, &row);
}
