/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store: schema against schema.h, rows in and out, jobs that fail alone in
 * their group, lanes, the watch, durability of what was answered, refusal of
 * files that are newer, foreign, damaged or in use.
 */

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include "core/store/store_sqlite_mig.h"
#include "tests/unit/store_util.h"

static int setup(void **state)
{
    struct store_world *w = MEM_NEW(struct store_world);

    store_world_make(w);
    store_world_open(w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    store_world_end(*state);
    free(*state);
    return 0;
}

static void token_row(struct store_row *row, const char *uuid)
{
    store_set_str(row, T_uuid, uuid);
    store_set_str(row, T_owner_uuid, "o");
    store_set_str(row, T_user_name, "name");
    store_set_i64(row, T_is_admin, 0);
    store_set_str(row, T_secret_hash, uuid);
    store_set_i64(row, T_created_at, 5);
    store_set_i64(row, T_modified_at, 5);
    store_set_str(row, T_scopes, "[\"all\"]");
}

static int put_token(struct store_tx *tx, const char *uuid, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row row = {0};

    token_row(&row, uuid);
    return store_insert(tx, STORE_TOKENS, &row, err);
}

/* ------------------------------------------------------------- schema -- */

static void check_column(sqlite3_stmt *s, enum store_table t, unsigned col)
{
    static const char *const types[] = {
        [STORE_STR] = "TEXT",     [STORE_I64] = "INTEGER",
        [STORE_F64] = "REAL",     [STORE_BOOL] = "INTEGER",
        [STORE_TIME] = "INTEGER", [STORE_JSON] = "TEXT"};
    const struct store_col *c = store_col(t, col);

    assert_string_equal((const char *) sqlite3_column_text(s, 1), c->name);
    assert_string_equal((const char *) sqlite3_column_text(s, 2),
                        types[c->type]);
    assert_int_equal(sqlite3_column_int(s, 3),
                     !(c->flags & STORE_NULLABLE));
    assert_int_equal(sqlite3_column_int(s, 5), col == 0);
}

static void tables_are_what_the_lists_say(void **state)
{
    struct store_world *w = *state;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    for (unsigned t = 0; t < STORE_TABLE_COUNT; t++) {
        CLEANUP(mem_free) char *sql =
            mem_printf("PRAGMA table_info(%s)", store_table_name(t));
        sqlite3_stmt *s;
        unsigned n = 0;
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL),
                         SQLITE_OK);
        while (sqlite3_step(s) == SQLITE_ROW)
            check_column(s, t, n++);
        sqlite3_finalize(s);
        assert_int_equal(n, store_col_count(t));
        assert_int_equal(store_col_of(t, store_col(t, n - 1)->name), n - 1);
        assert_int_equal(store_col_of(t, "nope"), -1);
    }
    sqlite3_close(db);
}

/* --------------------------------------------------------------- rows -- */

static enum store_next row_round_trip(void *arg, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err err = {0};

    (void) arg;
    assert_true(store_writable(tx));
    assert_ok(put_token(tx, "t1", &err), &err);
    assert_err(put_token(tx, "t1", &err), &err, ERR_CONFLICT);
    assert_ok(store_get(tx, STORE_TOKENS, "t1", STORE_ALL, &row, &err),
              &err);
    assert_string_equal(store_str(&row, T_user_name), "name");
    assert_int_equal(store_i64(&row, T_created_at), 5);
    assert_false(store_has(&row, T_expires_at));

    store_row_fini(&row);
    store_set_str(&row, T_user_name, "other");
    store_set_i64(&row, T_expires_at, 9);
    assert_ok(store_update(tx, STORE_TOKENS, "t1", &row, &err), &err);
    assert_err(store_update(tx, STORE_TOKENS, "t2", &row, &err), &err,
               ERR_NOT_FOUND);
    assert_ok(store_get(tx, STORE_TOKENS, "t1",
                        STORE_BIT(T_user_name) | STORE_BIT(T_expires_at),
                        &row, &err), &err);
    assert_string_equal(store_str(&row, T_user_name), "other");
    assert_int_equal(store_i64(&row, T_expires_at), 9);
    assert_false(row.set & STORE_BIT(T_uuid));

    assert_ok(store_delete(tx, STORE_TOKENS, "t1", &err), &err);
    assert_err(store_delete(tx, STORE_TOKENS, "t1", &err), &err,
               ERR_NOT_FOUND);
    return STORE_DONE;
}

static void a_row_comes_back_as_it_went_in(void **state)
{
    assert_true(store_run(*state, STORE_WRITE, row_round_trip, NULL) > 0);
}

static enum store_next prune(void *arg, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err err = {0};
    int64_t n = -1;

    (void) arg;
    for (int i = 0; i < 5; i++) {
        char uuid[8];
        snprintf(uuid, sizeof uuid, "p%d", i);
        assert_ok(put_token(tx, uuid, &err), &err);
        if (i == 4)
            continue; /* never expires */
        store_set_i64(&row, T_expires_at, i);
        assert_ok(store_update(tx, STORE_TOKENS, uuid, &row, &err), &err);
    }
    assert_ok(store_prune(tx, STORE_TOKENS, T_expires_at, 3, 2, &n, &err),
              &err);
    assert_int_equal(n, 2);
    assert_ok(store_prune(tx, STORE_TOKENS, T_expires_at, 3, 9, &n, &err),
              &err);
    assert_int_equal(n, 1);
    return STORE_ABORT;
}

static void pruning_is_bounded(void **state)
{
    store_run(*state, STORE_WRITE, prune, NULL);
}

/* ------------------------------------------------------------- groups -- */

struct grouped {
    struct store_call call;
    char uuid[8];
    bool fails;
};

static enum store_next insert_or_fail(void *arg, struct store_tx *tx)
{
    struct grouped *g = arg;
    struct err err = {0};

    assert_ok(put_token(tx, g->uuid, &err), &err);
    return g->fails ? STORE_ABORT : STORE_DONE;
}

static enum store_next block(void *arg, struct store_tx *tx)
{
    (void) tx;
    usleep(*(useconds_t *) arg);
    return STORE_DONE;
}

static bool count_row(void *arg, const struct store_row *row)
{
    (void) row;
    ++*(int *) arg;
    return true;
}

static enum store_next count_tokens(void *arg, struct store_tx *tx)
{
    struct store_query q = {.table = STORE_TOKENS, .cols = STORE_ALL,
                            .limit = -1};
    struct err err = {0};

    assert_ok(store_find(tx, &q, count_row, arg, &err), &err);
    return STORE_DONE;
}

static void a_job_fails_alone_in_its_group(void **state)
{
    struct store_world *w = *state;
    struct grouped g[20];
    useconds_t wait = 20000; /* the others gather behind this one */
    int left = MEM_COUNT(g) + 1, n = 0;
    const struct store_call model = {.job = {.run = store_call_run,
                                             .done = store_call_done},
                                     .fn = block, .arg = &wait, .w = w,
                                     .left = &left};
    struct store_call first = model;
    struct store_stats stats;

    assert_int_equal(store_submit(w->st, &first.job, STORE_WRITE, NULL), 0);
    for (size_t i = 0; i < MEM_COUNT(g); i++) {
        g[i] = (struct grouped){.call = model, .fails = i % 3 == 0};
        snprintf(g[i].uuid, sizeof g[i].uuid, "g%zu", i);
        g[i].call.fn = insert_or_fail;
        g[i].call.arg = &g[i];
        assert_int_equal(store_submit(w->st, &g[i].call.job, STORE_WRITE,
                                      NULL), 0);
    }
    loop_run(w->l);
    store_run(w, STORE_READ, count_tokens, &n);
    assert_int_equal(n, 13);
    for (size_t i = 0; i < MEM_COUNT(g); i++)
        assert_int_equal(g[i].call.job.seq > 0, !g[i].fails);
    store_get_stats(w->st, &stats);
    assert_true(stats.commits <= 2); /* grouped, not one by one */
}

struct wanderer {
    int step;
    char lanes[4];
};

static enum store_next wander(void *arg, struct store_tx *tx)
{
    static const enum store_next next[] = {STORE_WRITE, STORE_SLOW,
                                           STORE_WRITE, STORE_DONE};
    struct wanderer *wd = arg;
    struct err err = {0};

    wd->lanes[wd->step] = !tx ? 's' : store_writable(tx) ? 'w' : 'r';
    if (store_writable(tx)) /* the first of the two is undone */
        assert_ok(put_token(tx, "wd", &err), &err);
    return next[wd->step++];
}

static void a_job_may_change_lanes(void **state)
{
    struct wanderer wd = {0};
    int n = 0;

    store_run(*state, STORE_READ, wander, &wd);
    assert_memory_equal(wd.lanes, "rwsw", 4);
    store_run(*state, STORE_READ, count_tokens, &n);
    assert_int_equal(n, 1);
}

static void a_full_queue_is_refused(void **state)
{
    struct store_world *w = *state;
    struct store_opts opts = {.path = w->path, .full = true, .readers = 1,
                              .max_queued = 1};
    useconds_t wait = 50000;
    int left = 0, refused = 0;
    struct store_call calls[8];
    struct err err = {0};

    store_close(w->st);
    assert_ok(store_open(w->l, &opts, &w->st, &err), &err);
    for (size_t i = 0; i < MEM_COUNT(calls); i++) {
        calls[i] = (struct store_call){
            .job = {.run = store_call_run, .done = store_call_done},
            .fn = block, .arg = &wait, .w = w, .left = &left};
        if (store_submit(w->st, &calls[i].job, STORE_READ, &err) == 0) {
            left++;
            continue;
        }
        assert_int_equal(err.class, ERR_RATE_LIMITED);
        refused++;
    }
    loop_run(w->l);
    assert_true(refused >= 6);
}

/* -------------------------------------------------------------- watch -- */

struct seen {
    int64_t seq;
    int n;
    bool answered; /* the job's done() came first: wrong */
    char key[8];
};

static void on_change(void *arg, int64_t seq, enum store_table t,
                      const char *key)
{
    struct seen *s = arg;

    assert_int_equal(t, STORE_REQUESTS);
    s->seq = seq;
    s->n++;
    snprintf(s->key, sizeof s->key, "%s", key);
}

static void request_row(struct store_row *row, const char *uuid)
{
    for (unsigned col = 0; col < R_COUNT; col++) {
        const struct store_col *c = store_col(STORE_REQUESTS, col);
        if (c->flags & STORE_NULLABLE)
            continue;
        if (c->type == STORE_STR || c->type == STORE_JSON)
            store_set_str(row, col, "{}");
        else if (c->type == STORE_F64)
            store_set_f64(row, col, 0);
        else
            store_set_i64(row, col, 1);
    }
    store_set_str(row, R_uuid, uuid);
}

static enum store_next change_twice(void *arg, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row row = {0}, more = {0};
    struct err err = {0};

    (void) arg;
    request_row(&row, "r1");
    assert_ok(store_insert(tx, STORE_REQUESTS, &row, &err), &err);
    store_set_str(&more, R_name, "x");
    assert_ok(store_update(tx, STORE_REQUESTS, "r1", &more, &err), &err);
    return STORE_DONE;
}

static enum store_next change_and_undo(void *arg, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err err = {0};

    (void) arg;
    request_row(&row, "r2");
    assert_ok(store_insert(tx, STORE_REQUESTS, &row, &err), &err);
    return STORE_ABORT;
}

static void a_change_is_told_once_and_only_if_committed(void **state)
{
    struct store_world *w = *state;
    struct seen seen = {0};
    int64_t seq;

    store_watch(w->st, on_change, &seen);
    seq = store_run(w, STORE_WRITE, change_twice, NULL);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.seq, seq);
    assert_string_equal(seen.key, "r1");
    assert_int_equal(store_run(w, STORE_WRITE, change_and_undo, NULL), 0);
    assert_int_equal(seen.n, 1);
}

/* --------------------------------------------------------- durability -- */

struct writer_child {
    struct store_world *w;
    struct store_call call;
    struct err err;
    int n;
    int fd;
};

static enum store_next child_insert(void *arg, struct store_tx *tx)
{
    struct writer_child *c = arg;
    char uuid[16];

    snprintf(uuid, sizeof uuid, "k%d", c->n);
    return put_token(tx, uuid, &c->err) == 0 ? STORE_DONE : STORE_ABORT;
}

/* Answered: tell the parent, go on. */
static void child_next(struct store_job *job)
{
    struct writer_child *c = MEM_CONTAINER(job, struct writer_child,
                                           call.job);

    if (job->seq > 0 && write(c->fd, &c->n, sizeof c->n) != sizeof c->n)
        _exit(1);
    c->n++;
    store_submit(c->w->st, job, STORE_WRITE, NULL);
}

static void child_main(struct store_world *w, int first, int fd)
{
    struct writer_child c = {.w = w, .n = first, .fd = fd};

    w->l = loop_create(NULL);
    store_world_open(w);
    c.call = (struct store_call){.job = {.run = store_call_run,
                                         .done = child_next},
                                 .fn = child_insert, .arg = &c};
    store_submit(w->st, &c.call.job, STORE_WRITE, NULL);
    loop_run(w->l);
    _exit(1);
}

static enum store_next find_token(void *arg, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err err = {0};

    assert_ok(store_get(tx, STORE_TOKENS, arg, STORE_ALL, &row, &err), &err);
    return STORE_DONE;
}

static int kill_one_round(struct store_world *w, int first, int acks)
{
    int fds[2], n = 0, seen = 0, status;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child_main(w, first, fds[1]);
    close(fds[1]);
    while (read(fds[0], &n, sizeof n) == sizeof n && ++seen)
        if (seen == acks)
            kill(pid, SIGKILL);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_true(seen >= acks);
    return n;
}

static void what_was_answered_survives_kill_9(void **state)
{
    struct store_world *w = *state;
    int last = -1;

    store_close(w->st);
    w->st = NULL;
    for (int round = 0; round < 4; round++) {
        char uuid[16];
        int first = last + 1000; /* what was not answered may be there */
        last = kill_one_round(w, first, 7 * round + 3);
        store_world_open(w);
        for (int i = first; i <= last; i++) {
            snprintf(uuid, sizeof uuid, "k%d", i);
            store_run(w, STORE_READ, find_token, uuid);
        }
        store_close(w->st);
        w->st = NULL;
    }
}

/* ----------------------------------------------------------- refusals -- */

static void exec_on(const char *path, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void assert_refused(struct store_world *w, const char *text)
{
    struct store_opts opts = {.path = w->path, .full = true};
    struct store *st = NULL;
    struct err err;

    assert_err(store_open(w->l, &opts, &st, &err), &err, ERR_CONFIG);
    assert_null(st);
    if (!strstr(err.text, text))
        fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

static void a_store_in_use_is_refused(void **state)
{
    assert_refused(*state, "in use");
}

static void a_newer_database_is_refused(void **state)
{
    struct store_world *w = *state;

    store_close(w->st);
    w->st = NULL;
    exec_on(w->path, "PRAGMA user_version = 9999");
    assert_refused(w, "schema version 9999, this program knows up to");
}

static void a_foreign_database_is_refused(void **state)
{
    struct store_world *w = *state;

    store_close(w->st);
    w->st = NULL;
    unlink(w->path);
    exec_on(w->path, "CREATE TABLE diary (day TEXT)");
    assert_refused(w, "another program");
}

static void a_damaged_database_is_refused(void **state)
{
    struct store_world *w = *state;
    char junk[4096];
    int fd;

    store_close(w->st);
    w->st = NULL;
    memset(junk, 0xa5, sizeof junk);
    fd = open(w->path, O_WRONLY);
    assert_true(fd >= 0);
    for (int page = 1; page < 5; page++)
        assert_int_equal(pwrite(fd, junk, sizeof junk, page * 4096),
                         sizeof junk);
    close(fd);
    assert_refused(w, "damaged");
}

/* Found by the first statement, before anything is checked. */
static void a_cut_database_is_refused(void **state)
{
    struct store_world *w = *state;
    CLEANUP(mem_free) char *wanted = mem_printf("%s is damaged", w->path);

    store_close(w->st);
    w->st = NULL;
    assert_int_equal(truncate(w->path, 3 * 4096), 0);
    assert_refused(w, wanted);
    assert_int_equal(truncate(w->path, 600), 0);
    assert_refused(w, wanted);
}

/* --------------------------------------------------------- migrations -- */

static const struct mig_step two_steps[] = {
    {1, {"CREATE TABLE a (x TEXT)", "INSERT INTO a VALUES ('kept')"}},
    {2, {"ALTER TABLE a ADD COLUMN y INTEGER"}},
};

static const struct mig_step broken_steps[] = {
    {1, {"CREATE TABLE a (x TEXT)"}},
    {2, {"CREATE TABLE b (x TEXT)", "CREATE TABLE b (x TEXT)"}},
};

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s;
    int64_t ret;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    ret = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return ret;
}

static void an_old_database_is_brought_up_to_date(void **state)
{
    struct err err = {0};
    sqlite3 *db;

    (void) state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_ok(mig_apply(db, "x", two_steps, 1, &err), &err);
    assert_int_equal(ask(db, "PRAGMA user_version"), 1);
    assert_ok(mig_apply(db, "x", two_steps, 2, &err), &err);
    assert_ok(mig_apply(db, "x", two_steps, 2, &err), &err); /* again */
    assert_int_equal(ask(db, "PRAGMA user_version"), 2);
    assert_int_equal(ask(db, "SELECT count(y IS NULL) FROM a"
                             " WHERE x = 'kept'"), 1);
    assert_err(mig_apply(db, "x", two_steps, 1, &err), &err, ERR_CONFIG);
    sqlite3_close(db);
}

static void a_step_that_fails_leaves_the_version_before(void **state)
{
    struct err err = {0};
    sqlite3 *db;

    (void) state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_err(mig_apply(db, "x", broken_steps, 2, &err), &err,
               ERR_INTERNAL);
    assert_int_equal(ask(db, "PRAGMA user_version"), 1);
    assert_int_equal(ask(db, "SELECT count(*) FROM sqlite_schema"), 1);
    sqlite3_close(db);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(tables_are_what_the_lists_say),
        T(a_row_comes_back_as_it_went_in),
        T(pruning_is_bounded),
        T(a_job_fails_alone_in_its_group),
        T(a_job_may_change_lanes),
        T(a_full_queue_is_refused),
        T(a_change_is_told_once_and_only_if_committed),
        T(what_was_answered_survives_kill_9),
        T(a_store_in_use_is_refused),
        T(a_newer_database_is_refused),
        T(a_foreign_database_is_refused),
        T(a_damaged_database_is_refused),
        T(a_cut_database_is_refused),
        cmocka_unit_test(an_old_database_is_brought_up_to_date),
        cmocka_unit_test(a_step_that_fails_leaves_the_version_before),
    };

    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
