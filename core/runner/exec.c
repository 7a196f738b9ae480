/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a fork of init to the payload's command.
 *
 * The order matters: groups while we are root and see them through descriptors
 * opened before; then the standard descriptors; then the privileges go; then
 * we wait for leave, since all that may go on while the server is asked for
 * it; and only then anything that depends on what the payload may do: its
 * working folder, the search for its command, execve. So a folder that only
 * root can enter is refused exactly as it would be refused to the payload.
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

/* Descriptors of the child besides the standard ones, until execve. */
enum { CTL = 3, GO = 4 };

static void not_run(int code, const char *what, int errnum)
    __attribute__((noreturn));

static void not_run(int code, const char *what, int errnum)
{
    char text[PAYLOAD_TEXT_SIZE];

    if (code == NOT_FOUND)
        snprintf(text, sizeof text, "command not found: %.400s", what);
    else
        snprintf(text, sizeof text, "cannot be started: %.400s: %s", what,
                 strerror(errnum));
    payload_tell(CTL, PAYLOAD_NOT_RUN, code, text);
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

/* Standard input, the pipes, CTL and GO; all else closes. */
static int arrange_fds(const struct payload_spec *spec, int ctl, int go,
                       struct err *err)
{
    const int from[] = {spec->stage->std_fd[0], spec->out_fd[0],
                        spec->out_fd[1], ctl, go};
    int high[MEM_COUNT(from)];

    for (size_t i = 0; i < MEM_COUNT(from); i++) {
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 10);
        if (high[i] < 0)
            return err_set_errno(err, errno, "no descriptor for the payload");
    }
    for (int i = 0; i < (int) MEM_COUNT(from); i++)
        if (dup3(high[i], i, i < CTL ? 0 : O_CLOEXEC) < 0)
            return err_set_errno(err, errno, "no descriptor for the payload");
    ns_close_fds(GO + 1, NULL, 0);
    return 0;
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

static void failed(const struct err *err) __attribute__((noreturn));

static void failed(const struct err *err)
{
    payload_tell(CTL, PAYLOAD_FAILED, err->class, err->text);
    _exit(1);
}

static int enter_groups(const struct payload_spec *spec, struct err *err)
{
    for (size_t i = 0; i < spec->n_group_fds; i++) {
        if (write(spec->group_fds[i], "0", 1) != 1)
            return err_set_errno(err, errno, "enter the container's cgroup");
    }
    return 0;
}

/* Everything that can be done before leave is given. */
static int prepare(const struct payload_spec *spec, int ctl, int go,
                   struct err *err)
{
    const struct node *node = spec->node;
    int r = enter_groups(spec, err);
    struct err fds = {0};

    offer_to_oom();
    reset_signals();
    setsid();
    if (arrange_fds(spec, ctl, go, &fds) < 0) {
        /* CTL is not there; what we were given still is. */
        payload_tell(ctl, PAYLOAD_FAILED, fds.class, fds.text);
        _exit(1);
    }
    if (r < 0)
        return -1;
    return node->plain ? caps_no_new_privs(err)
                       : caps_become(node->uid, node->gid, err);
}

static void child(const struct payload_spec *spec, int ctl, int go)
    __attribute__((noreturn));

static void child(const struct payload_spec *spec, int ctl, int go)
{
    char *const *argv = spec->job->argv;
    struct err err = {0};
    int errnum;
    char leave;

    if (prepare(spec, ctl, go, &err) < 0)
        failed(&err);
    if (read(GO, &leave, 1) != 1)
        _exit(1);
    if (chdir(spec->cwd) < 0)
        not_run(CANNOT_EXECUTE, spec->cwd, errno);
    if (argv[0][0] == '\0' || strchr(argv[0], '/')) {
        execve(argv[0], argv, spec->env);
        errnum = errno;
    } else {
        errnum = search_and_exec(argv, spec->env);
    }
    not_run(errnum == ENOENT || errnum == ENOTDIR ? NOT_FOUND
                                                  : CANNOT_EXECUTE,
            argv[0], errnum);
}

pid_t exec_prepare(const struct payload_spec *spec, int ctl_fd,
                   int *ret_go_fd, struct err *err)
{
    int go[2];
    pid_t pid;

    if (pipe2(go, O_CLOEXEC) < 0)
        return err_set_errno(err, errno, "pipe");
    pid = ns_fork(0, spec->group_fd, NULL, err);
    if (pid == 0) {
        close(go[1]);
        child(spec, ctl_fd, go[0]);
    }
    close(go[0]);
    if (pid < 0) {
        close(go[1]);
        return -1;
    }
    *ret_go_fd = go[1];
    return pid;
}
