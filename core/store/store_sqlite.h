/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_STORE_STORE_SQLITE_H
#define CORE_STORE_STORE_SQLITE_H

/*
 * What the files of the SQLite back end share. Nobody else includes this.
 *
 * store_sqlite.c       open, close, the store itself
 * store_sqlite_mig.c   schema versions and migrations
 * store_sqlite_sql.c   queries as SQL text (pure)
 * store_sqlite_tx.c    connections, prepared statements, transactions
 * store_sqlite_rec.c   rows in and out
 * store_sqlite_work.c  lanes: reader pool, slow pool, group-commit writer
 */

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/vec.h"
#include "core/store/store.h"

struct map;

struct store_change {
    enum store_table table;
    char key[40]; /* of the watched tables, whose keys are uuids */
};

/* A connection with the state of the transaction on it: one thread's. */
struct store_tx {
    sqlite3 *db;
    struct map *stmts;  /* SQL text -> sqlite3_stmt, see tx_stmt() */
    bool writer;
    bool open;          /* BEGIN was done */
    bool dirty;         /* the present job's savepoint is open */
    VEC(struct store_change) changes; /* of the present group */
    size_t job_changes; /* how many of them are older than the present job */
    int wal_pages;
};

/* The jobs that wait for one lane. */
struct store_lane {
    struct store_job *first, **last;
    pthread_cond_t more;
};

struct store_thread {
    struct store *st;
    struct store_lane *lane;
    pthread_t id;
    struct store_tx *tx; /* NULL in the slow lane */
};

struct store {
    struct loop *loop;
    char *path;
    int lock_fd;
    bool full;
    unsigned max_queued;
    char durability[96];
    void (*changed)(void *arg, int64_t seq, enum store_table t,
                    const char *key);
    void *changed_arg;
    VEC(struct store_tx *) txs;         /* [0] is the writer's */
    VEC(struct store_thread *) threads;

    pthread_mutex_t lock; /* guards all below */
    struct store_lane read, slow, write;
    unsigned queued;      /* in read and write */
    bool closing;
    int64_t seq;          /* commits so far; written by the writer only */
    struct store_stats stats;
};

/* store_sqlite_sql.c: text with ? for each value; the values are to be bound
 * in the order of the conditions, see tx_bind_query. */
struct buf;
void sql_select(struct buf *b, const struct store_query *q);
void sql_count(struct buf *b, const struct store_query *q);
/* The columns that a mask names, in order; -1 past the end. */
int sql_next_col(enum store_table t, uint64_t mask, int after);
/* An IN or NOT_IN mentions its column, and so its key, twice. */
bool sql_in_names_twice(const struct store_cond *c);


/* store_sqlite_tx.c */
int tx_fail(struct store_tx *tx, const char *what, struct err *err);
struct store_tx *tx_create(const char *path, bool writer, bool full,
                           struct err *err);
void tx_destroy(struct store_tx *tx);
int tx_exec(struct store_tx *tx, const char *sql, struct err *err);
int tx_begin(struct store_tx *tx, struct err *err);
/* Begin, if need be, the present job's savepoint: before each write. */
int tx_touch(struct store_tx *tx, struct err *err);
/* The prepared statement of a text; *ret_own says that it is not in the
 * cache. Give it back with tx_stmt_end. NULL on failure. */
sqlite3_stmt *tx_stmt(struct store_tx *tx, const char *sql, bool *ret_own,
                      struct err *err);
void tx_stmt_end(sqlite3_stmt *stmt, bool own);
/* Undo the present job's changes. */
void tx_undo(struct store_tx *tx);
/* Keep them. */
int tx_keep(struct store_tx *tx, struct err *err);
/* End the transaction; of a writer: COMMIT or, if !ok, ROLLBACK. */
int tx_end(struct store_tx *tx, bool ok, struct err *err);

/* store_sqlite_work.c */
int work_start(struct store *st, unsigned readers, struct err *err);
void work_stop(struct store *st);

#endif
