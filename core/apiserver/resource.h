/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_RESOURCE_H
#define CORE_APISERVER_RESOURCE_H

/*
 * Resources: tables as the API shows them. Records go out and attributes come
 * in through these functions.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/store/store.h"

struct err;
struct jsn;
struct jsn_w;

struct resource {
    enum store_table table;
    const char *one;  /* "container": the key around attributes in a body */
    const char *many; /* "containers": in paths */
    const char *model; /* "Container": in the discovery document */
    const char *kind; /* "arvados#container" */
    const char *infix; /* "dz642" */
};

/* NULL = none: for tables that are not shown. */
const struct resource *resource_of(enum store_table t);
const struct resource *resource_of_kind(const char *kind);
/* i-th resource, NULL at the end. */
const struct resource *resource_at(size_t i);

/* What of a record is shown. */
struct resource_view {
    uint64_t cols; /* columns to show */
    bool kind;
    bool etag;
};

/* Everything a client may see. */
void resource_view_all(const struct resource *r, struct resource_view *ret);
/* The columns that must be read for a view. */
uint64_t resource_view_cols(const struct resource *r,
                            const struct resource_view *v);
/* From `select`: an array of names. ERR_INVALID: empty, unknown, private. */
int resource_view_select(const struct resource *r, const struct jsn *select,
                         struct resource_view *ret, struct err *err);

/* One record as an object; key as in jsn_w_obj. */
void resource_write(const struct resource *r, const struct resource_view *v,
                    const struct store_row *row, struct jsn_w *w,
                    const char *key);
/* The members only: the object is open already. */
void resource_write_members(const struct resource *r,
                            const struct resource_view *v,
                            const struct store_row *row, struct jsn_w *w);

/*
 * Attributes of a client as a row: types are checked, JSON becomes its
 * canonical text. Fields that a client sends back but nobody may set
 * (created_at, etag, kind, ...) are left out. ERR_INVALID names the attribute.
 * Private columns are accepted if they are in `secret` (write-only fields).
 */
int resource_read(const struct resource *r, const struct jsn *attrs,
                  uint64_t secret, struct store_row *ret, struct err *err);

#endif
