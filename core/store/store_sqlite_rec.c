/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in and out of SQLite: the functions of store.h that run inside a
 * transaction.
 *
 * Each builds its statement's text from schema.h, takes the prepared statement
 * of that text from the connection, binds, steps. Texts that a walk shows are
 * SQLite's own memory, valid for that row only; store_get copies. A change of
 * a container or a request is noted for the change feed.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/store/store_sqlite.h"

enum { SQL_MAX = 64 * 1024, OPERANDS_MAX = 64 << 20 };

static void note_change(struct store_tx *tx, enum store_table t,
                        const char *key)
{
    struct store_change c = {.table = t};

    if (t != STORE_CONTAINERS && t != STORE_REQUESTS)
        return;
    snprintf(c.key, sizeof c.key, "%s", key);
    for (size_t i = tx->job_changes; i < tx->changes.n; i++)
        if (tx->changes.v[i].table == t &&
            strcmp(tx->changes.v[i].key, key) == 0)
            return;
    VEC_PUSH(&tx->changes, c);
}

static int bind_value(sqlite3_stmt *s, int at, const struct store_value *v)
{
    switch (v->kind) {
    case STORE_NULL:
        return sqlite3_bind_null(s, at);
    case STORE_INT:
        return sqlite3_bind_int64(s, at, v->i);
    case STORE_REAL:
        return sqlite3_bind_double(s, at, v->f);
    case STORE_TEXT:
        return sqlite3_bind_text64(s, at, v->s, v->n, SQLITE_STATIC,
                                   SQLITE_UTF8);
    }
    return SQLITE_MISUSE;
}

/* $."key": names with a quote were refused above. */
static void bind_path(sqlite3_stmt *s, int at, const char *key)
{
    char path[300];
    int n = snprintf(path, sizeof path, "$.\"%s\"", key);

    assert(n > 0 && (size_t) n < sizeof path);
    sqlite3_bind_text(s, at, path, n, SQLITE_TRANSIENT);
}

static void bind_list(sqlite3_stmt *s, int at, const struct store_cond *c)
{
    struct buf text;
    struct jsn_w w;

    buf_init(&text, OPERANDS_MAX);
    jsn_w_init(&w, &text);
    jsn_w_arr(&w, NULL);
    for (size_t i = 0; i < c->n; i++) {
        const struct store_value *v = &c->v[i];
        if (v->kind == STORE_TEXT)
            jsn_w_strn(&w, NULL, v->s, v->n);
        else if (v->kind == STORE_INT)
            jsn_w_i64(&w, NULL, v->i);
        else if (v->kind == STORE_REAL)
            jsn_w_f64(&w, NULL, v->f);
    }
    jsn_w_end_arr(&w);
    sqlite3_bind_text(s, at, text.data, (int) text.len, SQLITE_TRANSIENT);
    buf_fini(&text);
}

/* The values of one condition, in the order in which its text has them. */
static int bind_cond(sqlite3_stmt *s, int at, const struct store_cond *c)
{
    switch (c->op) {
    case STORE_OP_EXISTS:
        for (size_t i = 0; i < c->n; i++)
            bind_path(s, at++, c->v[i].s);
        return at;
    case STORE_OP_CONTAINS:
        for (size_t i = 0; i < c->n; i++) {
            if (c->key)
                bind_path(s, at++, c->key);
            bind_value(s, at++, &c->v[i]);
        }
        return at;
    case STORE_OP_IN:
    case STORE_OP_NOT_IN:
        for (int i = 0; c->key && i < 1 + sql_in_names_twice(c); i++)
            bind_path(s, at++, c->key);
        bind_list(s, at++, c);
        return at;
    default:
        if (c->key)
            bind_path(s, at++, c->key);
        if (c->other < 0 && c->v[0].kind != STORE_NULL)
            bind_value(s, at++, &c->v[0]);
        return at;
    }
}

static int bind_query(sqlite3_stmt *s, const struct store_query *q)
{
    int at = 1;

    for (size_t i = 0; i < q->n_conds; i++)
        at = bind_cond(s, at, &q->conds[i]);
    if (q->reader)
        sqlite3_bind_text(s, at++, q->reader, -1, SQLITE_STATIC);
    return at;
}

static void read_value(sqlite3_stmt *s, int i, struct store_value *v)
{
    *v = (struct store_value){0};
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
        v->kind = STORE_INT;
        v->i = sqlite3_column_int64(s, i);
        break;
    case SQLITE_FLOAT:
        v->kind = STORE_REAL;
        v->f = sqlite3_column_double(s, i);
        break;
    case SQLITE_TEXT:
        v->kind = STORE_TEXT;
        v->s = (const char *) sqlite3_column_text(s, i);
        v->n = (size_t) sqlite3_column_bytes(s, i);
        break;
    default:
        break;
    }
}

/* Borrow the present row of a statement that selects the columns of mask. */
static void read_row(sqlite3_stmt *s, enum store_table t, uint64_t mask,
                     struct store_row *row)
{
    int i = 0;

    row->set = 0;
    for (int col = -1; (col = sql_next_col(t, mask, col)) >= 0; i++) {
        read_value(s, i, &row->v[col]);
        row->set |= STORE_BIT(col);
    }
}

int store_find(struct store_tx *tx, const struct store_query *q,
               bool (*each)(void *arg, const struct store_row *row),
               void *arg, struct err *err)
{
    CLEANUP(buf_fini) struct buf sql;
    struct store_row row = {0};
    sqlite3_stmt *s;
    bool own;
    int at, rc;

    buf_init(&sql, SQL_MAX);
    sql_select(&sql, q);
    if (sql.over)
        return err_set(err, ERR_TOO_LARGE, "the query is too long");
    if (tx_begin(tx, err) < 0 ||
        !(s = tx_stmt(tx, sql.data, &own, err)))
        return -1;
    at = bind_query(s, q);
    sqlite3_bind_int64(s, at, q->limit);
    sqlite3_bind_int64(s, at + 1, q->offset);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        read_row(s, q->table, q->cols, &row);
        if (!each(arg, &row))
            break;
    }
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : tx_fail(tx, "read", err);
    tx_stmt_end(s, own);
    return rc;
}

int store_count(struct store_tx *tx, const struct store_query *q,
                int64_t *ret, struct err *err)
{
    CLEANUP(buf_fini) struct buf sql;
    sqlite3_stmt *s;
    bool own;
    int rc = 0;

    buf_init(&sql, SQL_MAX);
    sql_count(&sql, q);
    if (sql.over)
        return err_set(err, ERR_TOO_LARGE, "the query is too long");
    if (tx_begin(tx, err) < 0 ||
        !(s = tx_stmt(tx, sql.data, &own, err)))
        return -1;
    bind_query(s, q);
    if (sqlite3_step(s) == SQLITE_ROW)
        *ret = sqlite3_column_int64(s, 0);
    else
        rc = tx_fail(tx, "count", err);
    tx_stmt_end(s, own);
    return rc;
}

static bool copy_row(void *arg, const struct store_row *row)
{
    store_row_merge(arg, row);
    return true;
}

int store_get(struct store_tx *tx, enum store_table t, const char *key,
              uint64_t cols, struct store_row *ret, struct err *err)
{
    struct store_value v = {.kind = STORE_TEXT, .s = key, .n = strlen(key)};
    struct store_cond c = {.table = t, .op = STORE_OP_EQ, .other = -1,
                           .v = &v, .n = 1};
    struct store_query q = {.table = t, .cols = cols, .conds = &c,
                            .n_conds = 1, .limit = 1};
    struct store_row got = {0};

    if (store_find(tx, &q, copy_row, &got, err) < 0)
        return -1;
    if (got.set) {
        store_row_fini(ret); /* key may be one of its texts */
        *ret = got;
        return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "%s %s not found", store_table_name(t),
                   key);
}

/* Bind what row sets, in order of columns; returns the next place. */
static int bind_row(sqlite3_stmt *s, enum store_table t,
                    const struct store_row *row)
{
    int at = 1;

    for (int col = -1; (col = sql_next_col(t, row->set, col)) >= 0;)
        bind_value(s, at++, &row->v[col]);
    return at;
}

static int run_write(struct store_tx *tx, const char *sql, enum store_table t,
                     const struct store_row *row, const char *key,
                     const char *what, struct err *err)
{
    sqlite3_stmt *s;
    bool own;
    int rc = 0, at = 1;

    assert(tx->writer);
    if (tx_touch(tx, err) < 0 || !(s = tx_stmt(tx, sql, &own, err)))
        return -1;
    if (row)
        at = bind_row(s, t, row);
    if (key)
        sqlite3_bind_text(s, at, key, -1, SQLITE_STATIC);
    if (sqlite3_step(s) != SQLITE_DONE)
        rc = tx_fail(tx, what, err);
    else if (key && sqlite3_changes(tx->db) == 0)
        rc = err_set(err, ERR_NOT_FOUND, "%s %s not found",
                     store_table_name(t), key);
    tx_stmt_end(s, own);
    return rc;
}

int store_insert(struct store_tx *tx, enum store_table t,
                 const struct store_row *row, struct err *err)
{
    CLEANUP(buf_fini) struct buf sql;
    const char *glue = " (";

    buf_init(&sql, SQL_MAX);
    buf_printf(&sql, "INSERT INTO %s", store_table_name(t));
    for (int col = -1; (col = sql_next_col(t, row->set, col)) >= 0;) {
        buf_printf(&sql, "%s%s", glue, store_col(t, (unsigned) col)->name);
        glue = ", ";
    }
    glue = ") VALUES (";
    for (int col = -1; (col = sql_next_col(t, row->set, col)) >= 0;) {
        buf_printf(&sql, "%s?", glue);
        glue = ", ";
    }
    buf_putc(&sql, ')');
    if (run_write(tx, sql.data, t, row, NULL, "insert", err) < 0)
        return -1;
    note_change(tx, t, store_str(row, 0));
    return 0;
}

int store_update(struct store_tx *tx, enum store_table t, const char *key,
                 const struct store_row *changes, struct err *err)
{
    CLEANUP(buf_fini) struct buf sql = {0};
    const char *glue = " SET ";

    if (changes->set == 0)
        return 0;
    buf_init(&sql, SQL_MAX);
    buf_printf(&sql, "UPDATE %s", store_table_name(t));
    for (int col = -1; (col = sql_next_col(t, changes->set, col)) >= 0;) {
        buf_printf(&sql, "%s%s = ?", glue,
                   store_col(t, (unsigned) col)->name);
        glue = ", ";
    }
    buf_printf(&sql, " WHERE %s = ?", store_col(t, 0)->name);
    if (run_write(tx, sql.data, t, changes, key, "update", err) < 0)
        return -1;
    note_change(tx, t, key);
    return 0;
}

int store_delete(struct store_tx *tx, enum store_table t, const char *key,
                 struct err *err)
{
    CLEANUP(buf_fini) struct buf sql;

    buf_init(&sql, SQL_MAX);
    buf_printf(&sql, "DELETE FROM %s WHERE %s = ?", store_table_name(t),
               store_col(t, 0)->name);
    if (run_write(tx, sql.data, t, NULL, key, "delete", err) < 0)
        return -1;
    note_change(tx, t, key);
    return 0;
}

int store_prune(struct store_tx *tx, enum store_table t, unsigned col,
                int64_t us, int64_t limit, int64_t *ret, struct err *err)
{
    CLEANUP(buf_fini) struct buf sql;
    const char *name = store_table_name(t), *key = store_col(t, 0)->name;
    sqlite3_stmt *s;
    bool own;
    int rc = 0;

    assert(tx->writer && store_col(t, col)->type == STORE_TIME);
    buf_init(&sql, SQL_MAX);
    buf_printf(&sql,
               "DELETE FROM %s WHERE %s IN"
               " (SELECT %s FROM %s WHERE %s < ? LIMIT ?)",
               name, key, key, name, store_col(t, col)->name);
    if (tx_touch(tx, err) < 0 || !(s = tx_stmt(tx, sql.data, &own, err)))
        return -1;
    sqlite3_bind_int64(s, 1, us);
    sqlite3_bind_int64(s, 2, limit);
    if (sqlite3_step(s) != SQLITE_DONE)
        rc = tx_fail(tx, "prune", err);
    else
        *ret = sqlite3_changes(tx->db);
    tx_stmt_end(s, own);
    return rc;
}
