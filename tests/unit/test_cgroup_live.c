/* SPDX-License-Identifier: Apache-2.0 */
/* core/isolate/cgroup on this machine's own trees; needs to be allowed to make
 * groups (exit 77 otherwise). */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/isolate/cgroup.h"
#include "core/isolate/cgroup_fs.h"
#include "core/isolate/killtree.h"

static struct cgroup top, group;

static pid_t member(const struct cgroup *cg)
{
    int ready[2];
    char c;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        struct err err;
        alarm(60);
        if (cgroup_attach(cg, 0, &err) < 0)
            _exit(1);
        (void) !write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

static int make(void **state)
{
    struct err err, why;

    (void) state;
    assert_ok(cgroup_create(&top, "a", &group, &why, &err), &err);
    return 0;
}

static int unmake(void **state)
{
    struct err err;

    (void) state;
    assert_ok(cgroup_remove(&group, 2000, &err), &err);
    assert_false(cgroup_exists(&group));
    return 0;
}

static void test_members(void **state)
{
    struct cgroup below;
    struct err err;
    pid_t a, b;

    (void) state;
    assert_ok(cgroup_create(&group, "b/c", &below, NULL, &err), &err);
    a = member(&below);
    b = member(&below);
    assert_int_equal(cgroup_count(&group), 2);
    assert_ok(cgroup_kill(&group, 5000, &err), &err);
    waitpid(a, NULL, 0);
    waitpid(b, NULL, 0);
    assert_int_equal(cgroup_count(&group), 0);
    assert_ok(cgroup_kill(&group, 5000, &err), &err);
}

static void test_busy_group_stays(void **state)
{
    struct killtree k = KILLTREE_INIT;
    struct err err;
    pid_t pid = member(&group);

    (void) state;
    assert_err(cgroup_remove(&group, 20, &err), &err, ERR_TIMEOUT);
    k.cg = &group;
    assert_ok(killtree_run(&k, 5000, &err), &err);
    assert_int_equal(k.used, KILLTREE_CGROUP);
    waitpid(pid, NULL, 0);
}

/* A frozen process of v1 ignores SIGKILL until it is thawed, and it may be a
 * group below that was frozen. */
static void test_frozen(void **state)
{
    struct cgroup below;
    struct err err;
    pid_t a = member(&group), b;

    (void) state;
    assert_ok(cgroup_create(&group, "b", &below, NULL, &err), &err);
    b = member(&below);
    assert_ok(cgroup_freeze(&group, true, 2000, &err), &err);
    assert_ok(cgroup_freeze(&group, false, 2000, &err), &err);
    assert_ok(cgroup_freeze(&below, true, 2000, &err), &err);
    assert_int_equal(cgroup_count(&group), 2);
    assert_ok(cgroup_kill(&group, 5000, &err), &err);
    waitpid(a, NULL, 0);
    waitpid(b, NULL, 0);
}

/* The caller is in the group, as a supervisor may be. */
static void test_without_cgroup_kill(void **state)
{
    struct cgroup v1 = group;
    struct err err;
    pid_t a, b;

    (void) state;
    v1.dir[CGROUP_UNIFIED][0] = '\0';
    if (cgroup_procs_tree(&v1) < 0)
        return; /* pure v2 always has cgroup.kill */
    a = member(&group);
    b = member(&group);
    assert_ok(cgroup_kill(&v1, 5000, &err), &err);
    waitpid(a, NULL, 0);
    waitpid(b, NULL, 0);
    assert_int_equal(cgroup_count(&v1), 0);
}

static void eat(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t i;

    for (i = 0; p != MAP_FAILED && i < bytes; i += 4096)
        p[i] = 1;
    _exit(0);
}

static void test_limits(void **state)
{
    struct cgroup_limits limits = {.memory = 24 << 20, .cpu_milli = 1500,
                                   .pids = 20};
    struct cgroup_usage usage;
    struct cgroup below;
    struct err err;
    uint32_t in_force = cgroup_set_limits(&group, &limits, &err);
    int status;
    pid_t pid;

    (void) state;
    if (!(in_force & CGROUP_LIMIT_MEMORY)) {
        printf("no memory limit here: %s\n", err.text);
        return;
    }
    /* Again, lower and higher: the order of the two v1 files matters. */
    limits.memory = 16 << 20;
    assert_int_equal(cgroup_set_limits(&group, &limits, &err), in_force);
    limits.memory = 32 << 20;
    assert_int_equal(cgroup_set_limits(&group, &limits, &err), in_force);
    assert_ok(cgroup_create(&group, "b", &below, NULL, &err), &err);
    pid = fork();
    if (pid == 0) {
        if (cgroup_attach(&below, 0, NULL) < 0)
            _exit(1);
        eat(256 << 20);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    cgroup_stat(&group, &usage);
    assert_int_equal(usage.oom_kills, 1);
    assert_true(usage.memory_peak == -1 || usage.memory_peak > 16 << 20);
    assert_true(usage.cpu_us > 0);
    assert_int_equal(usage.pids, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_members, make, unmake),
        cmocka_unit_test_setup_teardown(test_busy_group_stays, make, unmake),
        cmocka_unit_test_setup_teardown(test_frozen, make, unmake),
        cmocka_unit_test_setup_teardown(test_without_cgroup_kill, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(test_limits, make, unmake),
    };
    char name[64];
    struct cgroup root;
    struct err err, why;
    int rc;

    snprintf(name, sizeof name, "cdc-test/cgroup-%d", (int) getpid());
    cgroup_find(&root);
    if (cgroup_create(&root, name, &top, &why, &err) < 0 ||
        !cgroup_exists(&top) || !top.dir[CGROUP_FREEZER][0]) {
        printf("skipped: no groups can be made here: %s\n", why.text);
        return 77;
    }
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    cgroup_kill(&top, 2000, NULL);
    if (cgroup_remove(&top, 2000, &err) < 0)
        printf("left over: %s\n", err.text);
    /* The parent is shared with other runs; the last one takes it along. */
    if (cgroup_child(&root, "cdc-test", &top, NULL) == 0)
        for (int t = 0; t < CGROUP_TREE_COUNT; t++)
            if (top.dir[t][0])
                rmdir(top.dir[t]);
    return rc;
}
