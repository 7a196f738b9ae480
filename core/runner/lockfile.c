/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock files.
 *
 * Taking (one supervisor): lock the folder; open or make the file; try to lock
 * it; unlock the folder. Collecting (anybody): lock the folder; try a shared
 * lock; got it = nobody lives there; remove the file. Because both happen under
 * the folder's lock, a collector never removes a file that somebody has just
 * opened to lock it, and a taker never fails because somebody was looking.
 *
 * On Debian the folder is a sticky tmpfs with fs.protected_regular=2, where
 * open(O_CREAT) of another user's file fails even for root: existing files are
 * opened without O_CREAT first.
 *
 * Nothing here waits, except for the folder's lock, which everybody holds for
 * microseconds.
 */
#include "core/runner/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/isolate/procid.h"

#define PREFIX "crunch-run-"
#define SUFFIX ".lock"
#define ALL PREFIX "all" SUFFIX
#define BROKEN PREFIX "broken"

enum { STAT_MAX = 1024 };

void lock_format(const struct lock_info *info, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_str(&w, "UUID", info->uuid);
    jsn_w_i64(&w, "PID", info->pid);
    jsn_w_i64(&w, "Attempt", info->attempt);
    jsn_w_i64(&w, "StartTime", (int64_t) info->start_time);
    jsn_w_end_obj(&w);
    buf_putc(out, '\n');
}

int lock_parse(const char *text, size_t n, struct lock_info *ret,
               struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, err);
    int64_t pid = 0, attempt = 0, start = 0;
    const char *uuid = NULL;

    if (!j || jsn_str(j, "UUID", &uuid, err) < 0 ||
        jsn_i64(j, "PID", &pid, err) < 0 ||
        jsn_opt_i64(j, "Attempt", &attempt, err) < 0 ||
        jsn_opt_i64(j, "StartTime", &start, err) < 0)
        return -1;
    if (!text_is_uuid(uuid, NULL) || pid <= 1 || pid > INT32_MAX ||
        attempt < 0 || start < 0)
        return err_set(err, ERR_INVALID, "not the content of a lock file");
    *ret = (struct lock_info){
        .pid = (pid_t) pid,
        .attempt = attempt,
        .start_time = (uint64_t) start,
    };
    text_copy(ret->uuid, uuid, sizeof ret->uuid);
    return 0;
}

bool lock_name_uuid(const char *name, char ret_uuid[TEXT_UUID_SIZE])
{
    size_t prefix = strlen(PREFIX);
    char uuid[TEXT_UUID_SIZE];

    if (strlen(name) != prefix + TEXT_UUID_LEN + strlen(SUFFIX) ||
        strncmp(name, PREFIX, prefix) != 0 ||
        strcmp(name + prefix + TEXT_UUID_LEN, SUFFIX) != 0)
        return false;
    text_copy(uuid, name + prefix, sizeof uuid);
    if (!text_is_uuid(uuid, NULL))
        return false;
    text_copy(ret_uuid, uuid, sizeof uuid);
    return true;
}

static char *path_of(const char *dir, const char *uuid)
{
    return mem_printf("%s/" PREFIX "%s" SUFFIX, dir, uuid);
}

/* Open a file of the lock folder, making it when it is absent. */
static int open_or_make(const char *path, int how, mode_t mode,
                        struct err *err)
{
    int flags = how | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(path, flags);

    if (fd < 0 && errno == ENOENT)
        fd = open(path, flags | O_CREAT, mode);
    if (fd < 0)
        return err_set_errno(err, errno, "%s", path);
    return fd;
}

static int flock_retry(int fd, int how)
{
    int r;

    do
        r = flock(fd, how);
    while (r < 0 && errno == EINTR);
    return r;
}

/* The folder's lock; closing the descriptor ends it. Not open for writing, or
 * each look would wake whoever watches the folder. */
static int lock_folder(const char *dir, struct err *err)
{
    CLEANUP(mem_free) char *path = mem_printf("%s/" ALL, dir);
    int fd = open_or_make(path, O_RDONLY, 0644, err);

    if (fd < 0)
        return -1;
    if (flock_retry(fd, LOCK_EX) < 0) {
        err_set_errno(err, errno, "flock %s", path);
        close(fd);
        return -1;
    }
    return fd;
}

int lock_take(const char *dir, const char *uuid, int *ret_fd, struct err *err)
{
    CLEANUP(mem_free) char *path = path_of(dir, uuid);
    CLEANUP(mem_close) int folder = lock_folder(dir, err);
    CLEANUP(mem_close) int fd = -1;

    if (folder < 0)
        return -1;
    fd = open_or_make(path, O_RDWR, 0700, err);
    if (fd < 0)
        return -1;
    if (flock_retry(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_CONFLICT,
                             "%s: already running or being cleaned up", uuid)
                   : err_set_errno(err, errno, "flock %s", path);
    if (ftruncate(fd, 0) < 0)
        return err_set_errno(err, errno, "truncate %s", path);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

/* One write: a reader sees nothing or everything. A second line would be
 * garbage, so a rewrite is as long as the file or longer. */
int lock_write(int fd, const struct lock_info *info, struct err *err)
{
    CLEANUP(buf_fini) struct buf line;
    struct stat st;

    buf_init(&line, LOCK_CONTENT_MAX);
    lock_format(info, &line);
    if (fstat(fd, &st) == 0) {
        while (line.len < (size_t) st.st_size && buf_putc(&line, '\n') == 0)
            continue;
    }
    if (line.over || pwrite(fd, line.data, line.len, 0) != (ssize_t) line.len)
        return err_set_errno(err, errno, "write the lock file");
    return 0;
}

int lock_read(int fd, struct lock_info *ret, struct err *err)
{
    char text[LOCK_CONTENT_MAX];
    ssize_t n = pread(fd, text, sizeof text, 0);

    if (n < 0)
        return err_set_errno(err, errno, "read the lock file");
    if (n == 0)
        return err_set(err, ERR_INVALID, "the lock file is empty");
    return lock_parse(text, (size_t) n, ret, err);
}

void lock_remove(const char *dir, const char *uuid)
{
    CLEANUP(mem_free) char *path = path_of(dir, uuid);
    CLEANUP(mem_close) int folder = lock_folder(dir, NULL);

    unlink(path);
}

int lock_open(const char *dir, const char *uuid, int *ret_fd, struct err *err)
{
    CLEANUP(mem_free) char *path = path_of(dir, uuid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return err_set_errno(err, errno, "%s", path);
    *ret_fd = fd;
    return 0;
}

/* With the folder's lock held. */
static bool try_shared(int fd)
{
    if (flock_retry(fd, LOCK_SH | LOCK_NB) < 0)
        return false;
    flock_retry(fd, LOCK_UN);
    return true;
}

bool lock_is_held(const char *dir, int fd)
{
    CLEANUP(mem_close) int folder = lock_folder(dir, NULL);

    return !try_shared(fd);
}

static bool is_named(const char *path, int fd)
{
    struct stat ours, named;

    return fstat(fd, &ours) == 0 && lstat(path, &named) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

/* Take a lock that nobody holds. Not that of a file which has lost its name:
 * the container may live again under another file. */
static bool claim(const char *dir, const char *path, int fd)
{
    CLEANUP(mem_close) int folder = lock_folder(dir, NULL);

    return folder >= 0 && is_named(path, fd) &&
           flock_retry(fd, LOCK_EX | LOCK_NB) == 0;
}

bool lock_is_named(const char *dir, const char *uuid, int fd)
{
    CLEANUP(mem_free) char *path = path_of(dir, uuid);

    return is_named(path, fd);
}

void lock_collect(const char *dir, const char *uuid, int fd,
                  void (*clean)(void *arg, const char *uuid), void *arg)
{
    CLEANUP(mem_free) char *path = path_of(dir, uuid);
    CLEANUP(mem_close) int folder = -1;

    if (!claim(dir, path, fd))
        return;
    if (clean)
        clean(arg, uuid);
    folder = lock_folder(dir, NULL);
    if (is_named(path, fd))
        unlink(path);
    flock_retry(fd, LOCK_UN);
}

bool lock_broken(const char *dir)
{
    CLEANUP(mem_free) char *path = mem_printf("%s/" BROKEN, dir);

    return access(path, F_OK) == 0;
}

int lock_mark_broken(const char *dir, struct err *err)
{
    CLEANUP(mem_free) char *path = mem_printf("%s/" BROKEN, dir);
    CLEANUP(mem_close) int fd = open_or_make(path, O_RDWR, 0600, err);

    return fd < 0 ? -1 : 0;
}

uint64_t lock_start_time(pid_t pid)
{
    char path[64], text[STAT_MAX], state;
    CLEANUP(mem_close) int fd = -1;
    uint64_t start;
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return procid_parse_stat(text, &start, &state, NULL) < 0 ? 0 : start;
}

int lock_pidfd(const struct lock_info *info)
{
    int fd = pidfd_open(info->pid, 0);

    struct pollfd ended = {.fd = fd, .events = POLLIN};

    if (fd < 0)
        return -1;
    /* Compare after opening: the descriptor pins whoever has the pid now,
     * even a process that has ended and was not waited for. */
    if ((info->start_time &&
         lock_start_time(info->pid) != info->start_time) ||
        poll(&ended, 1, 0) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}
