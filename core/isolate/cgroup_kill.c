/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_kill.c: stopping and killing all processes of a group and below.
 *
 * Three ways, by what the kernel has. cgroup.kill (v2, Linux 5.14) takes
 * forks in flight along. A v1 freezer stops everything first, so that nothing
 * can fork away from the signals; but a frozen v1 process does not die before
 * it is thawed, so after the signals comes the thaw, whoever froze it. With
 * neither, signals are repeated until the group is empty; a fork bomb may
 * outrun that, and then the timeout tells.
 *
 * The group must be of processes that all are to die. The caller's own pid is
 * never signalled, should it be in there. Any thread; blocks up to the
 * timeout.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/isolate/cgroup_fs.h"
#include "core/isolate/sysfile.h"

int cgroup_procs_tree(const struct cgroup *cg)
{
    static const enum cgroup_tree order[] = {
        CGROUP_FREEZER, CGROUP_UNIFIED, CGROUP_PIDS, CGROUP_MEMORY,
        CGROUP_CPU, CGROUP_CPUACCT, CGROUP_SYSTEMD
    };
    size_t i;

    for (i = 0; i < MEM_COUNT(order); i++)
        if (cg->dir[order[i]][0] && access(cg->dir[order[i]], F_OK) == 0)
            return (int) order[i];
    return -1;
}

/* --- members ------------------------------------------------------------- */

struct procs {
    int count;
    int signum; /* 0 = count only */
};

static void procs_of(const char *dir, void *arg)
{
    struct procs *p = arg;
    char path[CGROUP_FILE_SIZE];
    CLEANUP(mem_free) char *text = NULL;
    char *at, *end;

    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    text = sysfile_read_all(path, CGROUP_PROCS_MAX, NULL);
    for (at = text; at && *at; at = end + strspn(end, "\n")) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            return;
        if (pid == getpid())
            continue;
        p->count++;
        if (p->signum && pid > 1)
            kill((pid_t) pid, p->signum);
    }
}

static int visit(const struct cgroup *cg, int tree, int signum)
{
    struct procs p = {.signum = signum};

    cgroup_walk(cg->dir[tree], procs_of, &p);
    return p.count;
}

int cgroup_count(const struct cgroup *cg)
{
    int tree = cgroup_procs_tree(cg);

    return tree < 0 ? -1 : visit(cg, tree, 0);
}

/* --- freezing ------------------------------------------------------------ */

static void thaw_v1(const char *dir, void *arg)
{
    char path[CGROUP_FILE_SIZE];

    (void) arg;
    snprintf(path, sizeof path, "%s/freezer.state", dir);
    sysfile_write(path, "THAWED");
}

static void thaw_v2(const char *dir, void *arg)
{
    char path[CGROUP_FILE_SIZE];

    (void) arg;
    snprintf(path, sizeof path, "%s/cgroup.freeze", dir);
    sysfile_write(path, "0");
}

/* In both kinds of tree, for groups below may have been frozen by others. */
static void thaw_all(const struct cgroup *cg)
{
    if (cg->dir[CGROUP_FREEZER][0] && !(cg->v2 & 1U << CGROUP_FREEZER))
        cgroup_walk(cg->dir[CGROUP_FREEZER], thaw_v1, NULL);
    if (cg->dir[CGROUP_UNIFIED][0])
        cgroup_walk(cg->dir[CGROUP_UNIFIED], thaw_v2, NULL);
}

static bool is_v2_freezer(const struct cgroup *cg)
{
    return cg->v2 & 1U << CGROUP_FREEZER;
}

static bool is_frozen(const struct cgroup *cg)
{
    char path[CGROUP_FILE_SIZE], text[256];
    const char *file = is_v2_freezer(cg) ? "cgroup.events" : "freezer.state";

    cgroup_file(cg, CGROUP_FREEZER, file, path);
    sysfile_read(path, text, sizeof text);
    if (is_v2_freezer(cg))
        return sysfile_number(text, "frozen") == 1;
    return strncmp(text, "FROZEN", 6) == 0;
}

static void nap(long us)
{
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&ts, NULL);
}

int cgroup_freeze(const struct cgroup *cg, bool frozen, int timeout_ms,
                  struct err *err)
{
    int64_t deadline = clock_mono_us() + (int64_t) timeout_ms * 1000;
    char path[CGROUP_FILE_SIZE];

    if (!frozen)
        thaw_all(cg);
    if (!cg->dir[CGROUP_FREEZER][0])
        return err_set(err, ERR_UNSUPPORTED, "no freezer here");
    if (frozen) {
        cgroup_file(cg, CGROUP_FREEZER, is_v2_freezer(cg) ? "cgroup.freeze" :
                    "freezer.state", path);
        if (sysfile_write(path, is_v2_freezer(cg) ? "1" : "FROZEN") < 0)
            return err_set_errno(err, errno, "freeze %s", path);
    }
    while (is_frozen(cg) != frozen) {
        if (clock_mono_us() >= deadline)
            return err_set(err, ERR_TIMEOUT, "%s does not %s",
                           cg->dir[CGROUP_FREEZER],
                           frozen ? "freeze" : "thaw");
        nap(500);
    }
    return 0;
}

/* --- killing ------------------------------------------------------------- */

/* One round; true when the kernel's own kill was used. */
static bool kill_by_kernel(const struct cgroup *cg)
{
    char path[CGROUP_FILE_SIZE];

    return cgroup_file(cg, CGROUP_UNIFIED, "cgroup.kill", path) &&
           sysfile_write(path, "1") == 0;
}

static void kill_by_signal(const struct cgroup *cg, int tree)
{
    cgroup_freeze(cg, true, 200, NULL);
    visit(cg, tree, SIGKILL);
}

int cgroup_kill(const struct cgroup *cg, int timeout_ms, struct err *err)
{
    int64_t deadline = clock_mono_us() + (int64_t) timeout_ms * 1000;
    int tree = cgroup_procs_tree(cg), left;
    long wait_us = 200;
    bool by_kernel;

    if (tree < 0)
        return err_set(err, ERR_UNSUPPORTED, "the group is in no tree");
    by_kernel = kill_by_kernel(cg);
    thaw_all(cg);
    while ((left = visit(cg, tree, 0)) > 0) {
        if (clock_mono_us() >= deadline)
            return err_set(err, ERR_TIMEOUT, "%d processes stay in %s", left,
                           cg->dir[tree]);
        if (!by_kernel || wait_us > 10000) {
            kill_by_signal(cg, tree);
            thaw_all(cg);
        }
        nap(wait_us);
        if (wait_us < 20000)
            wait_us *= 2;
    }
    return 0;
}
