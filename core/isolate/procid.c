/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procid.c: telling a process from a later one with the same number.
 *
 * An identity is taken when a process is made (a VM's init, a supervisor) and
 * kept in a state file. A later run, perhaps after a restart of the machine,
 * asks whether that process still lives. The order of the steps matters:
 *
 *   1. pidfd_open(pid): from here on the number cannot be re-used under us,
 *      whoever it belongs to now;
 *   2. read start time, pid namespace and boot id behind the number, compare;
 *   3. poll the pidfd: a zombie opens and compares equal, but is dead.
 *
 * The state letter of /proc/PID/stat alone would not do: it belongs to the
 * first thread, which may have ended before the others.
 *
 * Any thread. Never kills, never waits for children (a zombie stays).
 */

#include "core/isolate/procid.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/isolate/sysfile.h"

int procid_parse_stat(const char *stat, uint64_t *ret_start, char *ret_state,
                      struct err *err)
{
    /* The name ends at the last parenthesis; field 3 (state) follows. */
    const char *p = strrchr(stat, ')');
    char state;
    char *end;
    uint64_t start;
    int field;

    if (!p || p[1] != ' ' || p[2] == '\0')
        return err_set(err, ERR_INVALID, "malformed /proc stat line");
    p += 2;
    state = *p;
    for (field = 3; field < 22; field++) {
        p = strchr(p, ' ');
        if (!p)
            return err_set(err, ERR_INVALID, "short /proc stat line");
        p++;
    }
    errno = 0;
    start = strtoull(p, &end, 10);
    if (end == p || errno)
        return err_set(err, ERR_INVALID, "malformed start time");
    *ret_start = start;
    if (ret_state)
        *ret_state = state;
    return 0;
}

static int read_boot(char out[PROCID_BOOT_SIZE], struct err *err)
{
    if (sysfile_read("/proc/sys/kernel/random/boot_id", out,
                     PROCID_BOOT_SIZE) != PROCID_BOOT_SIZE - 1)
        return err_set(err, ERR_INTERNAL, "cannot read the boot id");
    return 0;
}

/* What is behind the number right now; a zombie has a start time too. */
static int read_identity(pid_t pid, struct procid *ret, char *ret_state,
                         struct err *err)
{
    char path[64], stat_text[1024];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
    if (sysfile_read(path, stat_text, sizeof stat_text) < 0)
        return err_set(err, ERR_NOT_FOUND, "no process %d", (int) pid);
    ret->pid = pid;
    if (procid_parse_stat(stat_text, &ret->start, ret_state, err) < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int) pid);
    ret->pidns = stat(path, &st) == 0 ? st.st_ino : 0;
    return read_boot(ret->boot, err);
}

int procid_get(pid_t pid, struct procid *ret, struct err *err)
{
    struct procid id;
    char state;

    if (read_identity(pid ? pid : getpid(), &id, &state, err) < 0)
        return -1;
    if (state == 'Z' || state == 'X')
        return err_set(err, ERR_NOT_FOUND, "process %d has ended", (int) pid);
    *ret = id;
    return 0;
}

static bool same(const struct procid *a, const struct procid *b)
{
    if (a->pid != b->pid || a->start != b->start)
        return false;
    if (a->pidns && b->pidns && a->pidns != b->pidns)
        return false;
    return strcmp(a->boot, b->boot) == 0;
}

int procid_open(const struct procid *id, int *ret_pidfd, struct err *err)
{
    CLEANUP(mem_close) int fd = -1;
    struct procid now;

    if (id->pid <= 0)
        return err_set(err, ERR_NOT_FOUND, "no process");
    fd = pidfd_open(id->pid, 0);
    if (fd < 0 && errno != ESRCH && errno != EINVAL)
        return err_set_errno(err, errno, "pidfd_open %d", (int) id->pid);
    if (fd < 0)
        return err_set(err, ERR_NOT_FOUND, "no process %d", (int) id->pid);
    if (read_identity(id->pid, &now, NULL, err) < 0)
        return -1;
    if (!same(id, &now))
        return err_set(err, ERR_NOT_FOUND, "pid %d is another process now",
                       (int) id->pid);
    if (procid_wait(fd, 0))
        return err_set(err, ERR_NOT_FOUND, "process %d has ended",
                       (int) id->pid);
    *ret_pidfd = fd;
    fd = -1;
    return 0;
}

bool procid_alive(const struct procid *id)
{
    CLEANUP(mem_close) int fd = -1;

    return procid_open(id, &fd, NULL) == 0;
}

const char *procid_print(const struct procid *id, char out[PROCID_TEXT_SIZE])
{
    snprintf(out, PROCID_TEXT_SIZE, "%d %" PRIu64 " %" PRIu64 " %s",
             (int) id->pid, id->start, id->pidns, id->boot);
    return out;
}

int procid_parse(const char *text, struct procid *ret, struct err *err)
{
    struct procid id = {0};
    char again[PROCID_TEXT_SIZE];
    int pid;

    if (sscanf(text, "%d %" SCNu64 " %" SCNu64 " %36s", &pid, &id.start,
               &id.pidns, id.boot) != 4 || pid <= 0)
        return err_set(err, ERR_INVALID, "malformed process identity");
    id.pid = pid;
    /* Strict: nothing but what procid_print() writes. */
    if (strcmp(procid_print(&id, again), text) != 0 ||
        strlen(id.boot) != PROCID_BOOT_SIZE - 1)
        return err_set(err, ERR_INVALID, "malformed process identity");
    *ret = id;
    return 0;
}

bool procid_wait(int pidfd, int timeout_ms)
{
    struct pollfd pf = {.fd = pidfd, .events = POLLIN};
    int n;

    do
        n = poll(&pf, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    return n == 1;
}
