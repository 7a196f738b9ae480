/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/mem and vec: allocation that does not return NULL, vectors. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/vec.h"

static void test_zero_filled(void **state)
{
    (void) state;
    CLEANUP(mem_free) unsigned char *p = mem_zalloc(100);
    CLEANUP(mem_free) void *empty = mem_zalloc(0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    assert_non_null(empty);
}

static void test_copies(void **state)
{
    (void) state;
    CLEANUP(mem_free) char *a = mem_strdup("abc");
    CLEANUP(mem_free) char *b = mem_strndup("abcdef", 3);
    CLEANUP(mem_free) char *c = mem_strndup("ab", 30);
    CLEANUP(mem_free) char *d = mem_dup("xyz", 4);
    CLEANUP(mem_free) char *e = mem_printf("%s-%d", a, 7);
    assert_string_equal(a, "abc");
    assert_string_equal(b, "abc");
    assert_string_equal(c, "ab");
    assert_string_equal(d, "xyz");
    assert_string_equal(e, "abc-7");
    assert_null(mem_strdup(NULL));
}

static void test_set_str(void **state)
{
    (void) state;
    CLEANUP(mem_free) char *s = NULL;
    mem_set_str(&s, "first value");
    assert_string_equal(s, "first value");
    mem_set_str(&s, s + 6); /* a part of itself */
    assert_string_equal(s, "value");
    mem_set_str(&s, NULL);
    assert_null(s);
}

static void test_close_keeps_errno(void **state)
{
    (void) state;
    int copy;
    {
        CLEANUP(mem_close) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        CLEANUP(mem_close) int none = -1;
        assert_true(fd >= 0);
        assert_int_equal(none, -1);
        copy = fd;
        errno = ENOENT;
    }
    assert_int_equal(errno, ENOENT);
    assert_int_equal(fcntl(copy, F_GETFD), -1);
    {
        CLEANUP(mem_close) int closed = copy; /* close() says EBADF */
        errno = ENOENT;
    }
    assert_int_equal(errno, ENOENT);
}

struct outer {
    int before;
    int member;
};

static void test_container(void **state)
{
    (void) state;
    struct outer o;
    assert_ptr_equal(MEM_CONTAINER(&o.member, struct outer, member), &o);
}

/* A size that overflows ends the process with MEM_EXIT, after one line. */
static void test_out_of_memory(void **state)
{
    (void) state;
    int fds[2], status;
    char line[64] = "";
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        volatile size_t huge = SIZE_MAX / 2;
        dup2(fds[1], STDERR_FILENO);
        free(mem_calloc(huge, 3));
        _exit(0);
    }
    close(fds[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), MEM_EXIT);
    assert_true(read(fds[0], line, sizeof line - 1) > 0);
    assert_string_equal(line, "out of memory\n");
    close(fds[0]);
}

static void test_vec(void **state)
{
    (void) state;
    VEC(int) a = {0};
    for (int i = 0; i < 100; i++)
        VEC_PUSH(&a, i);
    VEC_INSERT(&a, 0, -1);
    VEC_INSERT(&a, 101, 100);
    VEC_REMOVE(&a, 1);
    assert_int_equal(a.n, 101);
    assert_int_equal(a.v[0], -1);
    for (int i = 1; i < 101; i++)
        assert_int_equal(a.v[i], i);
    VEC_CLEAR(&a);
    assert_int_equal(a.n, 0);
    VEC_FINI(&a);
    assert_null(a.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero_filled),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_set_str),
        cmocka_unit_test(test_close_keeps_errno),
        cmocka_unit_test(test_container),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_vec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
