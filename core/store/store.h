/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_STORE_STORE_H
#define CORE_STORE_STORE_H

/*
 * The API server's database behind an interface that lets no SQL dialect out:
 * rows of typed values, queries as plain records, and jobs that run inside a
 * transaction. SQLite is the back end today (store_sqlite*.c); a second one
 * implements the same functions.
 *
 * A job is a function that runs in one of three lanes:
 *
 *   READ   a thread of the bounded reader pool, in a snapshot of its own
 *   SLOW   a thread without a database (tx is NULL): hashing of large files
 *   WRITE  the one writer thread, in the transaction of its group
 *
 * and says by its return value what becomes of its changes and where it runs
 * next. When it ends, done() is called on the loop. Writes are committed in
 * groups: all that wait are run one after the other, each able to fail alone,
 * then one commit makes them durable, and only then are their done()s called.
 * Jobs of a lane start in the order of their submission.
 *
 * Durability: with `full` an answered write survives a loss of power (one
 * fdatasync per group); with `process` it survives the end of this program.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/store/schema.h"

struct buf;
struct loop;
struct store;
struct store_tx;

/* ------------------------------------------------------------- values -- */

enum store_kind {
    STORE_NULL,
    STORE_INT,  /* I64, BOOL (0 or 1), TIME */
    STORE_REAL, /* F64 */
    STORE_TEXT  /* STR, JSON; NUL-terminated, n bytes */
};

struct store_value {
    enum store_kind kind;
    int64_t i;
    double f;
    const char *s;
    size_t n;
};

/* A row, or the changes to one: only columns in `set` have a meaning. Start
 * with {0}. Texts in `owned` columns are freed by store_row_fini. */
struct store_row {
    uint64_t set;
    uint64_t owned;
    struct store_value v[STORE_COLS_MAX];
};

#define STORE_BIT(col) (UINT64_C(1) << (col))
#define STORE_ALL UINT64_MAX

void store_row_fini(struct store_row *row); /* CLEANUP(store_row_fini) */
/* Setters copy texts; NULL sets null. */
void store_set_str(struct store_row *row, unsigned col, const char *s);
void store_set_strn(struct store_row *row, unsigned col, const char *s,
                    size_t n);
void store_set_i64(struct store_row *row, unsigned col, int64_t i);
void store_set_f64(struct store_row *row, unsigned col, double f);
void store_set_null(struct store_row *row, unsigned col);
void store_set_value(struct store_row *row, unsigned col,
                     const struct store_value *v);
void store_unset(struct store_row *row, unsigned col);
/* Copy every column that `from` has onto `to`. */
void store_row_merge(struct store_row *to, const struct store_row *from);

/* Getters: "" / 0 for null or absent columns. */
const char *store_str(const struct store_row *row, unsigned col);
int64_t store_i64(const struct store_row *row, unsigned col);
double store_f64(const struct store_row *row, unsigned col);
bool store_has(const struct store_row *row, unsigned col); /* set, not null */
bool store_value_equal(const struct store_value *a,
                       const struct store_value *b);

/* ------------------------------------------------------------- queries -- */

/*      name        meaning; null behaviour as in the Arvados API */
#define STORE_OPS(X)                                                          \
    X(EQ)       /* also: is null */                                           \
    X(NE)       /* true for null, unless the operand is null */               \
    X(LT)                                                                     \
    X(LE)                                                                     \
    X(GT)                                                                     \
    X(GE)                                                                     \
    X(LIKE)     /* % and _, backslash escapes, case counts */                 \
    X(ILIKE)    /* the same, ASCII case ignored */                            \
    X(IN)                                                                     \
    X(NOT_IN)   /* true for null */                                           \
    X(EXISTS)   /* JSON object has each of the keys */                        \
    X(CONTAINS) /* JSON array has each of the elements, or is the element */

enum store_op {
#define X(name) STORE_OP_##name,
    STORE_OPS(X)
#undef X
    STORE_OP_COUNT
};

struct store_cond {
    enum store_table table; /* the query's own; or CONTAINERS in a query over
                               REQUESTS: the request's container */
    unsigned col;
    const char *key;        /* of a JSON column: compare this member, or NULL */
    enum store_op op;
    bool negate;            /* EXISTS only */
    int other;              /* compare with this column instead; -1 = values */
    const struct store_value *v;
    size_t n;               /* 1, but for IN, NOT_IN, EXISTS, CONTAINS */
};

struct store_order {
    unsigned col;
    bool desc; /* nulls come last, first when descending */
};

struct store_query {
    enum store_table table;
    uint64_t cols;                /* to return; STORE_ALL = all */
    const struct store_cond *conds; /* all must hold */
    size_t n_conds;
    const struct store_order *order;
    size_t n_order;
    int64_t limit;                /* -1 = none */
    int64_t offset;
    bool distinct;
    /* Only what this user may read: his own rows; in CONTAINERS those of his
     * requests. NULL = everything. */
    const char *reader;
};

/* ------------------------------------------------------ in a transaction */

bool store_writable(const struct store_tx *tx);

/* One row by its key; ERR_NOT_FOUND. cols as in a query. The texts of ret are
 * owned by it; what it held before is freed (key may be a part of that). */
int store_get(struct store_tx *tx, enum store_table t, const char *key,
              uint64_t cols, struct store_row *ret, struct err *err);

/* each() is called for every row in order; its row is borrowed. Returning
 * false ends the walk. It may not change the table it walks over. */
int store_find(struct store_tx *tx, const struct store_query *q,
               bool (*each)(void *arg, const struct store_row *row),
               void *arg, struct err *err);
int store_count(struct store_tx *tx, const struct store_query *q,
                int64_t *ret, struct err *err);

/* In WRITE only. insert needs every column that may not be null;
 * ERR_CONFLICT when the key exists. update and delete: ERR_NOT_FOUND. */
int store_insert(struct store_tx *tx, enum store_table t,
                 const struct store_row *row, struct err *err);
int store_update(struct store_tx *tx, enum store_table t, const char *key,
                 const struct store_row *changes, struct err *err);
int store_delete(struct store_tx *tx, enum store_table t, const char *key,
                 struct err *err);
/* Delete the rows whose TIME column is set and before us; at most limit. */
int store_prune(struct store_tx *tx, enum store_table t, unsigned col,
                int64_t us, int64_t limit, int64_t *ret, struct err *err);

/* End the snapshot of a READ early (the next call begins a new one). */
void store_release(struct store_tx *tx);

/* ---------------------------------------------------------------- jobs -- */

enum store_next {
    STORE_DONE,  /* keep the changes; done() after they are durable */
    STORE_ABORT, /* undo this job's changes; done() */
    STORE_READ,  /* undo them and run again in that lane */
    STORE_SLOW,
    STORE_WRITE
};

/* Embedded in the caller's own record, which lives until done() has begun. */
struct store_job {
    enum store_next (*run)(struct store_job *job, struct store_tx *tx);
    void (*done)(struct store_job *job); /* on the loop */

    /* Filled before done(): why the transaction itself failed (the job's
     * changes are then undone), or ERR_NONE; and the commit's number, 0 when
     * nothing was written. */
    struct err err;
    int64_t seq;

    struct store_job *next; /* private */
    struct store_tx *tx;    /* private */
    bool keep;              /* private */
};

struct store_opts {
    const char *path;
    bool full;             /* durability, see above */
    unsigned readers;      /* threads and connections of READ */
    unsigned max_queued;   /* jobs waiting in READ and WRITE together */
};

/*
 * Open or create the database; run outstanding migrations; check it. Refused:
 * a damaged file, a file that is no database of ours, a schema newer than this
 * program knows, a file that another process has open as its store.
 */
int store_open(struct loop *l, const struct store_opts *opts,
               struct store **ret, struct err *err);
/* Only when no job is out. NULL is fine. */
void store_close(struct store *st);

/* Loop thread. lane: STORE_READ, STORE_SLOW or STORE_WRITE. -1/RATE_LIMITED
 * when too many wait; done() is then not called. */
int store_submit(struct store *st, struct store_job *job,
                 enum store_next lane, struct err *err);

/* Each inserted, changed or deleted row of CONTAINERS and REQUESTS, on the
 * loop, after its commit and before the done() of the jobs of its group; seq
 * counts the commits since the store was opened. */
void store_watch(struct store *st,
                 void (*changed)(void *arg, int64_t seq, enum store_table t,
                                 const char *key),
                 void *arg);

struct store_stats {
    int64_t commits;    /* groups that wrote something */
    int64_t writes;     /* jobs in them */
    int64_t waiting;    /* jobs in queues now */
    int64_t wal_pages;  /* after the last commit */
    int64_t commit_us;  /* time in commits, sum */
    int64_t failures;   /* commits that failed */
};
void store_get_stats(struct store *st, struct store_stats *ret);

/* "SQLite 3.40.1, WAL, synchronous=FULL, group commit": for people. */
const char *store_durability(const struct store *st);

#endif
