/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One child per driver file, before the file is opened in this process.
 *
 *   parent                         child (the same program, started anew)
 *   pipe, posix_spawn ----------->  main: preflight_child_main sees its word
 *   poll the pipe, time limit       dl_open: constructors run, all symbols
 *                                   are bound; descriptor checked
 *   read "ok" or a text <---------  write it, _exit
 *   reap; without a word: tell how it ended
 *
 * The child sees /dev/null as standard streams, the pipe as descriptor 3 and
 * no other descriptor, writes no core file, and dies with its parent. It runs
 * with the same environment, so that the linker finds the same libraries.
 *
 * Called on the main thread while drivers are loaded. Started by hand, the
 * child's word goes to standard output: `PROGRAM --preflight-driver FILE`.
 */

#include "core/plugin/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cdc/driver.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/plugin/descriptor.h"
#include "core/plugin/dl.h"

static const char WORD[] = "--preflight-driver";
enum { REPORT_FD = 3, REPORT_MAX = 2048 };

/* --- the child ----------------------------------------------------------- */

static char *stem_of(const char *path)
{
    const char *base = strrchr(path, '/');
    size_t n;

    base = base ? base + 1 : path;
    n = strlen(base);
    return mem_strndup(base, n > 3 ? n - 3 : n);
}

static int open_and_look(const char *path, struct err *err)
{
    CLEANUP(mem_free) char *stem = stem_of(path);
    struct descriptor_prefix prefix;
    struct cdc_driver driver;
    const void *entry;
    void *module;
    size_t size;

    if (!(module = dl_open(path, err)) ||
        !(entry = dl_symbol(module, "cdc_driver_entry", &size, err)))
        return -1;
    if (size && size < sizeof prefix)
        return err_set(err, ERR_CONFIG, "cdc_driver_entry is too small");
    memcpy(&prefix, entry, sizeof prefix);
    if (descriptor_check_prefix(&prefix, size, descriptor_host(), err))
        return -1;
    return descriptor_copy(entry, stem, &driver, err);
}

static int report_fd(void)
{
    struct stat st;

    return fstat(REPORT_FD, &st) == 0 && S_ISFIFO(st.st_mode) ? REPORT_FD
                                                              : STDOUT_FILENO;
}

int preflight_child_main(int argc, char **argv)
{
    const struct rlimit none = {0, 0};
    struct err err = {0};
    int fd;

    if (argc != 3 || strcmp(argv[1], WORD) != 0)
        return -1;
    fd = report_fd();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    if (open_and_look(argv[2], &err))
        dprintf(fd, "%s\n", err.text);
    else
        dprintf(fd, "ok\n");
    /* No exit handlers: those of a driver are not to be run. */
    _exit(err.class == ERR_NONE ? 0 : 1);
}

/* --- the parent ---------------------------------------------------------- */

static int spawn_child(const char *path, int pipe_fd, pid_t *ret_pid,
                       struct err *err)
{
    char *argv[] = {(char *)"preflight", (char *)WORD, (char *)path, NULL};
    posix_spawn_file_actions_t actions;
    int rc;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fd, REPORT_FD);
    for (int fd = 0; fd < REPORT_FD; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR,
                                         0);
    posix_spawn_file_actions_addclosefrom_np(&actions, REPORT_FD + 1);
    rc = posix_spawn(ret_pid, "/proc/self/exe", &actions, NULL, argv,
                     environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc)
        return err_set_errno(err, rc, "cannot start a child to open it");
    return 0;
}

/* Milliseconds for poll(); 0 when time is up. */
static int left_ms(int64_t end_us)
{
    int64_t left = (end_us - clock_mono_us() + 999) / 1000;

    return left > 0 ? (int)left : 0;
}

/* Read until the end, the limit or the time limit. */
static void read_report(int fd, int64_t end_us, struct buf *report)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char *room;
    ssize_t n;

    while ((room = buf_reserve(report, 256)) && left_ms(end_us)) {
        if (poll(&p, 1, left_ms(end_us)) <= 0)
            continue;
        n = read(fd, room, 256);
        if (n == 0 || (n < 0 && errno != EINTR))
            return;
        if (n > 0)
            buf_add(report, (size_t)n);
    }
}

/* Wait for its end; when time is up, bring it about. false: it was. A child
 * may close the pipe and live on. */
static bool reap(pid_t pid, int64_t end_us, int *ret_status)
{
    CLEANUP(mem_close) int fd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool in_time = true;

    while (poll(&p, 1, left_ms(end_us)) <= 0 && in_time)
        in_time = left_ms(end_us) > 0;
    if (!in_time)
        kill(pid, SIGKILL);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    return in_time;
}

static int judge(const struct buf *report, int status, struct err *err)
{
    size_t n = strcspn(report->data, "\n");

    if (strcmp(report->data, "ok\n") == 0)
        return 0;
    if (report->data[n] == '\n')
        return err_set(err, ERR_CONFIG, "%.*s", (int)n, report->data);
    if (WIFSIGNALED(status))
        return err_set(err, ERR_CONFIG,
                       "opening it ended the process with signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    return err_set(err, ERR_CONFIG,
                   "opening it ended the process with exit code %d",
                   WEXITSTATUS(status));
}

int preflight_run(const char *path, int timeout_ms, struct err *err)
{
    CLEANUP(mem_close) int in = -1;
    CLEANUP(mem_close) int out = -1;
    CLEANUP(buf_fini) struct buf report = {0};
    int64_t end_us = clock_mono_us() + timeout_ms * INT64_C(1000);
    int fds[2], status = 0;
    pid_t pid;

    buf_init(&report, REPORT_MAX);
    if (pipe2(fds, O_CLOEXEC))
        return err_set_errno(err, errno, "pipe");
    in = fds[0];
    out = fds[1];
    if (spawn_child(path, out, &pid, err))
        return -1;
    close(out);
    out = -1;
    read_report(in, end_us, &report);
    if (!reap(pid, end_us, &status))
        return err_set(err, ERR_CONFIG,
                       "opening it did not end within %d ms", timeout_ms);
    return judge(&report, status, err);
}
