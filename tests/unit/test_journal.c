/* SPDX-License-Identifier: Apache-2.0 */
/* journal and state_dir: what was acknowledged is there after a kill -9, in
 * order; damaged, foreign and newer files are refused; one lock holder. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sqlite3.h>
#include <cmocka.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/io/loop.h"
#include "core/port/journal.h"
#include "core/base/text.h"
#include "core/store/journal.h"
#include "core/store/state_dir.h"

static char dir[] = "/tmp/cdc-test-journal-XXXXXX";
static char path[100];
static struct loop *loop;
static struct journal_rec seen[100];
static size_t n_seen;
static struct op_result last;

static void on_rec(void *arg, const struct journal_rec *rec)
{
    (void) arg;
    assert_true(n_seen < MEM_COUNT(seen));
    seen[n_seen++] = *rec;
}

static void on_end(void *arg, const struct op_result *r)
{
    (void) arg;
    last = *r;
    loop_stop(loop);
}

static struct journal *reopen(struct journal *j)
{
    struct err err;

    journal_close(j);
    j = journal_open(loop, path, &err);
    if (!j)
        fail_msg("%s", err.text);
    return j;
}

static void replay(struct journal *j)
{
    n_seen = 0;
    journal_port(j)->replay(journal_port(j), on_rec, on_end, NULL);
    loop_run(loop);
    assert_int_equal(last.outcome, OP_DONE);
}

static void append(struct journal *j, const struct journal_rec *recs, size_t n)
{
    journal_port(j)->append(journal_port(j), recs, n, on_end, NULL);
    loop_run(loop);
    assert_int_equal(last.outcome, OP_DONE);
}

static struct journal_rec record(enum journal_kind kind, const char *key)
{
    struct journal_rec rec = { .kind = kind, .attempt = 7, .count = 2,
                               .at_us = 1234567890123456 };

    snprintf(rec.key, sizeof rec.key, "%s", key);
    text_copy(rec.backend, "here", sizeof rec.backend);
    text_copy(rec.instance, "i-1", sizeof rec.instance);
    text_copy(rec.hostkey, "SHA256:abc", sizeof rec.hostkey);
    return rec;
}

static void test_put_replace_delete(void **state)
{
    struct journal *j = reopen(NULL);
    struct journal_rec r[2] = { record(JOURNAL_START, "b"),
                                record(JOURNAL_CREATE, "z") };

    (void) state;
    append(j, r, 2);
    text_copy(r[0].instance, "i-2", sizeof r[0].instance);
    append(j, r, 1);
    j = reopen(j);
    replay(j);
    assert_int_equal(n_seen, 2);
    assert_int_equal(seen[0].kind, JOURNAL_CREATE);
    assert_memory_equal(&seen[1], &r[0], sizeof r[0]);
    r[0].deleted = r[1].deleted = true;
    append(j, r, 2);
    replay(j);
    assert_int_equal(n_seen, 0);
    journal_close(j);
}

/* A child appends without end and says what was acknowledged; it is killed;
 * what it said must be there, and nothing beyond an unbroken sequence. */
static int acked[2];
static struct journal *child_j;
static int next_no;

static void append_next(void);

static void on_ack(void *arg, const struct op_result *r)
{
    int no = (int) (intptr_t) arg;

    if (r->outcome != OP_DONE ||
        write(acked[1], &no, sizeof no) != sizeof no)
        _exit(1);
    append_next();
}

static void append_next(void)
{
    char key[20];
    struct journal_rec r;

    snprintf(key, sizeof key, "%08d", next_no);
    r = record(JOURNAL_QUEUE, key);
    journal_port(child_j)->append(journal_port(child_j), &r, 1, on_ack,
                                  (void *) (intptr_t) next_no++);
}

static void child(void)
{
    struct err err;
    struct loop *l = loop_create(&err);

    child_j = journal_open(l, path, &err);
    for (int i = 0; i < 5; i++)
        append_next();
    loop_run(l);
    _exit(2);
}

static void test_kill(void **state)
{
    int no, highest = -1;
    pid_t pid;
    struct journal *j;

    (void) state;
    assert_int_equal(pipe2(acked, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0)
        child();
    close(acked[1]);
    while (highest < 50 && read(acked[0], &no, sizeof no) == sizeof no)
        highest = no;
    kill(pid, SIGKILL);
    while (read(acked[0], &no, sizeof no) == sizeof no)
        highest = no;
    waitpid(pid, NULL, 0);
    j = reopen(NULL);
    replay(j);
    assert_true((int) n_seen > highest);
    for (size_t i = 0; i < n_seen; i++)
        assert_int_equal(atoi(seen[i].key), (int) i);
    journal_close(j);
}

static void expect_refusal(const char *want, enum err_class class)
{
    struct err err;

    assert_null(journal_open(loop, path, &err));
    assert_int_equal(err.class, class);
    if (!strstr(err.text, want))
        fail_msg("\"%s\" lacks \"%s\"", err.text, want);
}

static void sql(const char *text)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_newer_and_foreign(void **state)
{
    (void) state;
    journal_close(reopen(NULL));
    sql("PRAGMA user_version=99");
    expect_refusal("newer version", ERR_CONFIG);
    sql("PRAGMA user_version=1; PRAGMA application_id=5");
    expect_refusal("not a journal", ERR_CONFIG);
}

static void test_damaged(void **state)
{
    FILE *f;

    (void) state;
    unlink(path);
    f = fopen(path, "w");
    for (int i = 0; i < 5000; i++)
        fputs("this is no database", f);
    fclose(f);
    expect_refusal("damaged", ERR_INTERNAL);
    unlink(path);
}

static void test_state_dir(void **state)
{
    struct err err;
    char sub[200];
    int fd, status;
    pid_t pid;

    (void) state;
    snprintf(sub, sizeof sub, "%s/state", dir);
    fd = state_dir_lock(sub, &err);
    assert_true(fd >= 0);
    pid = fork();
    if (pid == 0) {
        int second = state_dir_lock(sub, &err);

        _exit(second < 0 && err.class == ERR_CONFLICT &&
                      strstr(err.text, "in use by process")
                  ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    close(fd);
    fd = state_dir_lock(sub, &err);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(state_dir_lock("/proc/nowhere/x", &err), -1);
    assert_int_equal(err.class, ERR_CONFIG);
}

static int setup(void **state)
{
    struct err err;

    (void) state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/journal.sqlite", dir);
    loop = loop_create(&err);
    return loop ? 0 : -1;
}

static int teardown(void **state)
{
    char cmd[200];

    (void) state;
    loop_destroy(loop);
    snprintf(cmd, sizeof cmd, "%s/state/lock", dir);
    unlink(cmd);
    snprintf(cmd, sizeof cmd, "%s/state", dir);
    rmdir(cmd);
    for (const char *const *s = (const char *const[]){ "", "-wal", "-shm",
                                                       NULL }; *s; s++) {
        snprintf(cmd, sizeof cmd, "%s%s", path, *s);
        unlink(cmd);
    }
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_replace_delete),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_newer_and_foreign),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_state_dir),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
