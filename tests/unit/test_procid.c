/* SPDX-License-Identifier: Apache-2.0 */
/* core/isolate/procid: the same process, another one, none. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/isolate/procid.h"

static pid_t sleeper(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        alarm(60);
        for (;;)
            pause();
    }
    return pid;
}

static void test_parse_stat(void **state)
{
    uint64_t start = 0;
    char letter = 0;
    struct err err;

    (void) state;
    assert_ok(procid_parse_stat(
        "7 (a) b (c) R 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9",
        &start, &letter, &err), &err);
    assert_int_equal(start, 4242);
    assert_int_equal(letter, 'R');
    assert_err(procid_parse_stat("7 (a) R 1 2 3", &start, NULL, &err), &err,
               ERR_INVALID);
    assert_err(procid_parse_stat("", &start, NULL, &err), &err, ERR_INVALID);
    assert_err(procid_parse_stat("7 (a)", &start, NULL, &err), &err,
               ERR_INVALID);
    assert_int_equal(start, 4242);
}

static void test_text(void **state)
{
    static const char *const bad[] = {
        "", "1 2 3", "0 2 3 01234567-0123-0123-0123-0123456789ab",
        "1 2 3 01234567-0123-0123-0123-0123456789a",
        "1 2 3 01234567-0123-0123-0123-0123456789ab x",
        " 1 2 3 01234567-0123-0123-0123-0123456789ab",
        "1 -2 3 01234567-0123-0123-0123-0123456789ab",
    };
    struct procid id, again;
    char text[PROCID_TEXT_SIZE];
    struct err err;
    size_t i;

    (void) state;
    assert_ok(procid_get(0, &id, &err), &err);
    assert_int_equal(id.pid, getpid());
    assert_ok(procid_parse(procid_print(&id, text), &again, &err), &err);
    assert_memory_equal(id.boot, again.boot, sizeof id.boot);
    assert_int_equal(id.start, again.start);
    assert_int_equal(id.pidns, again.pidns);
    for (i = 0; i < MEM_COUNT(bad); i++)
        assert_err(procid_parse(bad[i], &again, &err), &err, ERR_INVALID);
}

static void test_life_and_death(void **state)
{
    pid_t pid = sleeper();
    struct procid id;
    struct err err;
    int fd = -1;

    (void) state;
    assert_ok(procid_get(pid, &id, &err), &err);
    assert_ok(procid_open(&id, &fd, &err), &err);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_false(procid_wait(fd, 0));
    assert_true(procid_alive(&id));
    kill(pid, SIGKILL);
    assert_true(procid_wait(fd, 5000));
    close(fd);
    fd = -1;
    /* A zombie still has its number and its start time. */
    assert_err(procid_open(&id, &fd, &err), &err, ERR_NOT_FOUND);
    assert_err(procid_get(pid, &id, &err), &err, ERR_NOT_FOUND);
    waitpid(pid, NULL, 0);
    assert_err(procid_open(&id, &fd, &err), &err, ERR_NOT_FOUND);
    assert_int_equal(fd, -1);
}

static void test_another_process(void **state)
{
    struct procid id, other;
    struct err err;
    int fd = -1;

    (void) state;
    assert_ok(procid_get(0, &id, &err), &err);
    other = id;
    other.start++;
    assert_err(procid_open(&other, &fd, &err), &err, ERR_NOT_FOUND);
    other = id;
    other.pidns++;
    assert_err(procid_open(&other, &fd, &err), &err, ERR_NOT_FOUND);
    other.pidns = 0;
    assert_true(procid_alive(&other));
    other.boot[0] = other.boot[0] == '0' ? '1' : '0';
    assert_false(procid_alive(&other));
    other.pid = 0;
    assert_false(procid_alive(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_stat),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_life_and_death),
        cmocka_unit_test(test_another_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
