/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows: small records of typed values, one slot per column of a table.
 *
 * A row is either what the database holds or the changes to be made; `set`
 * tells which slots have a meaning. Texts that were put in by a setter belong
 * to the row (`owned`), texts that a walk over a query shows are borrowed. The
 * getters answer "" and 0 for what is not there, so that callers which have
 * checked once need not check again.
 *
 * Any thread, one at a time per row.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/store/store.h"

static void drop(struct store_row *row, unsigned col)
{
    if (row->owned & STORE_BIT(col))
        free((char *) (uintptr_t) row->v[col].s);
    row->owned &= ~STORE_BIT(col);
}

static struct store_value *slot(struct store_row *row, unsigned col,
                                enum store_kind kind)
{
    assert(col < STORE_COLS_MAX);
    drop(row, col);
    row->set |= STORE_BIT(col);
    row->v[col] = (struct store_value){.kind = kind};
    return &row->v[col];
}

void store_row_fini(struct store_row *row)
{
    for (unsigned col = 0; row->owned && col < STORE_COLS_MAX; col++)
        drop(row, col);
    row->set = 0;
}

void store_set_strn(struct store_row *row, unsigned col, const char *s,
                    size_t n)
{
    char *copy = mem_strndup(s, n); /* before the slot: s may be its own */
    struct store_value *v = slot(row, col, STORE_TEXT);

    v->s = copy;
    v->n = n;
    row->owned |= STORE_BIT(col);
}

void store_set_str(struct store_row *row, unsigned col, const char *s)
{
    if (s)
        store_set_strn(row, col, s, strlen(s));
    else
        store_set_null(row, col);
}

void store_set_i64(struct store_row *row, unsigned col, int64_t i)
{
    slot(row, col, STORE_INT)->i = i;
}

void store_set_f64(struct store_row *row, unsigned col, double f)
{
    slot(row, col, STORE_REAL)->f = f;
}

void store_set_null(struct store_row *row, unsigned col)
{
    slot(row, col, STORE_NULL);
}

void store_set_value(struct store_row *row, unsigned col,
                     const struct store_value *v)
{
    if (v->kind == STORE_TEXT)
        store_set_strn(row, col, v->s, v->n);
    else
        *slot(row, col, v->kind) = *v;
}

void store_unset(struct store_row *row, unsigned col)
{
    drop(row, col);
    row->set &= ~STORE_BIT(col);
}

void store_row_merge(struct store_row *to, const struct store_row *from)
{
    for (unsigned col = 0; col < STORE_COLS_MAX; col++)
        if (from->set & STORE_BIT(col))
            store_set_value(to, col, &from->v[col]);
}

static const struct store_value *value_of(const struct store_row *row,
                                          unsigned col, enum store_kind kind)
{
    assert(col < STORE_COLS_MAX);
    if (!(row->set & STORE_BIT(col)) || row->v[col].kind != kind)
        return NULL;
    return &row->v[col];
}

const char *store_str(const struct store_row *row, unsigned col)
{
    const struct store_value *v = value_of(row, col, STORE_TEXT);

    return v ? v->s : "";
}

int64_t store_i64(const struct store_row *row, unsigned col)
{
    const struct store_value *v = value_of(row, col, STORE_INT);

    return v ? v->i : 0;
}

double store_f64(const struct store_row *row, unsigned col)
{
    const struct store_value *v = value_of(row, col, STORE_REAL);

    return v ? v->f : 0;
}

bool store_has(const struct store_row *row, unsigned col)
{
    return row->set & STORE_BIT(col) && row->v[col].kind != STORE_NULL;
}

bool store_value_equal(const struct store_value *a,
                       const struct store_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case STORE_NULL:
        return true;
    case STORE_INT:
        return a->i == b->i;
    case STORE_REAL:
        return a->f == b->f;
    case STORE_TEXT:
        return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
    }
    return false;
}
