/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_FILTERS_H
#define CORE_APISERVER_FILTERS_H

/*
 * The parameters `filters` and `order` of a list as a query of the store.
 * Pure. Source: Arvados API, "Common resource methods" (filters, order,
 * select).
 */

#include "core/base/vec.h"
#include "core/store/store.h"

struct err;
struct jsn;
struct resource;

enum { FILTERS_MAX = 100, FILTERS_OPERANDS_MAX = 20000 };

/* Conditions and order, with the values they point to. Starts as {0}. Texts
 * are borrowed from the parsed filters unless they are in `texts`. */
struct filters {
    VEC(struct store_cond) conds;
    VEC(struct store_order) order;
    VEC(struct store_value *) values; /* arrays that conditions point to */
    VEC(char *) texts;
};

void filters_fini(struct filters *f);

/* Let f own a text that a value points to. */
char *filters_keep(struct filters *f, char *text);

/* Add the conditions of a `filters` array. ERR_INVALID names the element. */
int filters_read(struct filters *f, const struct resource *r,
                 const struct jsn *filters, struct err *err);

/*
 * Add the order. Elements are "attr", "attr asc", "attr desc"; unknown ones
 * are ignored, as in Arvados. Then modified_at desc and uuid desc follow; the
 * list ends at the first unique column; columns outside `cols` (a select) are
 * dropped.
 */
void filters_order_add(struct filters *f, const struct resource *r,
                       const char *element);
void filters_order_end(struct filters *f, const struct resource *r,
                       uint64_t cols);

#endif
