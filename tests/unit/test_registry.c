/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a name to a usable driver: every driver of tests/bad-drivers is
 * refused with the line that belongs to it, before it can do harm; a good one
 * is loaded once; files that others could have written are not accepted; and
 * damaged ELF files are refused without a crash.
 */

#include "tests/unit/unit.h"

#include <cdc/driver.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/plugin/elffile.h"
#include "core/plugin/preflight.h"
#include "core/plugin/registry.h"
#include "core/plugin/trust.h"

static char *drivers; /* the folder with the test modules */
static char folder[] = "test_registry.XXXXXX";
static struct registry *reg;

static char *driver_path(const char *name)
{
    return mem_printf("%s/%s.so", drivers, name);
}

static void test_good(void **state)
{
    const struct driver *d, *again;
    struct err err = {0};

    (void)state;
    d = registry_load(reg, "scripted", &err);
    if (!d)
        fail_msg("%s", err.text);
    assert_string_equal(d->name, "scripted");
    assert_int_equal(d->path[0], '/');
    assert_int_equal(d->descriptor->minor_built, CDC_ABI_MINOR);
    assert_non_null(d->descriptor->describe);
    again = registry_load(reg, "scripted", &err);
    assert_ptr_equal(d, again);
}

static void refused(const char *name, const char *why)
{
    CLEANUP(mem_free) char *path = driver_path(name);
    struct err err = {0};

    assert_null(registry_load_file(reg, path, &err));
    assert_int_equal(err.class, ERR_CONFIG);
    if (!strstr(err.text, why) || !strstr(err.text, path))
        fail_msg("%s: '%s' is not in '%s'", name, why, err.text);
    assert_null(strchr(err.text, '\n'));
}

static void test_bad(void **state)
{
    static const struct {
        const char *name, *why;
    } bad[] = {
        {"wrong_magic", "wrong magic number 0x12345678"},
        {"wrong_kind", "a plugin of kind 2, not a cloud driver"},
        {"short_size", "claims 48 bytes"},
        {"absurd_size", "claims 16777216 bytes"},
        {"lying_size", "bytes but has"},
        {"wrong_major", "built for driver ABI 1."},
        {"minor_too_new", "needs driver ABI 0."},
        {"minor_older", "built for driver ABI 0."},
        {"no_create", "callback create is missing"},
        {"cap_without_callback", "callback set_tags is missing"},
        {"wrong_name", "it calls itself 'somebody_else'"},
        {"extra_export", "it exports 'EVP_DigestInit'"},
        {"no_entry", "it exports"},
        /* A sanitizer turns the signal into an exit code. */
        {"ctor_crash", "opening it ended the process with"},
        {"ctor_exit", "ended the process with exit code 0"},
        {"undefined_function", "a_function_that_nobody_has"},
    };

    (void)state;
    for (size_t i = 0; i < MEM_COUNT(bad); i++)
        refused(bad[i].name, bad[i].why);
}

static void test_hanging_constructor(void **state)
{
    struct registry_options o = {
        .dir = drivers, .trust_build_tree = true, .preflight_ms = 300,
    };
    struct registry *r = registry_create(&o);
    int64_t begun = clock_mono_us();
    struct err err = {0};

    (void)state;
    assert_null(registry_load(r, "ctor_hang", &err));
    assert_non_null(strstr(err.text, "did not end within 300 ms"));
    assert_true(clock_mono_us() - begun < 5000000);
    registry_destroy(r);
}

static void test_names(void **state)
{
    struct err err = {0};

    (void)state;
    assert_null(registry_load(reg, "../scripted", &err));
    assert_int_equal(err.class, ERR_CONFIG);
    assert_null(registry_load(reg, "", &err));
    assert_null(registry_load(reg, "absent", &err));
    assert_int_equal(err.class, ERR_NOT_FOUND);
    assert_null(registry_load_file(reg, "/tmp/x.la", &err));
    assert_non_null(strstr(err.text, "must end in .so"));
    assert_null(registry_load_file(reg, "/tmp/.so", &err));
}

/* --- files of our own -------------------------------------------------------- */

static void copy_file(const char *from, const char *to, mode_t mode)
{
    int in = open(from, O_RDONLY), out = creat(to, 0600);
    char chunk[8192];
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, chunk, sizeof chunk)) > 0)
        assert_int_equal(write(out, chunk, (size_t)n), n);
    fchmod(out, mode);
    close(in);
    close(out);
}

static struct err load_checked(const char *path)
{
    struct registry_options o = {.dir = drivers};
    struct registry *r = registry_create(&o);
    struct err err = {0};

    if (registry_load_file(r, path, &err))
        err_clear(&err);
    registry_destroy(r);
    trust_set_build_tree(true); /* as the other tests have it */
    return err;
}

static void test_writers(void **state)
{
    CLEANUP(mem_free) char *good = driver_path("scripted_parallel");
    CLEANUP(mem_free) char *copy = mem_printf("%s/scripted_parallel.so",
                                              folder);
    CLEANUP(mem_free) char *alias = mem_printf("%s/alias.so", folder);
    struct err err;

    (void)state;
    copy_file(good, copy, 0666);
    err = load_checked(copy);
    assert_int_equal(err.class, ERR_CONFIG);
    assert_non_null(strstr(err.text, "can be written by others (mode 0666)"));
    chmod(copy, 0644);
    chmod(folder, 0775);
    err = load_checked(copy);
    assert_non_null(strstr(err.text, "can be written by others (mode 0775)"));
    chmod(folder, 0755);
    err = load_checked(copy);
    /* Either good, or a folder above ours is open to others. */
    if (err.class != ERR_NONE && !strstr(err.text, "by others") &&
        !strstr(err.text, "neither root nor us"))
        fail_msg("%s", err.text);
    assert_int_equal(symlink("scripted_parallel.so", alias), 0);
    err = load_checked(alias);
    assert_non_null(strstr(err.text, "a symbolic link is not accepted"));
    unlink(alias);
    unlink(copy);
}

static void test_foreign_owner(void **state)
{
    CLEANUP(mem_free) char *good = driver_path("scripted_parallel");
    CLEANUP(mem_free) char *copy = mem_printf("%s/scripted_parallel.so",
                                              folder);
    struct err err;

    (void)state;
    if (geteuid() != 0)
        return; /* only root can give a file away */
    copy_file(good, copy, 0644);
    assert_int_equal(chown(copy, 12345, 12345), 0);
    err = load_checked(copy);
    assert_non_null(strstr(err.text, "owned by uid 12345, neither root"));
    unlink(copy);
}

static void test_no_regular_file(void **state)
{
    CLEANUP(mem_free) char *fifo = mem_printf("%s/pipe.so", folder);
    CLEANUP(mem_free) char *dir = mem_printf("%s/dir.so", folder);
    struct err err = {0};

    (void)state;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_null(registry_load_file(reg, fifo, &err));
    assert_non_null(strstr(err.text, "not a regular file"));
    unlink(fifo);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_null(registry_load_file(reg, dir, &err));
    assert_non_null(strstr(err.text, "not a regular file"));
    rmdir(dir);
}

/* --- damaged files -------------------------------------------------------------- */

static int look(int fd)
{
    char prefix[28];
    struct err err;
    size_t size;

    return elffile_read_symbol(fd, "cdc_driver_entry", prefix, sizeof prefix,
                               &size, &err);
}

static int scratch_file(const char *bytes, size_t n)
{
    int fd = open(folder, O_TMPFILE | O_RDWR, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    return fd;
}

static char *slurp(const char *path, size_t *ret_n)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    char *bytes;

    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    bytes = mem_zalloc((size_t)st.st_size);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    *ret_n = (size_t)st.st_size;
    return bytes;
}

/* Cut at every length up to 4 KiB, and at some more; overwrite every 8 bytes
 * of header, program headers and section headers with all ones. */
static void test_damaged(void **state)
{
    CLEANUP(mem_free) char *path = driver_path("scripted");
    CLEANUP(mem_free) char *bytes = NULL;
    size_t n, refusals = 0;
    char saved[8];
    int fd;

    (void)state;
    bytes = slurp(path, &n);
    fd = scratch_file(bytes, n);
    assert_int_equal(look(fd), 0);
    for (size_t cut = 0; cut < n; cut += cut < 1024 ? 1 : 997) {
        assert_int_equal(ftruncate(fd, (off_t)cut), 0);
        refusals += look(fd) != 0;
    }
    close(fd);
    assert_true(refusals > 1000);
    fd = scratch_file(bytes, n);
    for (size_t at = 0; at + 8 <= n; at += at == 4096 ? n - n % 8 - 8192 : 8) {
        memcpy(saved, bytes + at, 8);
        assert_int_equal(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8,
                                (off_t)at), 8);
        look(fd); /* any answer but a crash */
        assert_int_equal(pwrite(fd, saved, 8, (off_t)at), 8);
    }
    assert_int_equal(look(fd), 0);
    close(fd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_hanging_constructor),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_writers),
        cmocka_unit_test(test_foreign_owner),
        cmocka_unit_test(test_no_regular_file),
        cmocka_unit_test(test_damaged),
    };
    const char *top = getenv("TOP_BUILDDIR");
    struct registry_options o = {.trust_build_tree = true};
    int rc = preflight_child_main(argc, argv);

    if (rc >= 0)
        return rc;
    drivers = mem_printf("%s/tests/bad-drivers/.libs", top ? top : ".");
    o.dir = drivers;
    reg = registry_create(&o);
    if (!mkdtemp(folder))
        return 99;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    registry_destroy(reg);
    rmdir(folder);
    free(drivers);
    return rc;
}
