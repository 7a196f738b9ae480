/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One SQLite connection: how it is opened, its prepared statements, and the
 * transaction on it.
 *
 * WAL mode with checkpoints by the writer's connection alone: with two
 * connections that write and checkpoint, a reset of the log can corrupt the
 * file (fixed in SQLite 3.51.3 only). Double-quoted strings are off, so that a
 * misspelt column is an error and not a text.
 *
 * Statements are kept by their text. Lists with free filters make new texts
 * for ever, so the cache is emptied when it is full. A statement that is in
 * use (a walk whose callback asks the same question) is prepared anew.
 *
 * The transaction begins by itself at the first call. A writer's spans the
 * group; each job that changes something has a savepoint in it, so that it can
 * fail alone. A connection belongs to one thread.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/store/store_sqlite.h"

enum { STMTS_MAX = 256, CHECK_TEXT_MAX = 400 };

int tx_fail(struct store_tx *tx, const char *what, struct err *err)
{
    int rc = sqlite3_errcode(tx->db) & 0xff;
    enum err_class class = ERR_INTERNAL;

    if (rc == SQLITE_CONSTRAINT)
        class = ERR_CONFLICT;
    else if (rc == SQLITE_BUSY || rc == SQLITE_FULL || rc == SQLITE_IOERR)
        class = ERR_TRANSIENT;
    return err_set(err, class, "database: %s: %s", what,
                   sqlite3_errmsg(tx->db));
}

static void free_stmt(void *stmt)
{
    sqlite3_finalize(stmt);
}

int tx_exec(struct store_tx *tx, const char *sql, struct err *err)
{
    if (sqlite3_exec(tx->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return tx_fail(tx, sql, err);
}

/* The first column of the first row of a PRAGMA, as text. */
static int pragma_text(struct store_tx *tx, const char *sql, char *out,
                       size_t size, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc;

    if (sqlite3_prepare_v2(tx->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return tx_fail(tx, sql, err);
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW && sqlite3_column_text(stmt, 0))
        snprintf(out, size, "%s", sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    return rc == SQLITE_ROW ? 0 : tx_fail(tx, sql, err);
}

static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    struct store_tx *tx = arg;

    (void) db;
    (void) name;
    tx->wal_pages = pages;
    return SQLITE_OK;
}

static int set_up_writer(struct store_tx *tx, const char *path, bool full,
                         struct err *err)
{
    char text[CHECK_TEXT_MAX] = "";

    if (pragma_text(tx, "PRAGMA quick_check(1)", text, sizeof text, err) < 0)
        return -1;
    if (strcmp(text, "ok") != 0)
        return err_set(err, ERR_CONFIG, "%s is damaged: %s", path, text);
    if (pragma_text(tx, "PRAGMA journal_mode = WAL", text, sizeof text,
                    err) < 0)
        return -1;
    if (strcmp(text, "wal") != 0)
        return err_set(err, ERR_CONFIG, "%s: no WAL mode on this file system",
                       path);
    sqlite3_wal_hook(tx->db, on_wal, tx);
    return tx_exec(tx, full ? "PRAGMA synchronous = FULL"
                            : "PRAGMA synchronous = NORMAL", err);
}

static int set_up(struct store_tx *tx, const char *path, bool full,
                  struct err *err)
{
    sqlite3_busy_timeout(tx->db, 5000);
    sqlite3_extended_result_codes(tx->db, 1);
    sqlite3_db_config(tx->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(tx->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(tx->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_wal_autocheckpoint(tx->db, 0);
    if (tx_exec(tx, "PRAGMA case_sensitive_like = ON;"
                    "PRAGMA temp_store = MEMORY;"
                    "PRAGMA journal_size_limit = 67108864", err) < 0)
        return -1;
    if (tx->writer)
        return tx_exec(tx, "PRAGMA cache_size = -32768", err) < 0
                   ? -1
                   : set_up_writer(tx, path, full, err);
    return tx_exec(tx, "PRAGMA cache_size = -8192;"
                       "PRAGMA query_only = ON", err);
}

/* Whichever statement trips over the damage first. */
static void name_damage(const struct store_tx *tx, const char *path,
                        struct err *err)
{
    int rc = sqlite3_errcode(tx->db) & 0xff;

    if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)
        err_set(err, ERR_CONFIG, "%s is damaged: %s", path,
                sqlite3_errmsg(tx->db));
}

struct store_tx *tx_create(const char *path, bool writer, bool full,
                           struct err *err)
{
    struct store_tx *tx = MEM_NEW(struct store_tx);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                (writer ? SQLITE_OPEN_CREATE : 0);

    tx->writer = writer;
    tx->stmts = map_create(free_stmt);
    if (sqlite3_open_v2(path, &tx->db, flags, NULL) != SQLITE_OK) {
        err_set(err, ERR_CONFIG, "cannot open %s: %s", path,
                tx->db ? sqlite3_errmsg(tx->db) : "no memory");
        goto error;
    }
    if (set_up(tx, path, full, err) < 0) {
        name_damage(tx, path, err);
        goto error;
    }
    return tx;
error:
    tx_destroy(tx);
    return NULL;
}

void tx_destroy(struct store_tx *tx)
{
    if (!tx)
        return;
    map_destroy(tx->stmts);
    sqlite3_close(tx->db);
    VEC_FINI(&tx->changes);
    free(tx);
}

sqlite3_stmt *tx_stmt(struct store_tx *tx, const char *sql, bool *ret_own,
                      struct err *err)
{
    sqlite3_stmt *stmt = map_get(tx->stmts, sql);
    unsigned flags = SQLITE_PREPARE_PERSISTENT;

    *ret_own = stmt && sqlite3_stmt_busy(stmt);
    if (stmt && !*ret_own)
        return stmt;
    if (sqlite3_prepare_v3(tx->db, sql, -1, *ret_own ? 0 : flags, &stmt,
                           NULL) != SQLITE_OK) {
        tx_fail(tx, "statement", err);
        return NULL;
    }
    if (*ret_own)
        return stmt;
    if (map_count(tx->stmts) >= STMTS_MAX) {
        /* A walk above us may still use one of them. */
        *ret_own = true;
        return stmt;
    }
    map_set(tx->stmts, sql, stmt);
    return stmt;
}

void tx_stmt_end(sqlite3_stmt *stmt, bool own)
{
    if (own) {
        sqlite3_finalize(stmt);
        return;
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

/* A statement without values and rows that comes again and again. */
static int run(struct store_tx *tx, const char *sql, struct err *err)
{
    bool own;
    sqlite3_stmt *s = tx_stmt(tx, sql, &own, err);
    int rc;

    if (!s)
        return -1;
    rc = sqlite3_step(s) == SQLITE_DONE ? 0 : tx_fail(tx, sql, err);
    tx_stmt_end(s, own);
    return rc;
}

int tx_begin(struct store_tx *tx, struct err *err)
{
    if (tx->open)
        return 0;
    if (run(tx, tx->writer ? "BEGIN IMMEDIATE" : "BEGIN", err) < 0)
        return -1;
    tx->open = true;
    return 0;
}

int tx_touch(struct store_tx *tx, struct err *err)
{
    if (tx_begin(tx, err) < 0)
        return -1;
    if (tx->dirty)
        return 0;
    if (run(tx, "SAVEPOINT job", err) < 0)
        return -1;
    tx->dirty = true;
    return 0;
}

void tx_undo(struct store_tx *tx)
{
    if (tx->dirty && run(tx, "ROLLBACK TO job", NULL) == 0)
        run(tx, "RELEASE job", NULL);
    tx->dirty = false;
    tx->changes.n = tx->job_changes;
}

int tx_keep(struct store_tx *tx, struct err *err)
{
    if (tx->dirty && run(tx, "RELEASE job", err) < 0)
        return -1;
    tx->dirty = false;
    tx->job_changes = tx->changes.n;
    return 0;
}

/* Statements of lists whose texts never come again. */
static void trim(struct store_tx *tx)
{
    if (map_count(tx->stmts) >= STMTS_MAX)
        map_clear(tx->stmts);
}

int tx_end(struct store_tx *tx, bool ok, struct err *err)
{
    int rc = 0;

    if (tx->open && !sqlite3_get_autocommit(tx->db)) {
        rc = ok ? run(tx, "COMMIT", err) : -1;
        if (rc < 0 && !sqlite3_get_autocommit(tx->db))
            run(tx, "ROLLBACK", NULL);
    } else if (tx->open) {
        /* An error such as a full disk has rolled everything back. */
        rc = err_set(err, ERR_TRANSIENT, "database: the group failed");
    }
    tx->open = false;
    tx->dirty = false;
    trim(tx);
    return rc;
}

bool store_writable(const struct store_tx *tx)
{
    return tx && tx->writer;
}

void store_release(struct store_tx *tx)
{
    if (tx && !tx->writer)
        tx_end(tx, true, NULL);
}
