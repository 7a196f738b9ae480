/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock files: content, names, and above all who holds what until when.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/runner/lockfile.h"

#define UUID "zzzzz-dz642-0123456789abcde"
#define NAME "crunch-run-" UUID ".lock"

static char dir[] = "/tmp/test-lockfile-XXXXXX";
static struct err err;

static char *path_of(const char *name)
{
    return mem_printf("%s/%s", dir, name);
}

static bool exists(const char *name)
{
    CLEANUP(mem_free) char *path = path_of(name);

    return access(path, F_OK) == 0;
}

static int empty_folder(void **state)
{
    static const char *const names[] = {NAME, "crunch-run-all.lock",
                                        "crunch-run-broken"};

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(names); i++) {
        CLEANUP(mem_free) char *path = path_of(names[i]);

        unlink(path);
    }
    return 0;
}

static void content_goes_both_ways(void **state)
{
    struct lock_info in = {.uuid = UUID, .pid = 4711, .attempt = 3,
                           .start_time = 123456789012}, out;
    CLEANUP(buf_fini) struct buf b;

    (void) state;
    buf_init(&b, LOCK_CONTENT_MAX);
    lock_format(&in, &b);
    assert_string_equal(b.data, "{\"UUID\":\"" UUID "\",\"PID\":4711,"
                                "\"Attempt\":3,\"StartTime\":123456789012}\n");
    assert_ok(lock_parse(b.data, b.len, &out, &err), &err);
    assert_memory_equal(&in, &out, sizeof in);
}

static void content_of_the_peer(void **state)
{
    static const char line[] = "{\"UUID\":\"" UUID "\",\"PID\":4711}\n";
    struct lock_info out;

    (void) state;
    assert_ok(lock_parse(line, strlen(line), &out, &err), &err);
    assert_int_equal(out.pid, 4711);
    assert_int_equal(out.attempt, 0);
    assert_int_equal(out.start_time, 0);
}

static void content_refused(void **state)
{
    static const char *const bad[] = {
        "", "{", "[]", "{\"UUID\":\"" UUID "\"}",
        "{\"UUID\":\"" UUID "\",\"PID\":1}",
        "{\"UUID\":\"" UUID "\",\"PID\":-5}",
        "{\"UUID\":\"" UUID "\",\"PID\":99999999999}",
        "{\"UUID\":\"../../x\",\"PID\":4711}",
        "{\"UUID\":\"" UUID "\",\"PID\":\"4711\"}",
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        struct lock_info out;

        assert_int_equal(lock_parse(bad[i], strlen(bad[i]), &out, &err), -1);
    }
}

static void names(void **state)
{
    char uuid[TEXT_UUID_SIZE];

    (void) state;
    assert_true(lock_name_uuid(NAME, uuid));
    assert_string_equal(uuid, UUID);
    assert_false(lock_name_uuid("crunch-run-all.lock", uuid));
    assert_false(lock_name_uuid("crunch-run-broken", uuid));
    assert_false(lock_name_uuid(NAME "x", uuid));
    assert_false(lock_name_uuid("crunch-run-" UUID, uuid));
    assert_false(lock_name_uuid(
        "crunch-run-zzzzz-dz642-0123456789ABCDE.lock", uuid));
}

static void one_holder(void **state)
{
    int fd, second, look;

    (void) state;
    assert_ok(lock_take(dir, UUID, &fd, &err), &err);
    assert_err(lock_take(dir, UUID, &second, &err), &err, ERR_CONFLICT);
    assert_ok(lock_open(dir, UUID, &look, &err), &err);
    assert_true(lock_is_held(dir, look));
    /* Somebody who only looks must not get in the way of a taker. */
    close(fd);
    assert_false(lock_is_held(dir, look));
    assert_ok(lock_take(dir, UUID, &fd, &err), &err);
    close(fd);
    close(look);
}

static void held_until_the_last_copy_is_closed(void **state)
{
    int fd, look, p[2];
    pid_t child;
    char c;

    (void) state;
    assert_ok(lock_take(dir, UUID, &fd, &err), &err);
    assert_ok(lock_open(dir, UUID, &look, &err), &err);
    assert_int_equal(pipe(p), 0);
    child = fork();
    if (child == 0) {
        close(p[1]);
        _exit(read(p[0], &c, 1) < 0);
    }
    close(p[0]);
    close(fd);
    assert_true(lock_is_held(dir, look));
    close(p[1]); /* the child ends */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(lock_is_held(dir, look));
    close(look);
}

static void written_and_rewritten(void **state)
{
    struct lock_info info = {.uuid = UUID, .pid = 4711, .attempt = 100000},
                     out;
    int fd, look;

    (void) state;
    assert_ok(lock_take(dir, UUID, &fd, &err), &err);
    assert_ok(lock_open(dir, UUID, &look, &err), &err);
    assert_err(lock_read(look, &out, &err), &err, ERR_INVALID);
    assert_ok(lock_write(fd, &info, &err), &err);
    assert_ok(lock_read(look, &out, &err), &err);
    assert_int_equal(out.attempt, 100000);
    info.attempt = 1; /* a shorter line over a longer one */
    assert_ok(lock_write(fd, &info, &err), &err);
    assert_ok(lock_read(look, &out, &err), &err);
    assert_int_equal(out.attempt, 1);
    close(fd);
    close(look);
    /* Taking it again empties it. */
    assert_ok(lock_take(dir, UUID, &fd, &err), &err);
    assert_err(lock_read(fd, &out, &err), &err, ERR_INVALID);
    close(fd);
}

static int cleaned;

/* Nobody can start the container while it is being cleaned up. */
static void cleaning(void *arg, const char *uuid)
{
    int fd;

    (void) arg;
    assert_string_equal(uuid, UUID);
    assert_err(lock_take(dir, UUID, &fd, &err), &err, ERR_CONFLICT);
    cleaned++;
}

static void collected_only_when_free(void **state)
{
    int fd, look;

    (void) state;
    assert_ok(lock_take(dir, UUID, &fd, &err), &err);
    assert_ok(lock_open(dir, UUID, &look, &err), &err);
    lock_collect(dir, UUID, look, cleaning, NULL);
    assert_true(exists(NAME));
    assert_int_equal(cleaned, 0);
    close(fd);
    lock_collect(dir, UUID, look, cleaning, NULL);
    assert_false(exists(NAME));
    assert_int_equal(cleaned, 1);
    close(look);
}

static void another_file_of_the_name_stays(void **state)
{
    int fd, look;

    (void) state;
    assert_ok(lock_take(dir, UUID, &fd, &err), &err);
    assert_ok(lock_open(dir, UUID, &look, &err), &err);
    lock_remove(dir, UUID);
    close(fd);
    assert_ok(lock_take(dir, UUID, &fd, &err), &err);
    cleaned = 0;
    lock_collect(dir, UUID, look, cleaning, NULL);
    assert_true(exists(NAME));
    assert_int_equal(cleaned, 0); /* what is there is the new one's */
    close(fd);
    close(look);
}

static void a_link_is_not_followed(void **state)
{
    CLEANUP(mem_free) char *path = path_of(NAME);
    CLEANUP(mem_free) char *victim = path_of("crunch-run-broken");
    int fd;

    (void) state;
    assert_int_equal(symlink(victim, path), 0);
    assert_int_equal(lock_take(dir, UUID, &fd, &err), -1);
    assert_false(exists("crunch-run-broken"));
}

static void broken_marker(void **state)
{
    (void) state;
    assert_false(lock_broken(dir));
    assert_ok(lock_mark_broken(dir, &err), &err);
    assert_true(lock_broken(dir));
}

static void supervisors(void **state)
{
    struct lock_info info = {.uuid = UUID, .pid = getpid()};
    pid_t child;
    int fd;

    (void) state;
    info.start_time = lock_start_time(getpid());
    assert_true(info.start_time > 0);
    fd = lock_pidfd(&info);
    assert_true(fd >= 0);
    close(fd);
    info.start_time++; /* the pid belongs to somebody else now */
    assert_int_equal(lock_pidfd(&info), -1);

    child = fork();
    if (child == 0)
        pause();
    info.pid = child;
    info.start_time = lock_start_time(child);
    kill(child, SIGKILL);
    /* dead, but not waited for */
    assert_int_equal(waitid(P_PID, (id_t) child, &(siginfo_t){0},
                            WEXITED | WNOWAIT), 0);
    assert_int_equal(lock_pidfd(&info), -1);
    waitpid(child, NULL, 0);
    assert_int_equal(lock_pidfd(&info), -1);
    assert_int_equal(lock_start_time(child), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_goes_both_ways),
        cmocka_unit_test(content_of_the_peer),
        cmocka_unit_test(content_refused),
        cmocka_unit_test(names),
        cmocka_unit_test_setup(one_holder, empty_folder),
        cmocka_unit_test_setup(held_until_the_last_copy_is_closed,
                               empty_folder),
        cmocka_unit_test_setup(written_and_rewritten, empty_folder),
        cmocka_unit_test_setup(collected_only_when_free, empty_folder),
        cmocka_unit_test_setup(another_file_of_the_name_stays, empty_folder),
        cmocka_unit_test_setup(a_link_is_not_followed, empty_folder),
        cmocka_unit_test_setup(broken_marker, empty_folder),
        cmocka_unit_test(supervisors),
    };
    int failed;

    if (!mkdtemp(dir))
        return 77;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    empty_folder(NULL);
    rmdir(dir);
    return failed;
}
