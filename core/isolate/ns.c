/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns.c: fork() into namespaces.
 *
 * clone3() is called directly: libc has no wrapper, and its clone() wants a
 * stack. With a zeroed stack field the child goes on where the parent is, as
 * after fork(). Some container filters answer ENOSYS to clone3() (they cannot
 * look into its argument) but allow clone(), which does the same save for
 * starting inside a cgroup; so that is the fall-back.
 *
 * ns_probe() answers "can I?" by doing it in a child that ends at once: the
 * uid, capabilities and sysctls say little in a container. Its child reports
 * through its exit code which step was refused.
 *
 * Must not be called with other threads running, unless the child keeps to
 * async-signal-safe calls.
 */

#include "core/isolate/ns.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"

static pid_t clone_old(uint64_t flags, int *pidfd)
{
    /* flags, stack, parent_tid (here: pidfd); the other two, whose order
     * differs between machines, are not used. */
    return (pid_t) syscall(SYS_clone, (unsigned long) flags | CLONE_PIDFD |
                           SIGCHLD, 0UL, pidfd, 0UL, 0UL);
}

pid_t ns_fork(uint64_t flags, int cgroup_fd, int *ret_pidfd, struct err *err)
{
    struct clone_args args = {0};
    int pidfd = -1;
    pid_t pid;

    args.flags = flags | CLONE_PIDFD;
    args.pidfd = (uintptr_t) &pidfd;
    args.exit_signal = SIGCHLD;
    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t) cgroup_fd;
    }
    pid = (pid_t) syscall(SYS_clone3, &args, sizeof args);
    if (pid < 0 && errno == ENOSYS && cgroup_fd >= 0)
        return err_set(err, ERR_UNSUPPORTED, "no clone3() to start in a group");
    if (pid < 0 && errno == ENOSYS)
        pid = clone_old(flags, &pidfd);
    if (pid < 0)
        return err_set_errno(err, errno, "clone");
    if (pid == 0)
        return 0;
    if (ret_pidfd)
        *ret_pidfd = pidfd;
    else
        close(pidfd);
    return pid;
}

static const char *const probe_steps[] = {
    "nothing", "making mounts private", "mounting a tmpfs", "mounting proc"
};

/* In the child: the number of the step that was refused, 0 = none. */
static int probe_child(uint64_t flags)
{
    if (!(flags & CLONE_NEWNS))
        return 0;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 1;
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=4k") < 0)
        return 2;
    if ((flags & CLONE_NEWPID) &&
        mount("proc", "/tmp", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              NULL) < 0)
        return 3;
    return 0;
}

int ns_probe(uint64_t flags, struct err *err)
{
    int status;
    pid_t pid = ns_fork(flags, -1, NULL, err);

    if (pid < 0)
        return -1;
    if (pid == 0)
        _exit(probe_child(flags));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set_errno(err, errno, "wait for the trial child");
    if (!WIFEXITED(status))
        return err_set(err, ERR_UNSUPPORTED, "the trial child was killed");
    if (WEXITSTATUS(status) != 0)
        return err_set(err, ERR_UNSUPPORTED, "%s is refused here",
                       probe_steps[WEXITSTATUS(status) & 3]);
    return 0;
}

void ns_close_fds(int from, const int *keep, int n_keep)
{
    unsigned first = (unsigned) from;
    int i;

    for (i = 0; i < n_keep; i++) {
        unsigned fd = (unsigned) keep[i];
        if (fd < first)
            continue;
        if (fd > first)
            syscall(SYS_close_range, first, fd - 1, 0U);
        first = fd + 1;
    }
    syscall(SYS_close_range, first, ~0U, 0U);
}

int ns_set_hostname(const char *name, struct err *err)
{
    if (sethostname(name, strlen(name)) < 0)
        return err_set_errno(err, errno, "set the host name");
    return 0;
}
