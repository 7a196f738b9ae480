/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/secret: what is refused, comparing, random bytes. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/secret.h"

static char dir[] = "/tmp/test_secret.XXXXXX";
static char path[64];

static int setup(void **state)
{
    (void) state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/token", dir);
    return 0;
}

static int teardown(void **state)
{
    (void) state;
    unlink(path);
    return rmdir(dir);
}

static void put(const char *bytes, size_t n, mode_t mode)
{
    unlink(path);
    CLEANUP(mem_close) int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC,
                                     0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
}

static void test_read(void **state)
{
    (void) state;
    static const struct {
        const char *bytes;
        const char *want;
    } cases[] = {
        {"abc", "abc"}, {"abc\n", "abc"}, {"abc\n\n", "abc\n"}, {"", ""},
        {"\n", ""},
    };
    struct err err;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        put(cases[i].bytes, strlen(cases[i].bytes), 0600);
        CLEANUP(secret_cleanup) char *s = secret_read(path, 100, &err);
        assert_non_null(s);
        assert_string_equal(s, cases[i].want);
    }
    put("abc", 3, 0400);
    CLEANUP(secret_cleanup) char *s = secret_read(path, 3, &err);
    assert_non_null(s);
}

static void refused(enum err_class class, const char *what)
{
    struct err err = {0};
    char *s = secret_read(path, 100, &err);
    assert_null(s);
    assert_int_equal(err.class, class);
    if (!strstr(err.text, what))
        fail_msg("'%s' does not say '%s'", err.text, what);
}

static void test_loose_modes(void **state)
{
    (void) state;
    static const mode_t modes[] = {0604, 0602, 0620, 0666, 0601};
    for (size_t i = 0; i < MEM_COUNT(modes); i++) {
        put("abc", 3, modes[i]);
        refused(ERR_CONFIG, "chmod 600");
    }
    /* Readable by its group: only where that is root's own. */
    put("abc", 3, 0640);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    if (st.st_uid == 0 && st.st_gid == 0) {
        CLEANUP(secret_cleanup) char *s = secret_read(path, 100, NULL);
        assert_non_null(s);
    } else {
        refused(ERR_CONFIG, "chmod 600");
    }
}

static void test_other_kinds(void **state)
{
    (void) state;
    unlink(path);
    refused(ERR_NOT_FOUND, path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(ERR_CONFIG, "regular file"); /* and does not wait for a writer */
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refused(ERR_CONFIG, "regular file");
    assert_int_equal(rmdir(path), 0);
    put("a\0b", 3, 0600);
    refused(ERR_CONFIG, "NUL");
    char big[101];
    memset(big, 'x', sizeof big);
    put(big, sizeof big, 0600);
    refused(ERR_TOO_LARGE, "100");
}

static void test_other_owner(void **state)
{
    (void) state;
    put("abc", 3, 0600);
    if (chown(path, 12345, (gid_t) -1) == 0) {
        refused(ERR_CONFIG, "another user");
        return;
    }
    /* Not root: look at a file of somebody else that can be opened. */
    struct err err;
    assert_null(secret_read("/etc/passwd", 1 << 20, &err));
}

static void test_equal(void **state)
{
    (void) state;
    assert_true(secret_equal("abc", "abc"));
    assert_true(secret_equal("", ""));
    assert_false(secret_equal("abc", "abd"));
    assert_false(secret_equal("abc", "ab"));
    assert_false(secret_equal(NULL, "a"));
    assert_false(secret_equal("a", NULL));
    assert_false(secret_equal(NULL, NULL));
    secret_free(NULL);
}

static void test_random(void **state)
{
    (void) state;
    unsigned char a[64] = {0}, b[64] = {0};
    secret_random(a, sizeof a);
    secret_random(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    secret_random(a, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),        cmocka_unit_test(test_loose_modes),
        cmocka_unit_test(test_other_kinds), cmocka_unit_test(test_other_owner),
        cmocka_unit_test(test_equal),       cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
