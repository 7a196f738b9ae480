/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `--list` and `--kill`.
 *
 * Both go by the lock: a file that somebody holds is a live container, and its
 * content only says whom to signal. A supervisor that died while its payload
 * still holds the lock is `stale`. The peer's program sends SIGUSR2 to find
 * out; a pid that was used again would pay for that, so this one compares the
 * start time and sends nothing.
 */
#include "core/runner/host.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/runner/limits.h"
#include "core/runner/lockfile.h"
#include "core/runner/node.h"
#include "core/runner/stage.h"

enum { KILL_WAIT_MS = 1000 };

static void clean(void *arg, const char *uuid)
{
    const struct node *node = arg;

    stage_clean(node, uuid);
    limits_clean(node, uuid);
}

void host_collect(const struct node *node, const char *uuid, int fd)
{
    lock_collect(node->lock_dir, uuid, fd, clean,
                 (void *) (uintptr_t) node);
}

static void list_one(const struct node *node, const char *uuid)
{
    const char *dir = node->lock_dir;
    CLEANUP(mem_close) int fd = -1;
    CLEANUP(mem_close) int pidfd = -1;
    struct lock_info info = {0};
    struct err err = {0};
    struct stat st;

    if (lock_open(dir, uuid, &fd, &err) < 0)
        return;
    if (!lock_is_held(dir, fd)) {
        host_collect(node, uuid, fd);
        return;
    }
    if (fstat(fd, &st) == 0 && st.st_size == 0)
        return; /* just being made */
    if (lock_read(fd, &info, &err) < 0) {
        fprintf(stderr, "crunch-run: %s: %s\n", uuid, err.text);
        puts(uuid); /* held all the same */
        return;
    }
    pidfd = lock_pidfd(&info);
    printf("%s%s\n", uuid, pidfd < 0 ? " stale" : "");
}

int host_list(const struct node *node)
{
    DIR *d = opendir(node->lock_dir);
    char uuid[TEXT_UUID_SIZE];
    struct dirent *e;

    if (!d) {
        fprintf(stderr, "crunch-run: %s: %s\n", node->lock_dir,
                strerror(errno));
        return 1;
    }
    while ((e = readdir(d))) {
        if (lock_name_uuid(e->d_name, uuid))
            list_one(node, uuid);
    }
    closedir(d);
    if (lock_broken(node->lock_dir))
        puts("broken");
    return fflush(stdout) == 0 ? 0 : 1;
}

int host_kill(const struct node *node, const char *uuid, int signum)
{
    CLEANUP(mem_close) int fd = -1;
    CLEANUP(mem_close) int pidfd = -1;
    struct lock_info info = {0};
    struct pollfd pf = {.events = POLLIN};
    struct err err = {0};

    if (lock_open(node->lock_dir, uuid, &fd, &err) < 0) {
        if (err.class == ERR_NOT_FOUND)
            return 0;
        fprintf(stderr, "crunch-run: %s\n", err.text);
        return 1;
    }
    if (!lock_is_held(node->lock_dir, fd))
        return 0;
    if (lock_read(fd, &info, &err) < 0) {
        fprintf(stderr, "crunch-run: %s: %s\n", uuid, err.text);
        return 1;
    }
    pidfd = lock_pidfd(&info);
    if (pidfd >= 0 && pidfd_send_signal(pidfd, signum, NULL, 0) < 0 &&
        errno != ESRCH) {
        fprintf(stderr, "crunch-run: %s: %s\n", uuid, strerror(errno));
        return 1;
    }
    pf.fd = pidfd;
    if (pidfd >= 0 && poll(&pf, 1, KILL_WAIT_MS) != 1)
        return 1;
    fprintf(stderr, "crunch-run: %s: pid %d is gone\n", uuid,
            (int) info.pid);
    return 0;
}
