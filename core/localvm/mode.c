/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mode.c: full VMs or plain processes, decided by trying.
 *
 * Root in a container may lack CAP_SYS_ADMIN; root of a user namespace may
 * mount but not make device nodes; a seccomp filter may refuse what the
 * capabilities allow. So a child does the critical steps on /tmp in a mount
 * namespace that ends with it, and sends the reason through a pipe when one is
 * refused. A few milliseconds, once per call that needs to know.
 */

#include "core/localvm/mode.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/isolate/mnt.h"
#include "core/isolate/ns.h"

uint64_t mode_flags(void)
{
    return CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;
}

static int try_mounts(struct err *err)
{
    if (mnt_private(err) < 0 || mnt_dev("/tmp", err) < 0)
        return -1;
    return mnt_proc("/tmp", err);
}

/* The reason arrives through the pipe; nothing arrives = it worked. */
static int try_child(int pipe_out, struct err *err)
{
    int status;
    pid_t pid = ns_fork(mode_flags(), -1, NULL, err);

    if (pid < 0)
        return -1;
    if (pid == 0) {
        struct err e;
        int rc = try_mounts(&e);
        if (rc < 0)
            (void) !write(pipe_out, e.text, strlen(e.text));
        _exit(rc < 0);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, ERR_UNSUPPORTED, "a trial was refused");
    return 0;
}

void mode_find(struct mode *ret)
{
    int fds[2] = {-1, -1};
    struct err err;
    ssize_t n;

    memset(ret, 0, sizeof *ret);
    if (pipe2(fds, O_CLOEXEC) < 0 || try_child(fds[1], &err) == 0)
        goto out;
    ret->degraded = true;
    text_copy(ret->reason, err.text, sizeof ret->reason);
    close(fds[1]);
    fds[1] = -1;
    n = read(fds[0], ret->reason, sizeof ret->reason - 1);
    if (n > 0)
        ret->reason[n] = '\0';
out:
    mem_close(&fds[0]);
    mem_close(&fds[1]);
}

static bool is_shell(const char *path)
{
    const char *base = strrchr(path, '/');

    base = base ? base + 1 : path;
    return access(path, X_OK) == 0 && strcmp(base, "nologin") != 0 &&
           strcmp(base, "false") != 0;
}

int mode_user(const struct mode *mode, char *ret, size_t size, struct err *err)
{
    const struct passwd *pw = mode->degraded ? getpwuid(geteuid()) : NULL;

    if (mode->degraded && !pw)
        return err_set(err, ERR_CONFIG, "uid %u has no name to log in with; "
                       "run this as a user with an account",
                       (unsigned) geteuid());
    if (pw && *pw->pw_shell && !is_shell(pw->pw_shell))
        return err_set(err, ERR_CONFIG, "user %.32s cannot log in: its shell "
                       "is %.80s; run this as another user", pw->pw_name,
                       pw->pw_shell);
    text_copy(ret, pw ? pw->pw_name : "root", size);
    return 0;
}
