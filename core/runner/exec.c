/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a fork of init to the payload's command.
 *
 * The order matters: groups while we are root and see them through descriptors
 * opened before; then the standard descriptors; then the privileges go; and
 * only then anything that depends on what the payload may do: its working
 * folder, the search for its command, execve. So a folder that only root can
 * enter is refused exactly as it would be refused to the payload.
 *
 * The codes are those of a shell: 127 when there is no such command, 126 when
 * it cannot be executed. No shell is used: the arguments are handed on as they
 * are, and a text file without "#!" is refused.
 */
#include "core/runner/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/isolate/caps.h"
#include "core/isolate/ns.h"
#include "core/runner/job.h"
#include "core/runner/node.h"
#include "core/runner/payload.h"
#include "core/runner/stage.h"

#define DEFAULT_PATH                                                          \
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum { CANNOT_EXECUTE = 126, NOT_FOUND = 127, OOM_SCORE = 300 };

static void not_run(int ctl, int code, const char *what, int errnum)
    __attribute__((noreturn));

static void not_run(int ctl, int code, const char *what, int errnum)
{
    char text[PAYLOAD_TEXT_SIZE];

    if (code == NOT_FOUND)
        snprintf(text, sizeof text, "command not found: %.400s", what);
    else
        snprintf(text, sizeof text, "cannot be started: %.400s: %s", what,
                 strerror(errnum));
    payload_tell(ctl, PAYLOAD_NOT_RUN, code, text);
    _exit(code);
}

/* Under memory pressure on the whole machine the payload goes first. */
static void offer_to_oom(void)
{
    CLEANUP(mem_close) int fd = open("/proc/self/oom_score_adj",
                                     O_WRONLY | O_CLOEXEC);
    char text[16];
    int n = snprintf(text, sizeof text, "%d", OOM_SCORE);

    if (fd >= 0 && write(fd, text, (size_t) n) < 0)
        return; /* it is a favour, not a duty */
}

static void reset_signals(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int n = 1; n < NSIG; n++)
        sigaction(n, &dfl, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* 0, 1, 2 become the stage's, ctl moves to 3, everything else closes. */
static int arrange_fds(const struct stage *s, int ctl)
{
    int high[4];

    for (int i = 0; i < 3; i++)
        high[i] = fcntl(s->std_fd[i], F_DUPFD_CLOEXEC, 10);
    high[3] = fcntl(ctl, F_DUPFD_CLOEXEC, 10);
    for (int i = 0; i < 3; i++)
        dup2(high[i], i);
    dup3(high[3], 3, O_CLOEXEC);
    ns_close_fds(4, NULL, 0);
    return 3;
}

static const char *env_value(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; *env; env++) {
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    }
    return NULL;
}

/* Try each folder of PATH, as execvpe() does, but with the payload's PATH and
 * without its fall-back to a shell. Returns only on failure. */
static int search_and_exec(char *const *argv, char *const *env)
{
    const char *path = env_value(env, "PATH");
    int worst = ENOENT;

    if (!path || !*path)
        path = DEFAULT_PATH;
    while (*path) {
        char file[PATH_MAX];
        size_t n = strcspn(path, ":");
        int len = snprintf(file, sizeof file, "%.*s/%s", (int) n,
                           n ? path : ".", argv[0]);

        if (len > 0 && (size_t) len < sizeof file) {
            execve(file, argv, env);
            if (errno != ENOENT && errno != ENOTDIR)
                worst = errno;
        }
        path += n + (path[n] == ':');
    }
    return worst;
}

static void child(const struct payload_spec *spec, int ctl)
    __attribute__((noreturn));

static void child(const struct payload_spec *spec, int ctl)
{
    const struct node *node = spec->node;
    char *const *argv = spec->job->argv;
    struct err err = {0};
    int errnum;

    offer_to_oom();
    reset_signals();
    setsid();
    ctl = arrange_fds(spec->stage, ctl);
    if ((node->plain ? caps_no_new_privs(&err)
                     : caps_become(node->uid, node->gid, &err)) < 0) {
        payload_tell(ctl, PAYLOAD_FAILED, err.class, err.text);
        _exit(1);
    }
    if (chdir(spec->cwd) < 0)
        not_run(ctl, CANNOT_EXECUTE, spec->cwd, errno);
    if (argv[0][0] == '\0' || strchr(argv[0], '/')) {
        execve(argv[0], argv, spec->env);
        errnum = errno;
    } else {
        errnum = search_and_exec(argv, spec->env);
    }
    not_run(ctl, errnum == ENOENT || errnum == ENOTDIR ? NOT_FOUND
                                                       : CANNOT_EXECUTE,
            argv[0], errnum);
}

static int enter_groups(const struct payload_spec *spec)
{
    for (size_t i = 0; i < spec->n_group_fds; i++) {
        if (write(spec->group_fds[i], "0", 1) != 1)
            return -1;
    }
    return 0;
}

pid_t exec_start(const struct payload_spec *spec, int ctl)
{
    pid_t pid = fork();

    if (pid < 0)
        payload_tell(ctl, PAYLOAD_FAILED, ERR_TRANSIENT, strerror(errno));
    if (pid != 0)
        return pid;
    if (enter_groups(spec) < 0) {
        payload_tell(ctl, PAYLOAD_FAILED, ERR_INTERNAL,
             "cannot enter the container's cgroup");
        _exit(1);
    }
    child(spec, ctl);
}
