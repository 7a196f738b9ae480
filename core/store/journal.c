/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher's journal: records by (kind, key) in one SQLite table.
 *
 * The loop thread hands batches to the writer thread; the writer takes all
 * that wait, applies them in order inside one transaction, commits (WAL with
 * synchronous FULL: one fdatasync), and posts the batches back. So a batch is
 * durable before its callback, batches keep their order, and what a crash
 * loses is a suffix of the unacknowledged ones. When the commit fails (disk
 * full, I/O error), every batch of the group is answered with the error and
 * the next append tries again: the core starts no new effect meanwhile.
 *
 * There is one connection, used by the writer thread only (after the open),
 * so that nobody else can checkpoint. Replay is a batch like any other.
 * Records are small and few (one per instance, live start, open create and
 * waiting container); none holds a secret.
 */
#include "core/store/journal.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/io/loop.h"
#include "core/port/journal.h"

enum {
    JOURNAL_SCHEMA = 1,
    JOURNAL_APP_ID = 0x4344434a, /* "CDCJ": application_id of the file */
};

/* A batch on its way through the writer. */
struct op {
    struct op *next;
    struct journal *j;
    bool replay;
    struct journal_rec *recs;
    size_t n;
    struct op_result r;
    void (*on_rec)(void *arg, const struct journal_rec *rec);
    void (*cb)(void *arg, const struct op_result *r);
    void *arg;
};

struct journal {
    struct journal_port port;
    struct loop *loop;
    char *path;
    sqlite3 *db;
    sqlite3_stmt *put, *del, *all;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;  /* guards first, last, quit */
    pthread_cond_t wake;
    struct op *first, *last;
    bool quit;
    bool closed;           /* loop thread: answers are dropped */
};

/* --- records and rows --------------------------------------------------------- */

/* The text columns, in the order of the table. */
#define TEXT_COLUMNS(X)                                                       \
    X(backend) X(token) X(instance) X(itype) X(placement) X(uuid) X(hostkey)

static int bind_record(sqlite3_stmt *st, const struct journal_rec *rec)
{
    int i = 1;

    sqlite3_bind_int(st, i++, (int) rec->kind);
    sqlite3_bind_text(st, i++, rec->key, -1, SQLITE_STATIC);
#define X(c) sqlite3_bind_text(st, i++, rec->c, -1, SQLITE_STATIC);
    TEXT_COLUMNS(X)
#undef X
    sqlite3_bind_int64(st, i++, rec->attempt);
    sqlite3_bind_int64(st, i++, rec->count);
    return sqlite3_bind_int64(st, i, rec->at_us);
}

static void copy_text(char *dst, size_t size, sqlite3_stmt *st, int column)
{
    const unsigned char *s = sqlite3_column_text(st, column);

    text_copy(dst, s ? (const char *) s : "", size);
}

static void read_record(sqlite3_stmt *st, struct journal_rec *rec)
{
    int i = 0;

    memset(rec, 0, sizeof *rec);
    rec->kind = (enum journal_kind) sqlite3_column_int(st, i++);
    copy_text(rec->key, sizeof rec->key, st, i++);
#define X(c) copy_text(rec->c, sizeof rec->c, st, i++);
    TEXT_COLUMNS(X)
#undef X
    rec->attempt = sqlite3_column_int64(st, i++);
    rec->count = sqlite3_column_int64(st, i++);
    rec->at_us = sqlite3_column_int64(st, i);
}

/* --- the writer thread ---------------------------------------------------------- */

static int db_fail(struct journal *j, struct err *err, const char *what)
{
    return err_set(err, ERR_TRANSIENT, "journal %s: %s: %s", j->path, what,
                   sqlite3_errmsg(j->db));
}

static int run(struct journal *j, const char *sql, struct err *err)
{
    if (sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return db_fail(j, err, sql);
}

static int step_once(struct journal *j, sqlite3_stmt *st, struct err *err)
{
    int rc = sqlite3_step(st);

    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return rc == SQLITE_DONE ? 0 : db_fail(j, err, "write");
}

static int apply(struct journal *j, const struct op *op, struct err *err)
{
    for (size_t i = 0; i < op->n; i++) {
        const struct journal_rec *rec = &op->recs[i];
        sqlite3_stmt *st = rec->deleted ? j->del : j->put;

        if (rec->deleted) {
            sqlite3_bind_int(st, 1, (int) rec->kind);
            sqlite3_bind_text(st, 2, rec->key, -1, SQLITE_STATIC);
        } else {
            bind_record(st, rec);
        }
        if (step_once(j, st, err) < 0)
            return -1;
    }
    return 0;
}

static int read_all(struct journal *j, struct op *op, struct err *err)
{
    VEC(struct journal_rec) recs = { 0 };
    int rc;

    while ((rc = sqlite3_step(j->all)) == SQLITE_ROW) {
        struct journal_rec rec;

        read_record(j->all, &rec);
        VEC_PUSH(&recs, rec);
    }
    sqlite3_reset(j->all);
    op->recs = recs.v;
    op->n = recs.n;
    return rc == SQLITE_DONE ? 0 : db_fail(j, err, "read");
}

/* All batches of a group stand or fall together: they share a commit. */
static int write_group(struct journal *j, struct op *first, struct err *err)
{
    if (run(j, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    for (struct op *op = first; op; op = op->next)
        if ((op->replay ? read_all(j, op, err) : apply(j, op, err)) < 0)
            goto error;
    if (run(j, "COMMIT", err) == 0)
        return 0;
error:
    sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

static void deliver(void *arg);

static void finish_group(struct journal *j, struct op *first)
{
    struct err err = { 0 };
    int rc = write_group(j, first, &err);

    while (first) {
        struct op *op = first;

        first = op->next;
        op->r.outcome = rc == 0 ? OP_DONE : OP_REFUSED;
        op->r.err = err;
        loop_post(j->loop, deliver, op);
    }
}

static struct op *take_group(struct journal *j, bool *ret_quit)
{
    struct op *group;

    pthread_mutex_lock(&j->lock);
    while (!j->first && !j->quit)
        pthread_cond_wait(&j->wake, &j->lock);
    group = j->first;
    j->first = j->last = NULL;
    *ret_quit = j->quit && !group;
    pthread_mutex_unlock(&j->lock);
    return group;
}

static void *writer(void *arg)
{
    struct journal *j = arg;
    bool quit = false;

    while (!quit) {
        struct op *group = take_group(j, &quit);

        if (group)
            finish_group(j, group);
    }
    return NULL;
}

/* --- the loop thread ------------------------------------------------------------- */

static void deliver(void *arg)
{
    struct op *op = arg;
    struct journal *j = op->j;

    if (!j->closed) {
        for (size_t i = 0; op->replay && i < op->n; i++)
            op->on_rec(op->arg, &op->recs[i]);
        op->cb(op->arg, &op->r);
    }
    free(op->recs);
    free(op);
}

static struct op *submit(struct journal *j, struct op *op)
{
    op->j = j;
    pthread_mutex_lock(&j->lock);
    if (j->last)
        j->last->next = op;
    else
        j->first = op;
    j->last = op;
    pthread_cond_signal(&j->wake);
    pthread_mutex_unlock(&j->lock);
    return op;
}

static struct op *do_replay(struct journal_port *p,
                            void (*on_rec)(void *arg,
                                           const struct journal_rec *rec),
                            void (*end)(void *arg, const struct op_result *r),
                            void *arg)
{
    struct op *op = MEM_NEW(struct op);

    op->replay = true;
    op->on_rec = on_rec;
    op->cb = end;
    op->arg = arg;
    return submit(p->impl, op);
}

static struct op *do_append(struct journal_port *p,
                            const struct journal_rec *recs, size_t n,
                            void (*cb)(void *arg, const struct op_result *r),
                            void *arg)
{
    struct op *op = MEM_NEW(struct op);

    op->recs = mem_dup(recs, n * sizeof *recs);
    op->n = n;
    op->cb = cb;
    op->arg = arg;
    return submit(p->impl, op);
}

/* --- opening ---------------------------------------------------------------------- */

static const char create_sql[] =
    "CREATE TABLE rec("
    " kind INTEGER NOT NULL, key TEXT NOT NULL, backend TEXT NOT NULL,"
    " token TEXT NOT NULL, instance TEXT NOT NULL, itype TEXT NOT NULL,"
    " placement TEXT NOT NULL, uuid TEXT NOT NULL, hostkey TEXT NOT NULL,"
    " attempt INTEGER NOT NULL, count INTEGER NOT NULL,"
    " at_us INTEGER NOT NULL, PRIMARY KEY(kind, key)) STRICT, WITHOUT ROWID;";

/* One number, as `PRAGMA x` answers; -1 when it does not. */
static int64_t pragma(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st = NULL;
    int64_t v = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return v;
}

static int quick_check(struct journal *j, struct err *err)
{
    sqlite3_stmt *st = NULL;
    bool ok = false;

    if (sqlite3_prepare_v2(j->db, "PRAGMA quick_check(1)", -1, &st, NULL) ==
            SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        ok = !strcmp((const char *) sqlite3_column_text(st, 0), "ok");
    sqlite3_finalize(st);
    if (ok)
        return 0;
    return err_set(err, ERR_INTERNAL,
                   "journal %s is damaged: move it away to start without it "
                   "(instances are then found again by their tags), or "
                   "restore a copy", j->path);
}

/* A new file gets the schema; an old one must be ours and not newer. */
static int check_schema(struct journal *j, struct err *err)
{
    int64_t app, version;
    char sql[64];

    if (quick_check(j, err) < 0)
        return -1;
    app = pragma(j->db, "PRAGMA application_id");
    version = pragma(j->db, "PRAGMA user_version");
    if (app == 0 && version == 0 &&
        pragma(j->db, "SELECT count(*) FROM sqlite_schema") == 0) {
        snprintf(sql, sizeof sql,
                 "PRAGMA application_id=%d; PRAGMA user_version=%d;",
                 JOURNAL_APP_ID, JOURNAL_SCHEMA);
        if (run(j, "BEGIN IMMEDIATE", err) < 0 ||
            run(j, create_sql, err) < 0 || run(j, sql, err) < 0)
            return -1;
        return run(j, "COMMIT", err);
    }
    if (app != JOURNAL_APP_ID)
        return err_set(err, ERR_CONFIG, "%s is not a journal of this program",
                       j->path);
    if (version > JOURNAL_SCHEMA)
        return err_set(err, ERR_CONFIG,
                       "journal %s was written by a newer version (schema "
                       "%lld, this program knows %d)", j->path,
                       (long long) version, JOURNAL_SCHEMA);
    return 0;
}

static int prepare(struct journal *j, const char *sql, sqlite3_stmt **ret,
                   struct err *err)
{
    if (sqlite3_prepare_v3(j->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret,
                           NULL) == SQLITE_OK)
        return 0;
    return db_fail(j, err, "prepare");
}

static int open_db(struct journal *j, struct err *err)
{
    mode_t old = umask(077);
    int rc = sqlite3_open_v2(j->path, &j->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                 SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
                             NULL);

    umask(old);
    if (rc != SQLITE_OK)
        return db_fail(j, err, "open");
    sqlite3_db_config(j->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(j->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_busy_timeout(j->db, 2000);
    if (check_schema(j, err) < 0 ||
        run(j, "PRAGMA journal_mode=WAL", err) < 0 ||
        run(j, "PRAGMA synchronous=FULL", err) < 0)
        return -1;
    if (prepare(j,
                "INSERT INTO rec VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"
                " ON CONFLICT(kind, key) DO UPDATE SET"
                " backend=excluded.backend, token=excluded.token,"
                " instance=excluded.instance, itype=excluded.itype,"
                " placement=excluded.placement, uuid=excluded.uuid,"
                " hostkey=excluded.hostkey, attempt=excluded.attempt,"
                " count=excluded.count, at_us=excluded.at_us",
                &j->put, err) < 0)
        return -1;
    if (prepare(j, "DELETE FROM rec WHERE kind=? AND key=?", &j->del, err) < 0)
        return -1;
    return prepare(j,
                   "SELECT kind, key, backend, token, instance, itype,"
                   " placement, uuid, hostkey, attempt, count, at_us"
                   " FROM rec ORDER BY kind, key", &j->all, err);
}

static int start_writer(struct journal *j, struct err *err)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&j->thread, NULL, writer, j);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return err_set_errno(err, rc, "cannot start the journal's writer");
    j->started = true;
    return 0;
}

struct journal *journal_open(struct loop *loop, const char *path,
                             struct err *err)
{
    struct journal *j = MEM_NEW(struct journal);

    j->loop = loop;
    j->path = mem_strdup(path);
    j->port = (struct journal_port){ .replay = do_replay,
                                     .append = do_append, .impl = j };
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->wake, NULL);
    if (open_db(j, err) < 0 || start_writer(j, err) < 0) {
        journal_close(j);
        return NULL;
    }
    return j;
}

struct journal_port *journal_port(struct journal *j)
{
    return &j->port;
}

/* Answers that were posted and not yet delivered still name the journal: it
 * is freed behind them. */
static void free_later(void *arg)
{
    free(arg);
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    j->closed = true;
    if (j->started) {
        pthread_mutex_lock(&j->lock);
        j->quit = true;
        pthread_cond_signal(&j->wake);
        pthread_mutex_unlock(&j->lock);
        pthread_join(j->thread, NULL);
    }
    sqlite3_finalize(j->put);
    sqlite3_finalize(j->del);
    sqlite3_finalize(j->all);
    sqlite3_close(j->db);
    pthread_cond_destroy(&j->wake);
    pthread_mutex_destroy(&j->lock);
    free(j->path);
    loop_post(j->loop, free_later, j);
}
