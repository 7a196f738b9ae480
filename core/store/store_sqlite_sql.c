/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries as SQL text. Pure.
 *
 * Names come from schema.h and are never a client's; every value is a `?`,
 * bound later in the order in which the text mentions it (tx_bind_query walks
 * the same way: change both). A list of operands is one parameter, a JSON
 * array, so that the text, and with it the prepared statement, does not depend
 * on how many there are.
 *
 * Null follows the Arvados API, not SQL: `!=` and `not in` are true for null.
 * Nulls sort last, as in PostgreSQL.
 */
#include "core/base/buf.h"
#include "core/store/store_sqlite.h"

int sql_next_col(enum store_table t, uint64_t mask, int after)
{
    unsigned first = (unsigned) (after + 1);

    mask &= STORE_BIT(store_col_count(t)) - 1;
    mask &= ~(STORE_BIT(first) - 1);
    return mask ? __builtin_ctzll(mask) : -1;
}

/* What is compared: the column or a member of it. */
static void put_ref(struct buf *b, const struct store_cond *c)
{
    const char *name = store_col(c->table, c->col)->name;

    if (c->key)
        buf_printf(b, "json_extract(%s, ?)", name);
    else
        buf_puts(b, name);
}

static bool has_null(const struct store_cond *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].kind == STORE_NULL)
            return true;
    return false;
}

static void put_compare(struct buf *b, const struct store_cond *c,
                        const char *op)
{
    put_ref(b, c);
    if (c->other >= 0)
        buf_printf(b, " %s %s", op,
                   store_col(c->table, (unsigned) c->other)->name);
    else
        buf_printf(b, " %s ?", op);
}

bool sql_in_names_twice(const struct store_cond *c)
{
    return c->op == STORE_OP_NOT_IN || has_null(c);
}

static void put_in(struct buf *b, const struct store_cond *c)
{
    bool not_in = c->op == STORE_OP_NOT_IN;
    bool twice = sql_in_names_twice(c);

    if (twice) {
        buf_putc(b, '(');
        put_ref(b, c);
        buf_puts(b, not_in == has_null(c) ? " IS NOT NULL AND "
                                          : " IS NULL OR ");
    }
    put_ref(b, c);
    buf_printf(b, " %sIN (SELECT value FROM json_each(?))%s",
               not_in ? "NOT " : "", twice ? ")" : "");
}

static void put_exists(struct buf *b, const struct store_cond *c)
{
    for (size_t i = 0; i < c->n; i++)
        buf_printf(b, "%sjson_type(%s, ?) IS %sNULL", i ? " AND " : "",
                   store_col(c->table, c->col)->name,
                   c->negate ? "" : "NOT ");
}

/* json_each shows a scalar as one row without a key, an array as rows with
 * numbers, an object as rows with names: the last is not containment. */
static void put_contains(struct buf *b, const struct store_cond *c)
{
    for (size_t i = 0; i < c->n; i++)
        buf_printf(b,
                   "%sEXISTS (SELECT 1 FROM json_each(%s%s)"
                   " WHERE value = ? AND typeof(key) <> 'text')",
                   i ? " AND " : "", store_col(c->table, c->col)->name,
                   c->key ? ", ?" : "");
}

static void put_ilike(struct buf *b, const struct store_cond *c)
{
    buf_puts(b, "lower(");
    put_ref(b, c);
    buf_puts(b, ") LIKE lower(?) ESCAPE '\\'");
}

static void put_equal(struct buf *b, const struct store_cond *c)
{
    bool is_null = c->other < 0 && c->v[0].kind == STORE_NULL;

    if (!is_null) {
        put_compare(b, c, c->op == STORE_OP_EQ ? "=" : "IS NOT");
        return;
    }
    put_ref(b, c);
    buf_puts(b, c->op == STORE_OP_EQ ? " IS NULL" : " IS NOT NULL");
}

static void put_plain_cond(struct buf *b, const struct store_cond *c)
{
    switch (c->op) {
    case STORE_OP_EQ:
    case STORE_OP_NE:
        put_equal(b, c);
        break;
    case STORE_OP_LT:
        put_compare(b, c, "<");
        break;
    case STORE_OP_LE:
        put_compare(b, c, "<=");
        break;
    case STORE_OP_GT:
        put_compare(b, c, ">");
        break;
    case STORE_OP_GE:
        put_compare(b, c, ">=");
        break;
    case STORE_OP_LIKE:
        put_compare(b, c, "LIKE");
        buf_puts(b, " ESCAPE '\\'");
        break;
    case STORE_OP_ILIKE:
        put_ilike(b, c);
        break;
    case STORE_OP_IN:
    case STORE_OP_NOT_IN:
        put_in(b, c);
        break;
    case STORE_OP_EXISTS:
        put_exists(b, c);
        break;
    case STORE_OP_CONTAINS:
        put_contains(b, c);
        break;
    case STORE_OP_COUNT:
        break;
    }
}

/* True of a request that has no container at all. */
static bool holds_for_null(const struct store_cond *c)
{
    if (c->op == STORE_OP_NE)
        return c->other < 0 && c->v[0].kind != STORE_NULL;
    if (c->op == STORE_OP_NOT_IN)
        return !has_null(c);
    return c->op == STORE_OP_EQ && c->other < 0 &&
           c->v[0].kind == STORE_NULL;
}

static void put_cond(struct buf *b, const struct store_query *q,
                     const struct store_cond *c)
{
    bool joined = c->table != q->table;

    if (joined)
        buf_printf(b,
                   "(%scontainer_uuid IN (SELECT uuid FROM containers"
                   " WHERE ",
                   holds_for_null(c) ? "container_uuid IS NULL OR " : "");
    put_plain_cond(b, c);
    if (joined)
        buf_puts(b, "))");
}

static void put_where(struct buf *b, const struct store_query *q)
{
    const char *glue = " WHERE ";

    for (size_t i = 0; i < q->n_conds; i++) {
        buf_puts(b, glue);
        put_cond(b, q, &q->conds[i]);
        glue = " AND ";
    }
    if (!q->reader)
        return;
    buf_puts(b, glue);
    buf_puts(b, q->table == STORE_CONTAINERS
                    ? "uuid IN (SELECT container_uuid FROM"
                      " container_requests WHERE owner_uuid = ?)"
                    : "owner_uuid = ?");
}

static void put_order(struct buf *b, const struct store_query *q)
{
    for (size_t i = 0; i < q->n_order; i++) {
        const struct store_order *o = &q->order[i];
        const struct store_col *col = store_col(q->table, o->col);
        buf_printf(b, "%s%s%s", i ? ", " : " ORDER BY ", col->name,
                   o->desc ? " DESC" : "");
        if (col->flags & STORE_NULLABLE)
            buf_puts(b, o->desc ? " NULLS FIRST" : " NULLS LAST");
    }
}

void sql_select(struct buf *b, const struct store_query *q)
{
    const char *glue = q->distinct ? "SELECT DISTINCT " : "SELECT ";

    for (int col = -1; (col = sql_next_col(q->table, q->cols, col)) >= 0;) {
        buf_printf(b, "%s%s", glue, store_col(q->table, (unsigned) col)->name);
        glue = ", ";
    }
    buf_printf(b, " FROM %s", store_table_name(q->table));
    put_where(b, q);
    put_order(b, q);
    buf_puts(b, " LIMIT ? OFFSET ?");
}

void sql_count(struct buf *b, const struct store_query *q)
{
    buf_printf(b, "SELECT count(*) FROM %s", store_table_name(q->table));
    put_where(b, q);
}
