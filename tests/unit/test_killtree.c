/* SPDX-License-Identifier: Apache-2.0 */
/* core/isolate/killtree: what an unprivileged user can kill. The means that
 * need root are in test_cgroup_live and test_ns. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/isolate/killtree.h"

static void pause_for_ever(void)
{
    alarm(60);
    for (;;)
        pause();
}

/* A child with a grandchild, and a daemon that left both: session and parent
 * of its own. Each writes a byte when it is there. */
static pid_t family(void)
{
    int ready[2], i;
    char c;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        signal(SIGTERM, SIG_IGN);
        if (fork() == 0) {
            setsid();
            if (fork() != 0)
                _exit(write(ready[1], "d", 1) != 1);
            (void) !write(ready[1], "x", 1);
            pause_for_ever();
        }
        (void) !write(ready[1], "m", 1);
        pause_for_ever();
    }
    for (i = 0; i < 3; i++)
        assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void test_no_means(void **state)
{
    struct killtree k = KILLTREE_INIT;
    struct err err;

    (void) state;
    assert_err(killtree_run(&k, 100, &err), &err, ERR_UNSUPPORTED);
}

static void test_subreaper(void **state)
{
    struct killtree k = KILLTREE_INIT;
    struct err err;

    (void) state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    k.subreaper = true;
    assert_ok(killtree_run(&k, 1000, &err), &err);
    k.main_pid = family();
    k.pidfd = pidfd_open(k.main_pid, 0);
    assert_true(k.pidfd >= 0);
    assert_ok(killtree_run(&k, 5000, &err), &err);
    assert_true(k.main_reaped);
    assert_true(WIFSIGNALED(k.main_status));
    assert_int_equal(WTERMSIG(k.main_status), SIGKILL);
    assert_true(k.used & KILLTREE_SUBREAPER);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    close(k.pidfd);
}

static void test_exit_status_is_kept(void **state)
{
    struct killtree k = KILLTREE_INIT;
    struct err err;

    (void) state;
    k.subreaper = true;
    k.main_pid = fork();
    if (k.main_pid == 0)
        _exit(7);
    siginfo_t info;
    waitid(P_PID, (id_t) k.main_pid, &info, WEXITED | WNOWAIT);
    assert_ok(killtree_run(&k, 1000, &err), &err);
    assert_true(k.main_reaped);
    assert_int_equal(WEXITSTATUS(k.main_status), 7);
}

static void test_marked(void **state)
{
    char mark[64];
    struct killtree k = KILLTREE_INIT;
    struct err err;
    pid_t pid, found = 0;
    int i;

    (void) state;
    snprintf(mark, sizeof mark, "CDC_TEST_MARK=%d", (int) getpid());
    assert_int_equal(killtree_find_marked(mark, NULL, 0), 0);
    pid = fork();
    if (pid == 0) {
        char *env[] = {mark, NULL};
        execle("/bin/sleep", "sleep", "60", (char *) NULL, env);
        _exit(127);
    }
    for (i = 0; i < 5000 && !killtree_find_marked(mark, &found, 1); i++)
        usleep(1000);
    assert_int_equal(found, pid);
    k.mark = mark;
    assert_ok(killtree_run(&k, 5000, &err), &err);
    assert_true(k.used & KILLTREE_MARKED);
    assert_int_equal(waitpid(pid, &i, 0), pid);
    assert_true(WIFSIGNALED(i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_means),
        cmocka_unit_test(test_subreaper),
        cmocka_unit_test(test_exit_status_is_kept),
        cmocka_unit_test(test_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
