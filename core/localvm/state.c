/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c: the directory that remembers.
 *
 * Calls of cdc-local-vm may be killed between any two instructions, and many
 * run at once. So: what must exist as a whole appears by rename (a VM's
 * directory, a file of it); what must survive a power cut is synced before
 * anybody is told; whoever changes a VM holds its lock, which dies with the
 * process. Left-overs have names that start with a dot and belong to nobody;
 * state_sweep() takes them away.
 *
 * The list of ended tokens is the memory that lets a late, repeated create be
 * answered with "gone" instead of a second VM. It is bounded: two files of at
 * most ENDED_MAX bytes, some thousands of VMs.
 *
 * Called by the commands' files, from one thread.
 */

#include "core/localvm/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/isolate/sysfile.h"

enum {
    ENDED_MAX = 256 << 10,
    NEW_AGE_S = 60, /* nobody needs longer to write an intent */
    TREE_DEPTH = 512
};

int state_open(const char *dir, struct state *ret, struct err *err)
{
    struct stat st;

    if (dir[0] != '/' || strlen(dir) > WIRE_PATH_MAX || strchr(dir, '"') ||
        strchr(dir, '\n'))
        return err_set(err, ERR_CONFIG, "state directory %.80s: must be an "
                       "absolute path of at most %d bytes", dir,
                       WIRE_PATH_MAX);
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "make %s", dir);
    if (lstat(dir, &st) < 0)
        return err_set_errno(err, errno, "state directory %s", dir);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022))
        return err_set(err, ERR_CONFIG, "state directory %s: must be a "
                       "directory of ours that nobody else can write to",
                       dir);
    text_copy(ret->dir, dir, sizeof ret->dir);
    return 0;
}

/* --- locks --------------------------------------------------------------- */

/* FNV-1a, cut to a positive offset. */
static off_t byte_of(const char *name)
{
    uint64_t h = 14695981039346656037U;

    for (; *name; name++)
        h = (h ^ (unsigned char) *name) * 1099511628211U;
    return (off_t) (h >> 2);
}

int state_lock(const struct state *s, const char *name, bool wait,
               int *ret_fd, struct err *err)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET,
                       .l_start = byte_of(name), .l_len = 1};
    char path[STATE_PATH_SIZE + 8];
    int fd, rc;

    snprintf(path, sizeof path, "%s/lock", s->dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, errno, "open %s", path);
    do
        rc = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lk);
    while (rc < 0 && errno == EINTR);
    if (rc == 0) {
        *ret_fd = fd;
        return 0;
    }
    rc = errno;
    close(fd);
    if (rc == EAGAIN || rc == EACCES)
        return err_set(err, ERR_CONFLICT, "%s is being worked on", name);
    return err_set_errno(err, rc, "lock %s", path);
}

/* --- files --------------------------------------------------------------- */

int state_sync(const char *dir, struct err *err)
{
    CLEANUP(mem_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return err_set_errno(err, errno, "sync %s", dir);
    return 0;
}

static int write_new(const char *path, const char *text, struct err *err)
{
    CLEANUP(mem_close) int fd =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t len = strlen(text);

    if (fd < 0)
        return err_set_errno(err, errno, "write %s", path);
    if (write(fd, text, len) != (ssize_t) len)
        return err_set_errno(err, errno ? errno : ENOSPC, "write %s", path);
    if (fsync(fd) < 0)
        return err_set_errno(err, errno, "sync %s", path);
    return 0;
}

int state_write(const char *dir, const char *file, const char *text,
                struct err *err)
{
    char path[STATE_PATH_SIZE + 64], tmp[STATE_PATH_SIZE + 72];

    snprintf(path, sizeof path, "%s/%s", dir, file);
    snprintf(tmp, sizeof tmp, "%s.tmp", path);
    if (write_new(tmp, text, err) < 0)
        return -1;
    if (rename(tmp, path) < 0)
        return err_set_errno(err, errno, "rename to %s", path);
    return state_sync(dir, err);
}

/* --- VMs ----------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

int state_each(const struct state *s, int (*fn)(void *arg, const char *id),
               void *arg, struct err *err)
{
    VEC(char *) ids = {0};
    DIR *d = opendir(s->dir);
    struct dirent *e;
    int rc = 0;
    size_t i;

    if (!d)
        return err_set_errno(err, errno, "read %s", s->dir);
    while ((e = readdir(d)))
        if (wire_is_id(e->d_name))
            VEC_PUSH(&ids, mem_strdup(e->d_name));
    closedir(d);
    if (ids.n)
        qsort(ids.v, ids.n, sizeof *ids.v, by_name);
    for (i = 0; i < ids.n; i++) {
        if (rc == 0)
            rc = fn(arg, ids.v[i]);
        free(ids.v[i]);
    }
    VEC_FINI(&ids);
    return rc;
}

void state_sweep(const struct state *s)
{
    DIR *d = opendir(s->dir);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        char path[STATE_PATH_SIZE + sizeof e->d_name + 1];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", s->dir, e->d_name);
        if (strncmp(e->d_name, ".dead-", 6) == 0 ||
            (strncmp(e->d_name, ".new-", 5) == 0 && stat(path, &st) == 0 &&
             time(NULL) - st.st_mtime > NEW_AGE_S))
            state_remove_tree(path, NULL);
    }
    if (d)
        closedir(d);
}

/* --- ended tokens -------------------------------------------------------- */

static bool ended_in(const char *path, const char *token, int64_t member,
                     char ret_id[WIRE_ID_SIZE])
{
    CLEANUP(mem_free) char *text = sysfile_read_all(path, 2 * ENDED_MAX,
                                                    NULL);
    CLEANUP(mem_free) char *want = mem_printf("%s %" PRId64 " ", token,
                                              member);
    const char *line = text;

    while (line && strncmp(line, want, strlen(want)) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return false;
    line += strlen(want);
    if (strcspn(line, "\n") != WIRE_ID_SIZE - 1)
        return false;
    text_copy(ret_id, line, WIRE_ID_SIZE);
    return true;
}

bool state_ended(const struct state *s, const char *token, int64_t member,
                 char ret_id[WIRE_ID_SIZE])
{
    char path[STATE_PATH_SIZE + 16];

    snprintf(path, sizeof path, "%s/ended", s->dir);
    if (ended_in(path, token, member, ret_id))
        return true;
    snprintf(path, sizeof path, "%s/ended.1", s->dir);
    return ended_in(path, token, member, ret_id);
}

static void rotate(const char *path)
{
    CLEANUP(mem_free) char *old = mem_printf("%s.1", path);
    struct stat st;

    if (stat(path, &st) == 0 && st.st_size > ENDED_MAX)
        rename(path, old);
}

int state_note_ended(const struct state *s, const char *token,
                     int64_t member, const char *id, struct err *err)
{
    CLEANUP(mem_close) int lock = -1;
    CLEANUP(mem_close) int fd = -1;
    CLEANUP(mem_free) char *line = mem_printf("%s %" PRId64 " %s\n", token,
                                              member, id);
    char path[STATE_PATH_SIZE + 16], other[WIRE_ID_SIZE];

    if (state_lock(s, "ended", true, &lock, err) < 0)
        return -1;
    if (state_ended(s, token, member, other))
        return 0;
    snprintf(path, sizeof path, "%s/ended", s->dir);
    rotate(path);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, strlen(line)) != (ssize_t) strlen(line) ||
        fsync(fd) < 0)
        return err_set_errno(err, errno, "write %s", path);
    return 0;
}

/* --- removing ------------------------------------------------------------ */

static void remove_below(int dir_fd, dev_t dev, int depth)
{
    DIR *d = fdopendir(dir_fd); /* takes dir_fd over */
    struct dirent *e;

    while (d && depth < TREE_DEPTH && (e = readdir(d))) {
        struct stat st;
        int fd;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(d), e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        fd = openat(dirfd(d), e->d_name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == dev)
            remove_below(fd, dev, depth + 1);
        else if (fd >= 0)
            close(fd);
        unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
    }
    if (d)
        closedir(d);
    else
        close(dir_fd);
}

int state_remove_tree(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0)
        remove_below(fd, st.st_dev, 0);
    else if (fd >= 0)
        close(fd);
    if (rmdir(path) < 0 && errno != ENOENT)
        return err_set_errno(err, errno, "remove %s", path);
    return 0;
}
