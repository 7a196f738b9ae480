/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/fault: what arms it, what does not, what each action does. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fault.h"
#include "core/base/mem.h"

enum { OK = 0, BAD_INIT = 10, WRONG = 11 };

static int memfd_of(const char *rules)
{
    int fd = memfd_create("rules", 0);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, rules, strlen(rules)), strlen(rules));
    return fd;
}

static void arm(int fd)
{
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    setenv("CDC_FAULT_FD", number, 1);
}

/* Run body in a child that is armed with fd; its wait status. */
static int in_child(int fd, int (*body)(void), int options)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct err err;
        arm(fd);
        int rc = fault_init(&err);
        if (getenv("CDC_FAULT_FD") || fcntl(fd, F_GETFD) >= 0)
            _exit(WRONG);
        _exit(rc < 0 ? BAD_INIT : body());
    }
    close(fd);
    assert_int_equal(waitpid(pid, &status, options), pid);
    if (WIFSTOPPED(status)) {
        int after;
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, &after, 0), pid);
        assert_true(WIFEXITED(after));
        assert_int_equal(WEXITSTATUS(after), OK);
    }
    return status;
}

static int body_third(void)
{
    for (int i = 1; i <= 5; i++)
        if (fault_hit(FAULT_AFTER_LOCK) != (i == 3))
            return WRONG;
    return fault_hit(FAULT_AFTER_CREATE) ? WRONG : OK;
}

static int body_once(void)
{
    return fault_hit(FAULT_AFTER_INTENT) ? WRONG : OK;
}

static int body_delay(void)
{
    int64_t start = clock_mono_us();
    if (fault_hit(FAULT_COMMIT_SLOW))
        return WRONG;
    return clock_mono_us() - start >= 50000 ? OK : WRONG;
}

static void test_unarmed(void **state)
{
    (void) state;
    struct err err;
    unsetenv("CDC_FAULT_FD");
    assert_ok(fault_init(&err), &err);
    for (int i = 0; i < FAULT_COUNT; i++)
        assert_false(fault_hit((enum fault_point) i));
}

static void test_fail_at_nth(void **state)
{
    (void) state;
    int status = in_child(memfd_of("AFTER_LOCK:3:fail\n"), body_third, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), OK);
}

static void test_pipe(void **state)
{
    (void) state;
    static const char rules[] = "\nAFTER_LOCK:3:fail\n\n";
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], rules, sizeof rules - 1),
                     sizeof rules - 1);
    /* The write end stays open: reading must not wait for its end. */
    int status = in_child(fds[0], body_third, 0);
    close(fds[1]);
    assert_int_equal(WEXITSTATUS(status), OK);
}

static void test_kill(void **state)
{
    (void) state;
    int status = in_child(memfd_of("AFTER_INTENT:1:kill"), body_once, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void test_stop(void **state)
{
    (void) state;
    int status = in_child(memfd_of("AFTER_INTENT:1:stop"), body_once,
                          WUNTRACED);
    assert_true(WIFSTOPPED(status));
}

static void test_delay(void **state)
{
    (void) state;
    int status = in_child(memfd_of("COMMIT_SLOW:1:delay=50"), body_delay, 0);
    assert_int_equal(WEXITSTATUS(status), OK);
}

static void test_malformed(void **state)
{
    (void) state;
    static const char *const bad[] = {
        "NO_SUCH:1:kill", "AFTER_LOCK",        "AFTER_LOCK:1",
        "AFTER_LOCK:0:kill", "AFTER_LOCK:x:kill", "AFTER_LOCK:1:explode",
        "AFTER_LOCK:1:delay=", "AFTER_LOCK:1:fail\nAFTER_LOCK:-1:fail",
    };
    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        int status = in_child(memfd_of(bad[i]), body_once, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), BAD_INIT);
    }
}

static void check_named_file(char *template)
{
    static const char rules[] = "AFTER_INTENT:1:fail\n";
    int fd = mkstemp(template);
    if (fd < 0)
        return; /* no such folder here */
    assert_int_equal(write(fd, rules, sizeof rules - 1), sizeof rules - 1);
    int status = in_child(fd, body_once, 0);
    unlink(template);
    assert_int_equal(WEXITSTATUS(status), BAD_INIT);
}

/* A file with a name arms nothing, whoever opened it; not on tmpfs either,
 * where files are made of the same stuff as a memfd. */
static void test_named_file(void **state)
{
    (void) state;
    char on_disk[] = "/var/tmp/test_fault.XXXXXX";
    char on_tmpfs[] = "/dev/shm/test_fault.XXXXXX";
    check_named_file(on_disk);
    check_named_file(on_tmpfs);
    int status = in_child(open("/dev/zero", O_RDONLY), body_once, 0);
    assert_int_equal(WEXITSTATUS(status), BAD_INIT);
}

static void test_bad_number(void **state)
{
    (void) state;
    static const char *const bad[] = {"", "x", "-1", "0", "2", "99999999999",
                                      "12345"};
    struct err err;
    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        setenv("CDC_FAULT_FD", bad[i], 1);
        err_clear(&err);
        assert_int_equal(fault_init(&err), -1);
        assert_true(err.text[0] != '\0');
    }
    unsetenv("CDC_FAULT_FD");
    assert_true(fcntl(STDERR_FILENO, F_GETFD) >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unarmed),   cmocka_unit_test(test_fail_at_nth),
        cmocka_unit_test(test_pipe),      cmocka_unit_test(test_kill),
        cmocka_unit_test(test_stop),      cmocka_unit_test(test_delay),
        cmocka_unit_test(test_malformed), cmocka_unit_test(test_named_file),
        cmocka_unit_test(test_bad_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
