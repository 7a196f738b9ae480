/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --watch and --list, run for real in child processes on a lock folder of our
 * own: which lines come, in which order, and how soon.
 */
#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/runner/host.h"
#include "core/runner/lockfile.h"
#include "core/runner/node.h"

#define A "zzzzz-dz642-aaaaaaaaaaaaaaa"
#define B "zzzzz-dz642-bbbbbbbbbbbbbbb"

static char dir[] = "/tmp/test-watch-XXXXXX";
static struct node node = {.lock_dir = dir, .scratch_dir = dir};
static struct err err;

static pid_t watcher;
static int to_watcher = -1;
static FILE *from_watcher;

static void start_watch(void)
{
    int in[2], out[2];

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    watcher = fork();
    if (watcher == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        _exit(host_watch(&node));
    }
    close(in[0]);
    close(out[1]);
    to_watcher = in[1];
    from_watcher = fdopen(out[0], "r");
}

static void stop_watch(void)
{
    int status;

    close(to_watcher);
    to_watcher = -1;
    assert_int_equal(waitpid(watcher, &status, 0), watcher);
    assert_int_equal(status, 0);
    fclose(from_watcher);
}

/* The next line within 5 s; its event must be this, its uuid (unless NULL)
 * that. */
static struct jsn *expect(const char *event, const char *uuid)
{
    struct pollfd pf = {.fd = fileno(from_watcher), .events = POLLIN};
    const char *got = "", *who = "";
    char line[1024] = "";
    struct jsn *j;

    /* stdio may hold a line already: then poll would wait in vain */
    setvbuf(from_watcher, NULL, _IONBF, 0);
    if (poll(&pf, 1, 5000) != 1 || !fgets(line, sizeof line, from_watcher))
        fail_msg("no line, %s expected", event);
    j = jsn_parse(line, strlen(line), &err);
    assert_non_null(j);
    assert_ok(jsn_str(j, "event", &got, &err), &err);
    jsn_opt_str(j, "uuid", &who, NULL);
    if (strcmp(got, event) != 0 || (uuid && strcmp(who, uuid) != 0))
        fail_msg("%s %s expected, got %s", event, uuid ? uuid : "", line);
    return j;
}

static void pause_watch(bool yes)
{
    int status;

    kill(watcher, yes ? SIGSTOP : SIGCONT);
    assert_int_equal(waitpid(watcher, &status, yes ? WUNTRACED : WCONTINUED),
                     watcher);
}

static void drop(struct jsn *j)
{
    jsn_free(j);
}

static void expect_attempt(const char *event, const char *uuid,
                           int64_t attempt, pid_t pid)
{
    struct jsn *j = expect(event, uuid);
    int64_t a = -1, p = -1;

    assert_ok(jsn_i64(j, "attempt", &a, &err), &err);
    assert_int_equal(a, attempt);
    if (pid) {
        assert_ok(jsn_i64(j, "pid", &p, &err), &err);
        assert_int_equal(p, pid);
    }
    jsn_free(j);
}

static void begin(void)
{
    struct jsn *j;
    const char *boot;
    int64_t v;

    start_watch();
    j = expect("hello", NULL);
    assert_ok(jsn_i64(j, "v", &v, &err), &err);
    assert_ok(jsn_str(j, "boot", &boot, &err), &err);
    assert_int_equal(v, 1);
    assert_true(strlen(boot) > 36);
    jsn_free(j);
}

/* A supervisor: holds the lock until it is killed; with a helper that keeps a
 * copy until the pipe ends. */
struct super {
    pid_t pid, helper;
    int release;
};

static struct super supervise(const char *uuid, int64_t attempt, bool helper)
{
    struct super s = {0};
    int up[2], p[2];
    char c = 0;

    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(p), 0);
    s.pid = fork();
    if (s.pid == 0) {
        struct lock_info info = {.pid = getpid(), .attempt = attempt,
                                 .start_time = lock_start_time(getpid())};
        int fd;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        text_copy(info.uuid, uuid, sizeof info.uuid);
        if (lock_take(dir, uuid, &fd, NULL) < 0 ||
            lock_write(fd, &info, NULL) < 0)
            _exit(1);
        close(p[1]);
        close(to_watcher);
        if (helper && fork() == 0)
            _exit(read(p[0], &c, 1) < 0);
        if (write(up[1], &c, 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    close(up[1]);
    assert_int_equal(read(up[0], &c, 1), 1);
    close(up[0]);
    close(p[0]);
    s.release = p[1];
    return s;
}

static void kill_super(struct super *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
}

static void lives_are_listed_then_sync(void **state)
{
    struct super a = supervise(A, 2, false), b = supervise(B, 1, false);

    (void) state;
    begin();
    /* the order of the folder is not ours to choose */
    drop(expect("run", NULL));
    drop(expect("run", NULL));
    drop(expect("sync", NULL));
    stop_watch();
    kill_super(&a);
    kill_super(&b);
}

static void start_and_exit(void **state)
{
    struct super a;
    int64_t killed;

    (void) state;
    begin();
    drop(expect("sync", NULL));
    a = supervise(A, 5, false);
    expect_attempt("start", A, 5, a.pid);
    killed = clock_mono_us();
    kill_super(&a);
    expect_attempt("exit", A, 5, 0);
    assert_in_range(clock_mono_us() - killed, 0, 1000 * 1000);
    assert_int_equal(access(dir, F_OK), 0);
    stop_watch();
}

static void stale_until_the_helper_ends(void **state)
{
    struct super a;

    (void) state;
    begin();
    drop(expect("sync", NULL));
    a = supervise(A, 5, true);
    expect_attempt("start", A, 5, a.pid);
    kill_super(&a);
    expect_attempt("stale", A, 5, 0);
    close(a.release);
    expect_attempt("exit", A, 5, 0);
    stop_watch();
}

static void stale_before_the_watch_began(void **state)
{
    struct super a = supervise(A, 5, true);

    (void) state;
    kill_super(&a);
    begin();
    expect_attempt("run", A, 5, 0);
    drop(expect("sync", NULL));
    expect_attempt("stale", A, 5, 0);
    close(a.release);
    expect_attempt("exit", A, 5, 0);
    stop_watch();
}

static void the_same_container_again(void **state)
{
    struct super a;

    (void) state;
    begin();
    drop(expect("sync", NULL));
    for (int attempt = 1; attempt <= 20; attempt++) {
        a = supervise(A, attempt, false);
        expect_attempt("start", A, attempt, a.pid);
        kill_super(&a);
        expect_attempt("exit", A, attempt, 0);
    }
    stop_watch();
}

/* A watcher that gets no processor while a container lives its whole life, or
 * ends and lives again, tells of the ends all the same. */
static void lives_between_two_looks(void **state)
{
    struct super a;

    (void) state;
    begin();
    drop(expect("sync", NULL));
    pause_watch(true);
    a = supervise(A, 1, false);
    kill_super(&a);
    pause_watch(false);
    expect_attempt("exit", A, 1, 0);
    a = supervise(A, 2, false);
    expect_attempt("start", A, 2, a.pid);
    pause_watch(true);
    kill_super(&a);
    a = supervise(A, 3, false);
    pause_watch(false);
    expect_attempt("exit", A, 2, 0);
    expect_attempt("start", A, 3, a.pid);
    kill_super(&a);
    expect_attempt("exit", A, 3, 0);
    stop_watch();
}

/* One descriptor left: a free lock file can be looked at, and not collected. */
static void no_descriptor_to_collect_with(void **state)
{
    struct rlimit few = {5, 64}; /* 0 to 2, inotify, the lock file */
    struct super a;

    (void) state;
    begin();
    drop(expect("sync", NULL));
    pause_watch(true);
    assert_int_equal(prlimit(watcher, RLIMIT_NOFILE, &few, NULL), 0);
    a = supervise(A, 1, false);
    kill_super(&a);
    pause_watch(false);
    expect_attempt("exit", A, 1, 0);
    stop_watch();
}

static void broken(void **state)
{
    CLEANUP(mem_free) char *path = mem_printf("%s/crunch-run-broken", dir);

    (void) state;
    begin();
    drop(expect("sync", NULL));
    assert_ok(lock_mark_broken(dir, &err), &err);
    drop(expect("broken", NULL));
    stop_watch();
    unlink(path);
}

/* Standard output of host_list() or host_kill() in a child. */
static char *output_of(int (*run)(void), int *ret_code)
{
    char *text = mem_zalloc(4096);
    size_t len = 0;
    int p[2], status;
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe(p), 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int code;

        dup2(p[1], 1);
        dup2(p[1], 2);
        code = run();
        fflush(NULL);
        _exit(code);
    }
    close(p[1]);
    while ((n = read(p[0], text + len, 4095 - len)) > 0)
        len += (size_t) n;
    close(p[0]);
    waitpid(pid, &status, 0);
    *ret_code = WEXITSTATUS(status);
    return text;
}

static int list(void)
{
    return host_list(&node);
}

static int kill_a(void)
{
    return host_kill(&node, A, SIGTERM);
}

static int touch_a(void)
{
    return host_kill(&node, A, 0);
}

static void listing(void **state)
{
    struct super a = supervise(A, 1, true);
    int code;
    char *text = output_of(list, &code);

    (void) state;
    assert_string_equal(text, A "\n");
    free(text);
    kill_super(&a);
    text = output_of(list, &code);
    assert_string_equal(text, A " stale\n");
    free(text);
    close(a.release);
    do {
        text = output_of(list, &code);
    } while (text[0] && (free(text), true));
    assert_int_equal(code, 0);
    free(text);
}

static void killing(void **state)
{
    struct super a = supervise(A, 1, false);
    int code;

    (void) state;
    free(output_of(touch_a, &code));
    assert_int_equal(code, 1); /* signal 0: it lives */
    kill(a.pid, SIGSTOP);
    assert_int_equal(waitpid(a.pid, NULL, WUNTRACED), a.pid);
    free(output_of(kill_a, &code));
    assert_int_equal(code, 1); /* stopped: it cannot die of TERM */
    kill(a.pid, SIGCONT);
    waitpid(a.pid, NULL, 0);
    free(output_of(kill_a, &code));
    assert_int_equal(code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_and_exit),
        cmocka_unit_test(stale_until_the_helper_ends),
        cmocka_unit_test(stale_before_the_watch_began),
        cmocka_unit_test(the_same_container_again),
        cmocka_unit_test(lives_between_two_looks),
        cmocka_unit_test(no_descriptor_to_collect_with),
        cmocka_unit_test(broken),
        cmocka_unit_test(lives_are_listed_then_sync),
        cmocka_unit_test(listing),
        cmocka_unit_test(killing),
    };
    char *all;
    int failed;

    signal(SIGPIPE, SIG_IGN);
    if (!mkdtemp(dir))
        return 77;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    all = mem_printf("%s/crunch-run-all.lock", dir);
    unlink(all);
    free(all);
    lock_remove(dir, A);
    lock_remove(dir, B);
    all = mem_printf("%s/crunch-run-all.lock", dir);
    unlink(all);
    free(all);
    rmdir(dir);
    return failed;
}
