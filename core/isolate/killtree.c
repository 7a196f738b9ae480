/* SPDX-License-Identifier: Apache-2.0 */
/*
 * killtree.c: ending a process and all that came from it.
 *
 * A tree of processes cannot be walked and killed: while one is looked at,
 * another forks, and an orphan no longer tells whose child it was. So the
 * means are those where the kernel keeps the tree together (a pid namespace,
 * a control group) or hands orphans to us (a child subreaper). Every means
 * that the caller names is used in turn, best first, each until it has
 * nothing left or the time is over: they cover different escapes, and on an
 * empty tree they cost microseconds.
 *
 *   thaw -> signal the first process -> group -> children -> marked -> wait
 *
 * Called by crunch-run's supervisor and by cdc-local-vm, from one thread; it
 * blocks up to the timeout. It reaps children only with `subreaper`. It never
 * signals by a bare pid that may have been re-used: children are ours until
 * we reap them, marked processes are held by a pidfd while they are looked
 * at.
 */

#include "core/isolate/killtree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/isolate/cgroup.h"
#include "core/isolate/procid.h"
#include "core/isolate/sysfile.h"

enum { ENVIRON_MAX = 4 << 20, CHILDREN_MAX = 1 << 20, MARKED_MAX = 4096 };

static void nap(long *us)
{
    struct timespec ts = {0, *us * 1000};

    nanosleep(&ts, NULL);
    if (*us < 20000)
        *us *= 2;
}

static int left_ms(int64_t deadline)
{
    int64_t us = deadline - clock_mono_us();

    return us <= 0 ? 0 : (int) ((us + 999) / 1000);
}

/* --- children of a subreaper --------------------------------------------- */

/* Signal each pid of a blank-separated list. */
static void kill_list(const char *list)
{
    char *end;
    long pid;

    for (; (pid = strtol(list, &end, 10)) > 0 && end != list; list = end)
        kill((pid_t) pid, SIGKILL);
}

/* Children belong to the thread that they came to; look at all. */
static int kill_children(struct err *err)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    int read_any = 0;

    while (d && (e = readdir(d))) {
        char path[sizeof e->d_name + 32];
        CLEANUP(mem_free) char *list = NULL;
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/children", e->d_name);
        list = sysfile_read_all(path, CHILDREN_MAX, NULL);
        if (!list)
            continue;
        kill_list(list);
        read_any = 1;
    }
    if (d)
        closedir(d);
    if (!read_any)
        return err_set(err, ERR_UNSUPPORTED,
                       "the kernel does not list children");
    return 0;
}

/* False when no child is left. */
static bool reap(struct killtree *k)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) != 0) {
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            return false;
        if (pid == k->main_pid) {
            k->main_reaped = true;
            k->main_status = status;
        }
    }
    return true;
}

static int end_children(struct killtree *k, int64_t deadline,
                        struct err *err)
{
    long us = 100;

    while (reap(k)) {
        if (clock_mono_us() >= deadline)
            return err_set(err, ERR_TIMEOUT, "children do not end");
        if (kill_children(err) < 0)
            return -1;
        nap(&us);
    }
    return 0;
}

/* --- processes with a mark ----------------------------------------------- */

static bool has_mark(pid_t pid, const char *mark)
{
    char path[64];
    CLEANUP(mem_free) char *env = NULL;
    size_t len = 0, i;
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d", (int) pid);
    if (stat(path, &st) < 0 || st.st_uid != geteuid())
        return false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int) pid);
    env = sysfile_read_all(path, ENVIRON_MAX, &len);
    for (i = 0; env && i < len; i += strlen(env + i) + 1)
        if (strcmp(env + i, mark) == 0)
            return true;
    return false;
}

int killtree_find_marked(const char *mark, pid_t *ret, int max)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d))) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid <= 1 || pid == getpid() || !has_mark((pid_t) pid, mark))
            continue;
        if (n < max)
            ret[n] = (pid_t) pid;
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

static void kill_marked(pid_t pid, const char *mark)
{
    CLEANUP(mem_close) int fd = pidfd_open(pid, 0);

    if (fd >= 0 && has_mark(pid, mark))
        pidfd_send_signal(fd, SIGKILL, NULL, 0);
}

static int end_marked(const char *mark, int64_t deadline, struct err *err)
{
    CLEANUP(mem_free) pid_t *pids = mem_calloc(MARKED_MAX, sizeof *pids);
    long us = 200;
    int n, i;

    while ((n = killtree_find_marked(mark, pids, MARKED_MAX)) > 0) {
        if (clock_mono_us() >= deadline)
            return err_set(err, ERR_TIMEOUT, "%d marked processes stay", n);
        for (i = 0; i < n && i < MARKED_MAX; i++)
            kill_marked(pids[i], mark);
        nap(&us);
    }
    return 0;
}

/* --- all of it ----------------------------------------------------------- */

static int end_first(struct killtree *k, struct err *err)
{
    if (pidfd_send_signal(k->pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
        return err_set_errno(err, errno, "kill the first process");
    k->used |= k->pidfd_is_init ? KILLTREE_PIDNS : 0;
    return 0;
}

static int end_group(struct killtree *k, int64_t deadline, struct err *err)
{
    if (!cgroup_exists(k->cg))
        return 0;
    k->used |= KILLTREE_CGROUP;
    return cgroup_kill(k->cg, left_ms(deadline), err);
}

/* The kernel has ended all of a pid namespace when its init can be waited
 * for. A child of ours that is not reaped here would be seen as dead too. */
static int wait_first(struct killtree *k, int64_t deadline, struct err *err)
{
    if (procid_wait(k->pidfd, left_ms(deadline)))
        return 0;
    return err_set(err, ERR_TIMEOUT, "the first process does not end");
}

int killtree_run(struct killtree *k, int timeout_ms, struct err *err)
{
    int64_t deadline = clock_mono_us() + (int64_t) timeout_ms * 1000;

    if (k->pidfd < 0 && !k->cg && !k->subreaper && !k->mark)
        return err_set(err, ERR_UNSUPPORTED, "no means to kill the tree");
    if (k->pidfd >= 0 && end_first(k, err) < 0)
        return -1;
    if (k->cg)
        cgroup_freeze(k->cg, false, 0, NULL);
    if (k->pidfd >= 0 && k->pidfd_is_init &&
        wait_first(k, deadline, err) < 0)
        return -1;
    if (k->cg && end_group(k, deadline, err) < 0)
        return -1;
    if (k->subreaper && end_children(k, deadline, err) < 0)
        return -1;
    k->used |= k->subreaper ? KILLTREE_SUBREAPER : 0;
    if (k->mark && end_marked(k->mark, deadline, err) < 0)
        return -1;
    k->used |= k->mark ? KILLTREE_MARKED : 0;
    return k->pidfd >= 0 ? wait_first(k, deadline, err) : 0;
}
