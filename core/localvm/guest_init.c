/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_init.c: the first process of a VM at work.
 *
 *   run the init command -> start sshd -> wait until it listens: RUNNING
 *        -> for ever: reap orphans; start sshd again when it ended, after a
 *           pause that grows while it keeps ending
 *
 * The VM lives until it is destroyed, whatever its sshd does. In a full VM
 * this is pid 1 of the pid namespace: it is killed from outside, and all
 * processes with it. Degraded, it is a child subreaper with no namespace;
 * then SIGTERM means "end all that came from you" (killtree), and sshd dies
 * when this process does.
 *
 * Single-threaded, signals are blocked and taken by sigtimedwait(). Started
 * once by guest_main(); standard output and error are the VM's log.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/isolate/killtree.h"
#include "core/localvm/guest.h"

enum {
    PAUSE_FIRST_MS = 100,
    PAUSE_MAX_MS = 5000,
    GOOD_RUN_MS = 10000, /* an sshd that lived so long restarts at once */
    LISTEN_STEP_MS = 2,
    KILL_MS = 4000
};

#define SSHD "/usr/sbin/sshd"

struct init {
    const struct guest *guest;
    char config[STATE_PATH_SIZE], pid_file[STATE_PATH_SIZE];
    char command[STATE_PATH_SIZE];
    pid_t sshd;          /* 0 = is not running */
    int64_t started_us;  /* when it was last started */
    int64_t pause_ms;    /* before the next start */
    bool running;        /* told so once */
};

static void remark(const char *what, int number)
{
    dprintf(STDERR_FILENO, "vm: %s %d\n", what, number);
}

static pid_t spawn(const struct init *in, char *const argv[])
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (in->guest->run->degraded)
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    execv(argv[0], argv);
    _exit(127);
}

static void run_init_command(const struct init *in)
{
    char *argv[] = {(char[]) {"/bin/sh"}, (char *) (uintptr_t) in->command,
                    NULL};
    int status = 0;
    pid_t pid, got;

    if (!*in->guest->vm->spec.init_command || in->guest->run->degraded)
        return;
    pid = spawn(in, argv);
    while (pid > 0 && (got = wait(&status)) != pid)
        if (got < 0 && errno != EINTR)
            break;
    if (status != 0)
        remark("the init command ended with status",
               WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void start_sshd(struct init *in)
{
    char *argv[] = {(char[]) {SSHD}, (char[]) {"-D"}, (char[]) {"-e"},
                    (char[]) {"-f"}, in->config, NULL};

    unlink(in->pid_file);
    in->sshd = spawn(in, argv);
    if (in->sshd < 0)
        in->sshd = 0;
    in->started_us = clock_mono_us();
}

/* When sshd has ended: how long until the next one. */
static void sshd_ended(struct init *in, int status)
{
    int64_t lived_ms = (clock_mono_us() - in->started_us) / 1000;

    remark("sshd ended with status",
           WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    in->sshd = 0;
    if (lived_ms >= GOOD_RUN_MS || in->pause_ms == 0)
        in->pause_ms = PAUSE_FIRST_MS;
    else if (in->pause_ms < PAUSE_MAX_MS)
        in->pause_ms *= 2;
}

static void reap(struct init *in)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == in->sshd)
            sshd_ended(in, status);
}

static bool listens(const struct init *in)
{
    return in->sshd && access(in->pid_file, F_OK) == 0;
}

/* Milliseconds until something is to be done without a signal. */
static int64_t next_ms(const struct init *in)
{
    int64_t due;

    if (!in->sshd) {
        due = in->pause_ms - (clock_mono_us() - in->started_us) / 1000;
        return due > 0 ? due : 1;
    }
    return in->running ? 3600000 : LISTEN_STEP_MS;
}

static _Noreturn void end_all(void)
{
    struct killtree k = KILLTREE_INIT;

    k.subreaper = true;
    killtree_run(&k, KILL_MS, NULL);
    _exit(0);
}

static void work(struct init *in)
{
    int64_t idle_ms = (clock_mono_us() - in->started_us) / 1000;

    reap(in);
    if (!in->sshd && idle_ms >= in->pause_ms)
        start_sshd(in);
    if (!in->running && listens(in)) {
        in->running = true;
        status_tell(in->guest->status, STATUS_RUNNING, NULL);
    }
}

void guest_init(const struct guest *g, const char *run_dir)
{
    struct init in = {.guest = g};
    struct timespec ts;
    sigset_t set;

    snprintf(in.config, sizeof in.config, "%.700s/sshd_config", run_dir);
    snprintf(in.pid_file, sizeof in.pid_file, "%.700s/sshd.pid", run_dir);
    snprintf(in.command, sizeof in.command, "%.700s/init_command", run_dir);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_SETMASK, &set, NULL);
    run_init_command(&in);
    start_sshd(&in);
    for (;;) {
        int64_t ms = next_ms(&in);
        ts = (struct timespec) {ms / 1000, ms % 1000 * 1000000};
        if (sigtimedwait(&set, NULL, &ts) == SIGTERM)
            end_all();
        work(&in);
    }
}
