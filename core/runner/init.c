/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The payload's first process.
 *
 *   build    close what is not ours, make the root, raise the loopback device,
 *            make the child that becomes the command
 *   ready    tell; wait for the order to go, or for the supervisor's death
 *   run      let the child go; reap everything; pass TERM on; move what the
 *            payload says from its pipes to the log files
 *   end      the command has ended, or the order to kill came, or the
 *            supervisor died: kill all others, reap until nobody is left, end
 *
 * As pid 1 of a namespace nothing inside can signal or trace us: we are root
 * there and not dumpable, the payload is neither. When we end, the kernel kills
 * what is left; but our descriptors are closed before that, and with them the
 * lock. So we kill and reap ourselves first: the lock must not be free while
 * anything of the payload lives. In plain mode the same is done as a child
 * subreaper, with the means of core/isolate.
 *
 * Nothing of the payload runs before the order to go, which the supervisor
 * gives only after the server's word that the container is Running.
 */
#include "core/runner/init.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/isolate/killtree.h"
#include "core/isolate/ns.h"
#include "core/runner/exec.h"
#include "core/runner/job.h"
#include "core/runner/node.h"
#include "core/runner/payload.h"
#include "core/runner/root.h"
#include "core/runner/stage.h"

enum { KILL_MS = 5000 };

struct init {
    struct payload_spec *spec;
    int ctl;        /* the supervisor */
    int supervisor; /* its pidfd */
    int sigfd;      /* SIGCHLD */
    bool plain;
    pid_t main;     /* becomes the command; 0 = not made */
    int go;         /* write to let it; -1 = done */
    bool ended;
    int status;     /* of main */
};

/* A network of its own has a loopback device, which is down. */
static void raise_loopback(void)
{
    CLEANUP(mem_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (fd >= 0)
        ioctl(fd, SIOCSIFFLAGS, &ifr);
}

static int make_sigfd(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_SETMASK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

/* Keep the stage, the lock, and the ways to the supervisor. */
static void close_others(const struct init *in)
{
    const struct stage *s = in->spec->stage;
    size_t n = 0;
    CLEANUP(mem_free) int *keep = mem_calloc(
        s->n_mounts + in->spec->n_group_fds + 10, sizeof *keep);

    for (size_t i = 0; i < s->n_mounts; i++)
        keep[n++] = s->mounts[i].fd;
    for (size_t i = 0; i < 3; i++)
        keep[n++] = s->std_fd[i];
    for (size_t i = 0; i < in->spec->n_group_fds; i++)
        keep[n++] = in->spec->group_fds[i];
    for (size_t i = 0; i < 2; i++) {
        keep[n++] = in->spec->out_fd[i];
        keep[n++] = in->spec->out[i].from;
    }
    keep[n++] = in->ctl;
    keep[n++] = in->supervisor;
    keep[n++] = in->spec->lock_fd;
    if (in->spec->group_fd >= 0)
        keep[n++] = in->spec->group_fd;
    qsort(keep, n, sizeof *keep, by_number);
    ns_close_fds(3, keep, (int) n);
}

static int build(struct init *in, struct err *err)
{
    const struct payload_spec *spec = in->spec;

    prctl(PR_SET_NAME, "crunch-init", 0, 0, 0);
    setsid();
    close_others(in);
    in->sigfd = make_sigfd();
    if (in->sigfd < 0)
        return err_set_errno(err, errno, "signalfd");
    if (in->plain && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_set_errno(err, errno, "become a subreaper");
    if (!in->plain && !spec->network)
        raise_loopback();
    if (!in->plain &&
        root_enter(spec->node, spec->stage, spec->image, err) < 0)
        return -1;
    in->main = exec_prepare(spec, in->ctl, &in->go, err);
    close(spec->out_fd[0]);
    close(spec->out_fd[1]);
    return in->main < 0 ? -1 : 0;
}

static bool supervisor_died(const struct init *in)
{
    struct pollfd pf = {.fd = in->supervisor, .events = POLLIN};

    return poll(&pf, 1, 0) != 0;
}

/* Kill all others and wait for them. */
static void end_others(struct init *in)
{
    struct killtree k = KILLTREE_INIT;
    CLEANUP(mem_free) char *mark =
        mem_printf("CDC_CONTAINER_UUID=%s", in->spec->job->uuid);

    if (in->plain) {
        k.subreaper = true;
        k.mark = mark;
        k.main_pid = in->ended ? 0 : in->main;
        killtree_run(&k, KILL_MS, NULL);
        return;
    }
    /* Everybody in the namespace but us. Whose parent dies comes to us, so
     * without a child we are alone. */
    do
        kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

static void reap(struct init *in)
{
    struct signalfd_siginfo drop[8];
    int status;
    pid_t pid;

    while (read(in->sigfd, drop, sizeof drop) > 0)
        continue;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == in->main) {
            in->ended = true;
            in->status = status;
        }
    }
}

static void term_all(const struct init *in)
{
    pid_t pids[1024];
    CLEANUP(mem_free) char *mark =
        mem_printf("CDC_CONTAINER_UUID=%s", in->spec->job->uuid);
    int n;

    if (!in->plain) {
        kill(-1, SIGTERM);
        return;
    }
    n = killtree_find_marked(mark, pids, (int) MEM_COUNT(pids));
    for (int i = 0; i < n && i < (int) MEM_COUNT(pids); i++)
        kill(pids[i], SIGTERM);
    if (in->main && !in->ended)
        kill(in->main, SIGTERM);
}

/* 0: end now. */
static int obey(struct init *in)
{
    char order = INIT_KILL;

    if (recv(in->ctl, &order, 1, MSG_DONTWAIT) < 0 &&
        (errno == EAGAIN || errno == EINTR))
        return 1;
    switch (order) {
    case INIT_GO:
        if (in->go < 0 || supervisor_died(in) || write(in->go, "", 1) != 1)
            return 0;
        close(in->go);
        in->go = -1;
        return 1;
    case INIT_TERM:
        term_all(in);
        return 1;
    default:
        return 0;
    }
}

static void loop(struct init *in)
{
    struct pump *out = in->spec->out;

    while (!in->ended) {
        struct pollfd pf[5] = {
            {.fd = in->sigfd, .events = POLLIN},
            {.fd = in->ctl, .events = POLLIN},
            {.fd = in->supervisor, .events = POLLIN},
            {.fd = out[0].from, .events = POLLIN},
            {.fd = out[1].from, .events = POLLIN},
        };

        if (poll(pf, 5, -1) < 0)
            continue;
        for (int i = 0; i < 2; i++) {
            if (pf[3 + i].revents)
                pump_run(&out[i]);
        }
        if (pf[0].revents)
            reap(in);
        if (pf[2].revents || (pf[1].revents && !obey(in)))
            return;
    }
}

void init_run(struct payload_spec *spec, int ctl_fd, int supervisor)
{
    struct init in = {
        .spec = spec,
        .ctl = ctl_fd,
        .supervisor = supervisor,
        .plain = spec->node->plain,
        .go = -1,
    };
    struct err err = {0};

    if (spec->forget)
        spec->forget(spec->arg);
    if (build(&in, &err) < 0) {
        payload_tell(ctl_fd, PAYLOAD_FAILED, err.class, err.text);
        _exit(1);
    }
    payload_tell(ctl_fd, PAYLOAD_READY, 0, NULL);
    loop(&in);
    if (in.ended)
        payload_tell(ctl_fd, PAYLOAD_EXITED, in.status, NULL);
    end_others(&in);
    _exit(0);
}
