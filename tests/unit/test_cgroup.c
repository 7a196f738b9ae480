/* SPDX-License-Identifier: Apache-2.0 */
/* core/isolate/cgroup: layouts as machines of several kinds show them. */
#include "tests/unit/unit.h"

#include "core/isolate/cgroup.h"
#include "core/isolate/cgroup_fs.h"

#define HYBRID                                                                \
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"     \
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"    \
    "35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup "         \
    "rw,memory\n"                                                             \
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"  \
    "37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"     \
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup "                 \
    "rw,xattr,name=systemd\n"                                                 \
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

#define HYBRID_SELF                                                           \
    "9:name=systemd:/system.slice/x.service\n8:pids:/\n"                      \
    "4:memory:/a b/c\n1:cpu:/\n0::/system.slice/x.service\n"

static const char *dir(const struct cgroup *cg, enum cgroup_tree tree)
{
    return cg->dir[tree];
}

static void test_hybrid(void **state)
{
    struct cgroup cg;

    (void) state;
    cgroup_parse(HYBRID, NULL, "hugetlb\n", &cg);
    assert_string_equal(dir(&cg, CGROUP_MEMORY), "/sys/fs/cgroup/memory");
    assert_string_equal(dir(&cg, CGROUP_CPU), "/sys/fs/cgroup/cpu");
    assert_string_equal(dir(&cg, CGROUP_SYSTEMD), "/sys/fs/cgroup/systemd");
    assert_string_equal(dir(&cg, CGROUP_UNIFIED), "/sys/fs/cgroup/unified");
    /* No cpuacct hierarchy: the v2 tree counts CPU time without one. */
    assert_string_equal(dir(&cg, CGROUP_CPUACCT), "/sys/fs/cgroup/unified");
    assert_int_equal(cg.v2, 1U << CGROUP_UNIFIED | 1U << CGROUP_CPUACCT);
    assert_int_equal(cgroup_version(&cg), 1);

    cgroup_parse(HYBRID, HYBRID_SELF, "", &cg);
    assert_string_equal(dir(&cg, CGROUP_MEMORY),
                        "/sys/fs/cgroup/memory/a b/c");
    assert_string_equal(dir(&cg, CGROUP_CPU), "/sys/fs/cgroup/cpu");
    assert_string_equal(dir(&cg, CGROUP_UNIFIED),
                        "/sys/fs/cgroup/unified/system.slice/x.service");
    assert_string_equal(dir(&cg, CGROUP_FREEZER), "/sys/fs/cgroup/freezer");
}

static void test_v1_joint_mounts(void **state)
{
    const char *info =
        "30 24 0:26 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "31 24 0:27 / /cg/mem\\040ory rw - cgroup cgroup rw,memory\n"
        "32 24 0:28 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n";
    struct cgroup cg;

    (void) state;
    cgroup_parse(info, NULL, "", &cg);
    assert_string_equal(dir(&cg, CGROUP_CPU), "/cg/cpu,cpuacct");
    assert_string_equal(dir(&cg, CGROUP_CPUACCT), "/cg/cpu,cpuacct");
    assert_string_equal(dir(&cg, CGROUP_MEMORY), "/cg/mem ory");
    assert_string_equal(dir(&cg, CGROUP_PIDS), "");
    assert_string_equal(dir(&cg, CGROUP_FREEZER), "");
    assert_true(cgroup_is_first(&cg, CGROUP_CPU));
    assert_false(cgroup_is_first(&cg, CGROUP_CPUACCT));
    assert_false(cgroup_is_first(&cg, CGROUP_PIDS));
    assert_int_equal(cgroup_version(&cg), 1);
}

static void test_pure_v2(void **state)
{
    const char *info =
        "24 1 0:22 / /sys rw - sysfs sysfs rw\n"
        "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 "
        "cgroup2 rw,nsdelegate,memory_recursiveprot\n";
    struct cgroup cg;

    (void) state;
    cgroup_parse(info, "0::/user.slice/s.scope\n",
                 "cpuset cpu io memory pids\n", &cg);
    assert_string_equal(dir(&cg, CGROUP_MEMORY),
                        "/sys/fs/cgroup/user.slice/s.scope");
    assert_string_equal(dir(&cg, CGROUP_FREEZER),
                        "/sys/fs/cgroup/user.slice/s.scope");
    assert_string_equal(dir(&cg, CGROUP_SYSTEMD), "");
    assert_int_equal(cgroup_version(&cg), 2);
    /* A controller that is not delegated to us is not there. */
    cgroup_parse(info, "0::/user.slice/s.scope\n", "memory pids\n", &cg);
    assert_string_equal(dir(&cg, CGROUP_CPU), "");
    cgroup_parse(info, NULL, "", &cg);
    assert_int_equal(cgroup_version(&cg), 0);
    assert_string_equal(dir(&cg, CGROUP_UNIFIED), "/sys/fs/cgroup");
}

static void test_inside_a_container(void **state)
{
    struct cgroup cg;

    (void) state;
    /* The mount shows our part of the tree only. */
    cgroup_parse("35 31 0:32 /docker/ab /sys/fs/cgroup/memory rw - cgroup "
                 "cgroup rw,memory\n", "4:memory:/docker/ab/in\n", "", &cg);
    assert_string_equal(dir(&cg, CGROUP_MEMORY), "/sys/fs/cgroup/memory/in");
    /* We are outside what is shown: the best that we can name is the top. */
    cgroup_parse("35 31 0:32 /docker/ab /m rw - cgroup cgroup rw,memory\n",
                 "4:memory:/docker/abc\n", "", &cg);
    assert_string_equal(dir(&cg, CGROUP_MEMORY), "/m");
    /* The same hierarchy twice: the one that shows more. */
    cgroup_parse("35 31 0:32 /docker/ab /part rw - cgroup cgroup rw,memory\n"
                 "36 31 0:32 / /whole rw - cgroup cgroup rw,memory\n", NULL,
                 "", &cg);
    assert_string_equal(dir(&cg, CGROUP_MEMORY), "/whole");
}

static void test_nothing(void **state)
{
    struct cgroup cg, child;
    struct cgroup_limits limits = {.memory = 1 << 20, .pids = 5};
    struct cgroup_usage usage;
    struct err err;
    char unified[64];

    (void) state;
    cgroup_parse("garbage\n\n1 2 3\n - cgroup\n", "x\n::", "", &cg);
    assert_int_equal(cgroup_version(&cg), 0);
    assert_ok(cgroup_create(&cg, "a/b", &child, &err, &err), &err);
    assert_int_equal(cgroup_set_limits(&child, &limits, &err), 0);
    assert_int_equal(err.class, ERR_UNSUPPORTED);
    assert_ok(cgroup_attach(&child, 0, &err), &err);
    assert_int_equal(cgroup_count(&child), -1);
    assert_false(cgroup_exists(&child));
    assert_err(cgroup_kill(&child, 10, &err), &err, ERR_UNSUPPORTED);
    assert_err(cgroup_freeze(&child, true, 10, &err), &err, ERR_UNSUPPORTED);
    assert_ok(cgroup_remove(&child, 10, &err), &err);
    cgroup_stat(&child, &usage);
    assert_int_equal(usage.memory, -1);
    assert_int_equal(usage.oom_kills, -1);
    assert_int_equal(cgroup_open_v2(&child), -1);
    cgroup_parse_unified(HYBRID, unified, sizeof unified);
    assert_string_equal(unified, "/sys/fs/cgroup/unified");
    cgroup_parse_unified("", unified, sizeof unified);
    assert_string_equal(unified, "");
}

static void test_names(void **state)
{
    static const char *const bad[] = {"", "/", "a/", "/a", "a//b", ".", "..",
                                      "a/../b", "a/."};
    struct cgroup cg, child;
    struct err err;
    char longest[CGROUP_DIR_SIZE + 1];
    size_t i;

    (void) state;
    cgroup_parse(HYBRID, NULL, "", &cg);
    for (i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_err(cgroup_child(&cg, bad[i], &child, &err), &err,
                   ERR_INVALID);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_err(cgroup_child(&cg, longest, &child, &err), &err, ERR_INVALID);
    assert_ok(cgroup_child(&cg, "...x/.y", &child, &err), &err);
    assert_string_equal(dir(&child, CGROUP_PIDS),
                        "/sys/fs/cgroup/pids/...x/.y");
    assert_int_equal(child.v2, cg.v2);
}

static void test_known_directories(void **state)
{
    struct cgroup cg = {0};
    struct err err;

    (void) state;
    assert_ok(cgroup_set_v1(&cg, CGROUP_MEMORY, "/m", &err), &err);
    assert_ok(cgroup_set_v1(&cg, CGROUP_PIDS, "/p", &err), &err);
    assert_int_equal(cgroup_version(&cg), 1);
    assert_err(cgroup_set_v1(&cg, CGROUP_CPU, "m", &err), &err, ERR_INVALID);
    assert_ok(cgroup_set_v2(&cg, "/nowhere", &err), &err);
    assert_string_equal(dir(&cg, CGROUP_FREEZER), "/nowhere");
    assert_string_equal(dir(&cg, CGROUP_MEMORY), "/m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hybrid),
        cmocka_unit_test(test_v1_joint_mounts),
        cmocka_unit_test(test_pure_v2),
        cmocka_unit_test(test_inside_a_container),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_known_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
