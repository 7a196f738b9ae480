/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_make.c: making, limiting, entering and removing control groups.
 *
 * Making goes from the parent downwards, one step at a time in all trees. In
 * the v2 tree a controller reaches a group only if every group above it lists
 * the controller in cgroup.subtree_control, and a group that holds processes
 * itself must not do that (the true root is exempt). A tree that refuses
 * is dropped from the result and the rest goes on: what is limited in the end
 * is what cgroup_set_limits() reports.
 *
 * Removing is the reverse, children first. The kernel keeps a group busy for
 * a moment after its last process was killed, so EBUSY is tried again until
 * the caller's time is over. Names of groups come from the caller and are
 * checked by cgroup_child().
 *
 * Any thread; blocks in cgroup_remove() only, up to its timeout.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/isolate/cgroup_fs.h"
#include "core/isolate/sysfile.h"

enum { CPU_PERIOD_US = 100000, CPU_QUOTA_MIN_US = 1000 };

/* --- making -------------------------------------------------------------- */

static void note(struct err *why, struct err *once)
{
    if (why && why->class == ERR_NONE)
        *why = *once;
}

static void drop(struct cgroup *cg, int tree)
{
    int t;

    if (tree == CGROUP_UNIFIED) {
        for (t = 0; t < CGROUP_TREE_COUNT; t++)
            if (cg->v2 & 1U << t)
                cg->dir[t][0] = '\0';
        cg->v2 = 0;
        return;
    }
    cg->dir[tree][0] = '\0';
    cg->v2 &= ~(1U << tree);
}

/*
 * A group below the true root that holds processes itself must not pass
 * controllers on. The kernel refuses memory there (EBUSY), but takes cpu and
 * pids, and then no process can enter the groups below ("domain invalid").
 */
static bool is_populated(const struct cgroup *cg)
{
    char path[CGROUP_FILE_SIZE], pid[16];

    return cgroup_file(cg, CGROUP_UNIFIED, "cgroup.type", path) &&
           access(path, F_OK) == 0 &&
           cgroup_file(cg, CGROUP_UNIFIED, "cgroup.procs", path) &&
           sysfile_read(path, pid, sizeof pid) > 0;
}

/* Let the children of `parent` have this controller. */
static int enable(const struct cgroup *parent, int tree, struct err *err)
{
    char path[CGROUP_FILE_SIZE], list[512], word[32];
    const char *name = cgroup_tree_name((enum cgroup_tree) tree);

    cgroup_file(parent, CGROUP_UNIFIED, "cgroup.subtree_control", path);
    sysfile_read(path, list, sizeof list);
    if (cgroup_has_word(list, name))
        return 0;
    if (is_populated(parent))
        return err_set_errno(err, EBUSY, "enable %s in %s", name, path);
    snprintf(word, sizeof word, "+%s", name);
    if (sysfile_write(path, word) < 0)
        return err_set_errno(err, errno, "enable %s in %s", name, path);
    return 0;
}

static bool is_limiting(int tree)
{
    return tree == CGROUP_MEMORY || tree == CGROUP_CPU || tree == CGROUP_PIDS;
}

/* Controllers of the v2 tree that the children of `parent` do not get. */
static void enable_all(const struct cgroup *parent, struct cgroup *cg,
                       bool bare, struct err *why)
{
    struct err err;
    int t;

    for (t = 0; t < CGROUP_TREE_COUNT; t++) {
        if (!cg->dir[t][0] || !(cg->v2 & 1U << t) || !is_limiting(t))
            continue;
        if (bare) {
            drop(cg, t);
        } else if (enable(parent, t, &err) < 0) {
            note(why, &err);
            drop(cg, t);
        }
    }
}

/* One step: `cg` names the groups to be made, `parent` those above. */
static void make_level(const struct cgroup *parent, struct cgroup *cg,
                       bool bare, struct err *why)
{
    struct err err;
    int t;

    enable_all(parent, cg, bare, why);
    for (t = 0; t < CGROUP_TREE_COUNT; t++) {
        if (!cg->dir[t][0] || mkdir(cg->dir[t], 0755) == 0 || errno == EEXIST)
            continue;
        err_set_errno(&err, errno, "make %s", cg->dir[t]);
        note(why, &err);
        drop(cg, cg->v2 & 1U << t ? CGROUP_UNIFIED : t);
    }
}

static int create(const struct cgroup *parent, const char *name, bool bare,
                  struct cgroup *ret, struct err *why, struct err *err)
{
    CLEANUP(mem_free) char *copy = mem_strdup(name);
    char *rest = copy, *part;
    struct cgroup above = *parent, cg;

    err_clear(why);
    if (cgroup_child(parent, name, &cg, err) < 0)
        return -1;
    while ((part = strsep(&rest, "/"))) {
        if (cgroup_child(&above, part, &cg, err) < 0)
            return -1;
        make_level(&above, &cg, bare, why);
        above = cg;
    }
    *ret = cg;
    return 0;
}

int cgroup_create(const struct cgroup *parent, const char *name,
                  struct cgroup *ret, struct err *why, struct err *err)
{
    return create(parent, name, false, ret, why, err);
}

int cgroup_create_bare(const struct cgroup *parent, const char *name,
                       struct cgroup *ret, struct err *why, struct err *err)
{
    return create(parent, name, true, ret, why, err);
}

/* --- limits -------------------------------------------------------------- */

static int put(const struct cgroup *cg, enum cgroup_tree tree,
               const char *file, const char *value, struct err *err)
{
    char path[CGROUP_FILE_SIZE];

    if (!cgroup_file(cg, tree, file, path))
        return err_set(err, ERR_UNSUPPORTED, "no %s controller",
                       cgroup_tree_name(tree));
    if (sysfile_write(path, value) < 0)
        return err_set_errno(err, errno, "write %s to %s", value, path);
    return 0;
}

/* Swap is part of the limit where the kernel counts it. */
static int limit_memory(const struct cgroup *cg,
                        const struct cgroup_limits *l, struct err *err)
{
    char value[32];

    snprintf(value, sizeof value, "%" PRId64, l->memory);
    if (cg->v2 & 1U << CGROUP_MEMORY) {
        put(cg, CGROUP_MEMORY, "memory.swap.max", "0", NULL);
        put(cg, CGROUP_MEMORY, "memory.oom.group", l->oom_group ? "1" : "0",
            NULL);
        return put(cg, CGROUP_MEMORY, "memory.max", value, err);
    }
    /* The limit may never exceed that of memory and swap together. */
    put(cg, CGROUP_MEMORY, "memory.memsw.limit_in_bytes", "-1", NULL);
    if (put(cg, CGROUP_MEMORY, "memory.limit_in_bytes", value, err) < 0)
        return -1;
    put(cg, CGROUP_MEMORY, "memory.memsw.limit_in_bytes", value, NULL);
    return 0;
}

static int limit_cpu(const struct cgroup *cg, const struct cgroup_limits *l,
                     struct err *err)
{
    int64_t quota = l->cpu_milli * (CPU_PERIOD_US / 1000);
    char value[64];

    if (quota < CPU_QUOTA_MIN_US)
        quota = CPU_QUOTA_MIN_US;
    if (cg->v2 & 1U << CGROUP_CPU) {
        snprintf(value, sizeof value, "%" PRId64 " %d", quota, CPU_PERIOD_US);
        return put(cg, CGROUP_CPU, "cpu.max", value, err);
    }
    snprintf(value, sizeof value, "%d", CPU_PERIOD_US);
    if (put(cg, CGROUP_CPU, "cpu.cfs_period_us", value, err) < 0)
        return -1;
    snprintf(value, sizeof value, "%" PRId64, quota);
    return put(cg, CGROUP_CPU, "cpu.cfs_quota_us", value, err);
}

static int limit_pids(const struct cgroup *cg, const struct cgroup_limits *l,
                      struct err *err)
{
    char value[32];

    snprintf(value, sizeof value, "%" PRId64, l->pids);
    return put(cg, CGROUP_PIDS, "pids.max", value, err);
}

uint32_t cgroup_set_limits(const struct cgroup *cg,
                           const struct cgroup_limits *limits,
                           struct err *why)
{
    const struct {
        int64_t want;
        uint32_t bit;
        int (*set)(const struct cgroup *cg, const struct cgroup_limits *l,
                   struct err *err);
    } all[] = {
        {limits->memory, CGROUP_LIMIT_MEMORY, limit_memory},
        {limits->cpu_milli, CGROUP_LIMIT_CPU, limit_cpu},
        {limits->pids, CGROUP_LIMIT_PIDS, limit_pids},
    };
    uint32_t in_force = 0;
    struct err err;
    size_t i;

    err_clear(why);
    for (i = 0; i < MEM_COUNT(all); i++) {
        if (all[i].want <= 0)
            continue;
        if (all[i].set(cg, limits, &err) == 0)
            in_force |= all[i].bit;
        else
            note(why, &err);
    }
    return in_force;
}

/* --- members ------------------------------------------------------------- */

int cgroup_attach(const struct cgroup *cg, pid_t pid, struct err *err)
{
    char value[16];
    struct err first = {0}, one;
    int t;

    snprintf(value, sizeof value, "%d", (int) pid);
    for (t = 0; t < CGROUP_TREE_COUNT; t++)
        if (cgroup_is_first(cg, (enum cgroup_tree) t) &&
            put(cg, (enum cgroup_tree) t, "cgroup.procs", value, &one) < 0)
            note(&first, &one);
    if (first.class == ERR_NONE)
        return 0;
    if (err)
        *err = first;
    return -1;
}

int cgroup_open_v2(const struct cgroup *cg)
{
    if (!cg->dir[CGROUP_UNIFIED][0])
        return -1;
    return open(cg->dir[CGROUP_UNIFIED], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* --- removing ------------------------------------------------------------ */

static void walk(const char *dir, int depth,
                 void (*fn)(const char *dir, void *arg), void *arg)
{
    char path[CGROUP_FILE_SIZE];
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d && depth < CGROUP_DEPTH && (e = readdir(d)))
        if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
            (size_t) snprintf(path, sizeof path, "%s/%s", dir, e->d_name) <
                sizeof path)
            walk(path, depth + 1, fn, arg);
    if (d) {
        closedir(d);
        fn(dir, arg);
    }
}

void cgroup_walk(const char *dir, void (*fn)(const char *dir, void *arg),
                 void *arg)
{
    walk(dir, 0, fn, arg);
}

static void remove_one(const char *dir, void *arg)
{
    int *errnum = arg;

    if (rmdir(dir) < 0 && errno != ENOENT)
        *errnum = errno;
}

static int remove_tree(const char *dir, int64_t deadline, struct err *err)
{
    struct timespec nap = {0, 1000000};
    int errnum;

    for (;;) {
        errnum = 0;
        cgroup_walk(dir, remove_one, &errnum);
        if (access(dir, F_OK) < 0)
            return 0;
        if (clock_mono_us() >= deadline)
            return err_set(err, ERR_TIMEOUT, "group %s stays: %s", dir,
                           strerror(errnum));
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < 20000000)
            nap.tv_nsec *= 2;
    }
}

int cgroup_remove(const struct cgroup *cg, int timeout_ms, struct err *err)
{
    int64_t deadline = clock_mono_us() + (int64_t) timeout_ms * 1000;
    int t, rc = 0;

    for (t = 0; t < CGROUP_TREE_COUNT; t++)
        if (cgroup_is_first(cg, (enum cgroup_tree) t) &&
            remove_tree(cg->dir[t], deadline, rc ? NULL : err) < 0)
            rc = -1;
    return rc;
}

void cgroup_remove_if_empty(const struct cgroup *cg)
{
    int t;

    for (t = 0; t < CGROUP_TREE_COUNT; t++)
        if (cg->dir[t][0])
            rmdir(cg->dir[t]);
}
