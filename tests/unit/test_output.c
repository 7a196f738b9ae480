/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting and removing what a payload left: links to secrets, pipes, trees
 * deeper than any path, and the glob patterns that choose.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/runner/glob.h"
#include "core/runner/output.h"
#include "core/runner/report.h"
#include "core/runner/tree.h"

static char top[] = "/tmp/test-output-XXXXXX";
static int top_fd, out_fd;
static struct err err;
static struct buf seen, notes;

static int fresh(void **state)
{
    (void) state;
    assert_ok(tree_remove(top_fd, "out", &err), &err);
    assert_int_equal(mkdirat(top_fd, "out", 0755), 0);
    out_fd = openat(top_fd, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(out_fd >= 0);
    buf_init(&seen, 1 << 20);
    buf_init(&notes, 1 << 20);
    return 0;
}

static int done(void **state)
{
    (void) state;
    close(out_fd);
    buf_fini(&seen);
    buf_fini(&notes);
    return 0;
}

static void file(const char *path, const char *text)
{
    int fd;

    assert_ok(tree_make_parents(out_fd, path, geteuid(), getegid(), &err),
              &err);
    fd = openat(out_fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int put(void *arg, const char *path, int fd, int64_t size,
               struct err *e)
{
    char text[64] = "";

    (void) arg;
    (void) e;
    assert_true(size < (int64_t) sizeof text);
    assert_int_equal(read(fd, text, sizeof text - 1), size);
    buf_printf(&seen, "%s=%s;", path, text);
    return 0;
}

static int put_fails(void *arg, const char *path, int fd, int64_t size,
                     struct err *e)
{
    (void) arg;
    (void) fd;
    (void) size;
    return err_set(e, ERR_TOO_LARGE, "%s: no", path);
}

static void note(void *arg, const char *text)
{
    (void) arg;
    buf_puts(&notes, text);
    buf_putc(&notes, '\n');
}

static struct output output(void)
{
    return (struct output){.root_fd = out_fd, .put = put, .note = note};
}

static void files_in_order(void **state)
{
    struct output o = output();

    (void) state;
    file("b", "2");
    file("a/z", "1");
    file("a b/c", "3");
    file("empty", "");
    assert_int_equal(mkdirat(out_fd, "d", 0755), 0);
    assert_ok(output_collect(&o, &err), &err);
    assert_string_equal(seen.data, "a/z=1;a b/c=3;b=2;empty=;");
    assert_int_equal(o.files, 4);
    assert_int_equal(o.bytes, 3);
    assert_int_equal(o.skipped, 0);
}

static void links_are_never_followed(void **state)
{
    struct output o = output();

    (void) state;
    file("real", "r");
    file("dir/x", "x");
    assert_int_equal(symlinkat("/etc/passwd", out_fd, "abs"), 0);
    assert_int_equal(symlinkat("real", out_fd, "rel"), 0);
    assert_int_equal(symlinkat("../..", out_fd, "up"), 0);
    assert_int_equal(symlinkat("/etc", out_fd, "etc"), 0);
    assert_int_equal(symlinkat("dir", out_fd, "loop"), 0);
    assert_int_equal(symlinkat("/proc/self/fd/0", out_fd, "magic"), 0);
    assert_ok(output_collect(&o, &err), &err);
    assert_string_equal(seen.data, "dir/x=x;real=r;");
    assert_int_equal(o.skipped, 6);
    assert_non_null(strstr(notes.data, "abs: symbolic link"));
}

static void special_files_are_not_opened(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    struct output o = output();

    (void) state;
    assert_int_equal(mkfifoat(out_fd, "fifo\n\x1b[2J", 0644), 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s/out/sock", top);
    assert_int_equal(bind(s, (struct sockaddr *) &a, sizeof a), 0);
    close(s);
    assert_ok(output_collect(&o, &err), &err);
    assert_string_equal(seen.data, "");
    assert_int_equal(o.skipped, 2);
    /* what the payload wrote cannot drive a terminal */
    assert_null(strchr(notes.data, '\x1b'));
}

static void globs_and_exclusions(void **state)
{
    char star[] = "*.txt", deep[] = "d/**";
    char *globs[] = {star, deep, NULL};
    const char *const exclude[] = {"d/secret", "b.txt", NULL};
    struct output o = output();

    (void) state;
    file("a.txt", "1");
    file("b.txt", "2");
    file("c.dat", "3");
    file("d/e/f", "4");
    file("d/secret", "5");
    o.globs = globs;
    o.exclude = exclude;
    assert_ok(output_collect(&o, &err), &err);
    assert_string_equal(seen.data, "a.txt=1;d/e/f=4;");
}

static void failures_end_the_walk(void **state)
{
    struct output o = output();

    (void) state;
    file("a", "1");
    file("b", "2");
    o.put = put_fails;
    assert_err(output_collect(&o, &err), &err, ERR_TOO_LARGE);
    assert_string_equal(err.text, "a: no");
}

/* A chain of n folders below out, made without long paths. */
static void nest(int n)
{
    int fd = dup(out_fd);

    for (int i = 0; i < n; i++) {
        int next;

        assert_int_equal(mkdirat(fd, "d", 0755), 0);
        next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    close(openat(fd, "leaf", O_WRONLY | O_CREAT, 0644));
    close(fd);
}

static void too_deep_is_refused_not_cut(void **state)
{
    struct output o = output();

    (void) state;
    nest(OUTPUT_DEPTH_MAX + 1);
    assert_err(output_collect(&o, &err), &err, ERR_TOO_LARGE);
}

static void any_depth_is_removed(void **state)
{
    (void) state;
    nest(5000);
    file("x/y", "1");
    assert_int_equal(symlinkat("/", out_fd, "root"), 0);
    assert_int_equal(mkdirat(out_fd, "closed", 0), 0);
    assert_ok(tree_remove(top_fd, "out", &err), &err);
    assert_int_equal(faccessat(top_fd, "out", F_OK, 0), -1);
    assert_ok(tree_remove(top_fd, "out", &err), &err); /* absent is fine */
}

static void globs(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool match;
    } cases[] = {
        {"*", "a", true}, {"*", "a/b", false}, {"*", ".a", true},
        {"a?c", "abc", true}, {"a?c", "ac", false}, {"a?c", "a/c", false},
        {"[a-c]x", "bx", true}, {"[a-c]x", "dx", false},
        {"[^a-c]x", "dx", true}, {"[!a-c]x", "bx", false},
        {"[]]", "]", true}, {"[a-]", "-", true}, {"[", "[", true},
        {"[a", "[a", true}, {"a\\*", "a*", true}, {"a\\*", "ab", false},
        {"**", "a", true}, {"**", "a/b/c", true},
        {"foo/**", "foo", false}, {"foo/**", "foo/a", true},
        {"foo/**", "foo/a/b", true}, {"foo/**", "fool/a", false},
        {"**/x", "x", true}, {"**/x", "a/b/x", true}, {"**/x", "a/xx", false},
        {"a/**/z", "a/z", true}, {"a/**/z", "a/b/c/z", true},
        {"a/**/z", "a/b/c/zz", false},
        {"**/a/**/b", "x/a/y/a/q/b", true},
        {"*.txt", "a.txt", true}, {"*.txt", "a.txtx", false},
        {"*a*b*c", "xxaxxbxxc", true}, {"a**b", "axxb", true},
        {"a", "a/b", false}, {"a/b", "a", false}, {"", "a", false},
        {"a/", "a", true},
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        if (glob_match(cases[i].pattern, cases[i].path) != cases[i].match)
            fail_msg("%s %s", cases[i].pattern, cases[i].path);
    }
}

/* A pattern that takes exponential time in a naive matcher. */
static void globs_stay_linear(void **state)
{
    char pattern[512], path[512];

    (void) state;
    for (int i = 0; i < 255; i++) {
        pattern[2 * i] = '*';
        pattern[2 * i + 1] = 'a';
    }
    pattern[510] = 'b';
    pattern[511] = '\0';
    memset(path, 'a', 511);
    path[511] = '\0';
    assert_false(glob_match(pattern, path));
}

static void final_words(void **state)
{
    struct report r = {.complete = true, .has_exit_code = true,
                       .exit_code = 3, .cost = 0.25};
    struct buf b;

    (void) state;
    buf_init(&b, 4096);
    report_print(&r, &b);
    assert_string_equal(b.data, "{\"state\":\"Complete\",\"exit_code\":3,"
                                "\"cost\":0.25,\"runtime_status\":{}}");
    buf_reset(&b);
    r.complete = false;
    r.no_retry = true;
    report_error(&r, "first %d", 1);
    report_error(&r, "second");
    report_warning(&r, "w\"");
    report_print(&r, &b);
    assert_string_equal(
        b.data, "{\"state\":\"Cancelled\",\"cost\":0.25,\"runtime_status\":{"
                "\"error\":\"first 1\",\"warning\":\"w\\\"\","
                "\"noRetry\":true}}");
    buf_fini(&b);
}

static int status_of(void (*die)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        die();
    waitpid(pid, &status, 0);
    return status;
}

static void leave(void)
{
    _exit(7);
}

static void be_killed(void)
{
    raise(SIGKILL);
}

static void exit_codes(void **state)
{
    (void) state;
    assert_int_equal(report_exit_code(status_of(leave)), 7);
    assert_int_equal(report_exit_code(status_of(be_killed)), 137);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_in_order, fresh, done),
        cmocka_unit_test_setup_teardown(links_are_never_followed, fresh,
                                        done),
        cmocka_unit_test_setup_teardown(special_files_are_not_opened, fresh,
                                        done),
        cmocka_unit_test_setup_teardown(globs_and_exclusions, fresh, done),
        cmocka_unit_test_setup_teardown(failures_end_the_walk, fresh, done),
        cmocka_unit_test_setup_teardown(too_deep_is_refused_not_cut, fresh,
                                        done),
        cmocka_unit_test_setup_teardown(any_depth_is_removed, fresh, done),
        cmocka_unit_test(globs),
        cmocka_unit_test(globs_stay_linear),
        cmocka_unit_test(final_words),
        cmocka_unit_test(exit_codes),
    };
    int failed;

    if (!mkdtemp(top))
        return 77;
    top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tree_remove(AT_FDCWD, top, NULL);
    return failed;
}
