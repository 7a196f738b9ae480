/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables as data: names and types of columns, made from the lists of
 * schema.h. Whoever prints a record, reads a filter or writes a statement asks
 * here, so that a column exists in exactly one place.
 *
 * Pure tables; any thread.
 */
#include <assert.h>
#include <string.h>

#include "core/store/schema.h"

struct table {
    const char *name;
    const struct store_col *cols;
    unsigned n;
};

#define COL(name, type, flags) {#name, STORE_##type, flags},
#define X(table, label, prefix, cols)                                         \
    static const struct store_col table##_cols[] = {cols(COL)};
STORE_TABLES(X)
#undef X

static const struct table tables[] = {
#define X(table, label, prefix, cols)                                         \
    [STORE_##table] = {label, table##_cols, prefix##_COUNT},
    STORE_TABLES(X)
#undef X
};

#define X(table, label, prefix, cols)                                         \
    _Static_assert((int) prefix##_COUNT <= (int) STORE_COLS_MAX,              \
                   "too many columns");
STORE_TABLES(X)
#undef X

const char *store_table_name(enum store_table t)
{
    assert(t < STORE_TABLE_COUNT);
    return tables[t].name;
}

unsigned store_col_count(enum store_table t)
{
    assert(t < STORE_TABLE_COUNT);
    return tables[t].n;
}

const struct store_col *store_col(enum store_table t, unsigned col)
{
    assert(t < STORE_TABLE_COUNT && col < tables[t].n);
    return &tables[t].cols[col];
}

int store_col_of(enum store_table t, const char *name)
{
    assert(t < STORE_TABLE_COUNT);
    for (unsigned i = 0; i < tables[t].n; i++)
        if (strcmp(tables[t].cols[i].name, name) == 0)
            return (int) i;
    return -1;
}
