/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of the payload.
 *
 * One message socket between the supervisor and init: messages up, one-byte
 * orders down, and for each side the end of file when the other has died. The
 * death of the tree is known by init's pidfd alone: as pid 1 of a namespace it
 * is not dead before all others are.
 *
 * Killing goes straight to the kernel (SIGKILL to pid 1), but in plain mode is
 * init's work; only if init does not do it within some seconds, the supervisor
 * does it itself, as the next subreaper and by the mark in the environment.
 */
#include "core/runner/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/isolate/killtree.h"
#include "core/isolate/ns.h"
#include "core/runner/init.h"
#include "core/runner/node.h"
#include "core/runner/stage.h"

enum { DEATH_MS = 60 * 1000, PLAIN_DEATH_MS = 10 * 1000 };

static uint64_t namespaces(const struct payload_spec *spec)
{
    if (spec->node->plain)
        return 0;
    return CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC |
           (spec->network ? 0 : CLONE_NEWNET);
}

static void close_pipes(struct payload_spec *spec)
{
    for (int i = 0; i < 2; i++) {
        mem_close(&spec->out_fd[i]);
        mem_close(&spec->out[i].from);
    }
}

/* The payload may open its standard output anew, so the pipe is its own. */
static int make_pipes(struct payload_spec *spec, struct err *err)
{
    for (int i = 0; i < 2; i++) {
        int pair[2];

        if (pipe2(pair, O_CLOEXEC) < 0)
            return err_set_errno(err, errno, "pipe");
        spec->out[i] = (struct pump){.from = pair[0],
                                     .to = spec->stage->std_fd[i + 1]};
        spec->out_fd[i] = pair[1];
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        if (fchown(pair[1], spec->stage->uid, spec->stage->gid) < 0 &&
            geteuid() == 0)
            return err_set_errno(err, errno, "chown a pipe");
    }
    return 0;
}

static int fork_init(struct payload_spec *spec, struct payload *p,
                     struct err *err)
{
    CLEANUP(mem_close) int self = pidfd_open(getpid(), 0);
    int pair[2];

    if (self < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set_errno(err, errno, "socketpair");
    if (p->plain)
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    p->pid = ns_fork(namespaces(spec), -1, &p->pidfd, err);
    if (p->pid == 0) {
        close(pair[0]);
        init_run(spec, pair[1], self);
    }
    close(pair[1]);
    p->ctl_fd = pair[0];
    if (p->pid < 0) {
        close(pair[0]);
        return err_prefix(err, "make the payload's namespaces");
    }
    return 0;
}

int payload_spawn(struct payload_spec *spec, struct payload *ret,
                  struct err *err)
{
    struct payload p = {.pidfd = -1, .plain = spec->node->plain};

    spec->out_fd[0] = spec->out_fd[1] = -1;
    spec->out[0].from = spec->out[1].from = -1;
    if (make_pipes(spec, err) < 0 || fork_init(spec, &p, err) < 0) {
        close_pipes(spec);
        return -1;
    }
    mem_close(&spec->out_fd[0]);
    mem_close(&spec->out_fd[1]);
    memcpy(p.out, spec->out, sizeof p.out);
    *ret = p;
    return 0;
}

enum payload_event payload_read(struct payload *p, int timeout_ms,
                                struct payload_msg *ret)
{
    struct pollfd pf = {.fd = p->ctl_fd, .events = POLLIN};
    ssize_t n;

    if (poll(&pf, 1, timeout_ms) != 1)
        return PAYLOAD_NONE;
    n = recv(p->ctl_fd, ret, sizeof *ret, MSG_DONTWAIT);
    if (n != (ssize_t) sizeof *ret)
        return PAYLOAD_NONE;
    ret->text[sizeof ret->text - 1] = '\0';
    return (enum payload_event) ret->event;
}

void payload_tell(int ctl_fd, enum payload_event event, int value,
                  const char *text)
{
    struct payload_msg m = {.event = event, .value = value};

    text_copy(m.text, text ? text : "", sizeof m.text);
    send(ctl_fd, &m, sizeof m, MSG_NOSIGNAL);
}

static void order(struct payload *p, enum init_order what)
{
    char byte = (char) what;

    send(p->ctl_fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void payload_go(struct payload *p)
{
    order(p, INIT_GO);
}

void payload_term(struct payload *p)
{
    order(p, INIT_TERM);
}

void payload_kill(struct payload *p)
{
    if (p->pid == 0 || p->dead)
        return;
    if (p->plain)
        order(p, INIT_KILL);
    else
        pidfd_send_signal(p->pidfd, SIGKILL, NULL, 0);
}

bool payload_reap(struct payload *p, int timeout_ms)
{
    struct pollfd pf = {.fd = p->pidfd, .events = POLLIN};

    if (p->dead || p->pid == 0)
        return true;
    if (poll(&pf, 1, timeout_ms) != 1)
        return false;
    if (wait4(p->pid, NULL, __WALL, &p->usage) != p->pid)
        return false;
    p->dead = true;
    return true;
}

/* Init did not do its work, or died before it was done. */
static int sweep(struct payload *p, const char *uuid, struct err *err)
{
    CLEANUP(mem_free) char *mark = mem_printf("CDC_CONTAINER_UUID=%s", uuid);
    struct killtree k = KILLTREE_INIT;

    if (!p->dead)
        pidfd_send_signal(p->pidfd, SIGKILL, NULL, 0);
    k.subreaper = true;
    k.mark = mark;
    k.main_pid = p->dead ? 0 : p->pid;
    if (killtree_run(&k, PLAIN_DEATH_MS, err) < 0)
        return -1;
    p->dead = true;
    return 0;
}

int payload_finish(struct payload *p, const char *uuid, struct err *err)
{
    int r = 0;

    if (p->pid == 0)
        return 0;
    payload_kill(p);
    payload_reap(p, p->plain ? PLAIN_DEATH_MS : DEATH_MS);
    if (p->plain)
        r = sweep(p, uuid, err);
    else if (!p->dead)
        r = err_set(err, ERR_TIMEOUT, "a process of the payload does not die");
    for (int i = 0; i < 2; i++) {
        pump_run(&p->out[i]);
        mem_close(&p->out[i].from);
    }
    close(p->ctl_fd);
    close(p->pidfd);
    p->pid = 0;
    return r;
}
