/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of attempts: <dir>/<2 characters>/<container>/<attempt>/{log,output}/
 *
 * The two characters (the end of the uuid) keep folders small. Each attempt
 * has a folder of its own, so that a runner whose attempt was superseded, and
 * whose write was already past the check of its token, spoils nothing: nobody
 * publishes that folder any more.
 *
 * How much an attempt holds is remembered per attempt and counted anew after a
 * restart, by a walk. The memory is bounded: when it is full, it is emptied.
 *
 * Called on reader threads (write, read) and slow threads (walk). The lock
 * guards the memory of sizes only and is never held across I/O of data.
 */
#include "core/apiserver/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/apiserver/walk.h"
#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/text.h"

enum { PATH_BYTES = 4096, KNOWN_MAX = 20000 };

static const char *const kind_names[] = {"log", "output"};

struct usage {
    int64_t bytes, files;
};

struct files {
    int root;
    struct files_opts opts;
    pthread_mutex_t lock;
    struct map *known; /* "uuid/attempt" -> struct usage */
};

/* --------------------------------------------------------------- names -- */

static bool is_log_name(const char *name)
{
    static const char *const names[] = {
        "crunch-run.txt", "stdout.txt", "stderr.txt", "crunchstat.txt",
        "hoststat.txt", "node-info.txt", "node.json", "container.json"};

    for (size_t i = 0; i < MEM_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Lists of files are JSON: a name that is no UTF-8 could be stored, but never
 * be asked for again. */
static bool is_sendable(const char *path)
{
    size_t n = strlen(path);

    return n <= PATH_BYTES && text_is_utf8(path, n);
}

int files_check_name(enum files_kind kind, const char *path, struct err *err)
{
    size_t parts = 0, n;
    const char *p = path;

    if (kind == FILES_LOG && !is_log_name(path))
        return err_set(err, ERR_INVALID, "'%.100s' is not a log's name",
                       path);
    do {
        n = strcspn(p, "/");
        if (!walk_is_name(p, n) || ++parts > WALK_DEPTH)
            return err_set(err, ERR_INVALID, "'%.200s' is not a valid path",
                           path);
        p += n;
    } while (*p++ == '/');
    if (!is_sendable(path))
        return err_set(err, ERR_INVALID,
                       "the path is too long, or not UTF-8");
    return 0;
}

/* ---------------------------------------------------------- open, close -- */

int files_open(const struct files_opts *opts, struct files **ret,
               struct err *err)
{
    struct files *f;
    int root;

    if (mkdir(opts->dir, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "cannot make %s", opts->dir);
    root = open(opts->dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (root < 0)
        return err_set_errno(err, errno, "cannot open %s", opts->dir);
    f = MEM_NEW(struct files);
    f->root = root;
    f->opts = *opts;
    f->opts.dir = NULL;
    pthread_mutex_init(&f->lock, NULL);
    f->known = map_create(free);
    *ret = f;
    return 0;
}

void files_close(struct files *f)
{
    if (!f)
        return;
    close(f->root);
    map_destroy(f->known);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

bool files_durable(const struct files *f)
{
    return f->opts.durable;
}

/* ------------------------------------------------------------- folders -- */

/* One folder down; consumes dir. -1 with errno. */
static int step(int dir, const char *name, bool make)
{
    int fd, saved;

    if (make && mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
        fd = -1;
    else
        fd = openat(dir, name,
                    O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    saved = errno;
    close(dir);
    errno = saved;
    return fd;
}

/* The folder of an attempt (kind NULL) or of one kind in it. */
static int open_folder(struct files *f, const char *uuid, int64_t attempt,
                       const char *kind, bool make)
{
    char number[24];
    const char *names[4] = {"", uuid, number, kind};
    size_t n = strlen(uuid);
    int fd;

    if (n < 2) {
        errno = ENOENT;
        return -1;
    }
    names[0] = uuid + n - 2;
    snprintf(number, sizeof number, "%lld", (long long) attempt);
    fd = fcntl(f->root, F_DUPFD_CLOEXEC, 3);
    for (size_t i = 0; fd >= 0 && i < 4 && names[i]; i++)
        fd = step(fd, names[i], make);
    return fd;
}

/* The folder that holds path's last part; *ret_name points to that. */
static int open_parent(struct files *f, const struct files_at *at,
                       const char *path, bool make, const char **ret_name)
{
    int fd = open_folder(f, at->uuid, at->attempt, kind_names[at->kind],
                         make);
    const char *slash;

    while (fd >= 0 && (slash = strchr(path, '/'))) {
        CLEANUP(mem_free) char *part =
            mem_strndup(path, (size_t) (slash - path));
        fd = step(fd, part, make);
        path = slash + 1;
    }
    *ret_name = path;
    return fd;
}

/* --------------------------------------------------------------- usage -- */

static void usage_key(const char *uuid, int64_t attempt, char out[64])
{
    snprintf(out, 64, "%.30s/%lld", uuid, (long long) attempt);
}

static int add_usage(void *arg, const char *dir, const char *name, int fd,
                     int64_t size, struct err *err)
{
    struct usage *u = arg;

    (void) dir;
    (void) name;
    (void) fd;
    (void) err;
    u->files++;
    u->bytes += size;
    return 0;
}

static int count_usage(struct files *f, const struct files_at *at,
                       struct usage *u, struct err *err)
{
    struct files_at log = {at->uuid, at->attempt, FILES_LOG};
    struct files_at output = {at->uuid, at->attempt, FILES_OUTPUT};

    if (files_walk(f, &log, false, add_usage, u, err) < 0)
        return -1;
    return files_walk(f, &output, false, add_usage, u, err);
}

/* Make sure that the attempt is known. */
static int know(struct files *f, const struct files_at *at, const char *key,
                struct err *err)
{
    struct usage count = {0};
    bool known;

    pthread_mutex_lock(&f->lock);
    known = map_get(f->known, key) != NULL;
    pthread_mutex_unlock(&f->lock);
    if (known)
        return 0;
    if (count_usage(f, at, &count, err) < 0)
        return -1;
    pthread_mutex_lock(&f->lock);
    if (map_count(f->known) >= KNOWN_MAX)
        map_clear(f->known);
    if (!map_get(f->known, key))
        map_set(f->known, key, mem_dup(&count, sizeof count));
    pthread_mutex_unlock(&f->lock);
    return 0;
}

/* Add to an attempt's usage, or refuse. Negative numbers give back. */
static int charge(struct files *f, const char *key, int64_t bytes,
                  int64_t n_files, struct err *err)
{
    struct usage *u;
    bool over = false;

    pthread_mutex_lock(&f->lock);
    u = map_get(f->known, key);
    if (u && bytes > 0 && u->bytes + bytes > f->opts.max_attempt)
        over = true;
    if (u && n_files > 0 && u->files + n_files > f->opts.max_files)
        over = true;
    if (u && !over) {
        u->bytes += bytes;
        u->files += n_files;
    }
    pthread_mutex_unlock(&f->lock);
    if (!over)
        return 0;
    return err_set(err, ERR_TOO_LARGE,
                   "this attempt may store %lld bytes in %lld files",
                   (long long) f->opts.max_attempt,
                   (long long) f->opts.max_files);
}

static void forget(struct files *f, const char *key)
{
    pthread_mutex_lock(&f->lock);
    map_delete(f->known, key);
    pthread_mutex_unlock(&f->lock);
}

void files_forget(struct files *f, const char *uuid, int64_t attempt)
{
    char key[64];

    usage_key(uuid, attempt, key);
    forget(f, key);
}

/* --------------------------------------------------------------- write -- */

static int write_all(int fd, const char *p, size_t n, int64_t offset,
                     struct err *err)
{
    while (n > 0) {
        ssize_t got = pwrite(fd, p, n, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_errno(err, errno, "cannot write a file");
        p += got;
        n -= (size_t) got;
        offset += got;
    }
    return 0;
}

/* What the file will weigh afterwards, checked and charged before. */
static int reserve(struct files *f, const char *key, const struct stat *st,
                   bool fresh, int64_t offset, bool truncate, size_t n,
                   int64_t *ret_size, struct err *err)
{
    int64_t old = st->st_size, end = offset + (int64_t) n;
    int64_t size = truncate || end > old ? end : old;

    if (offset > old)
        return err_set(err, ERR_CONFLICT,
                       "offset %lld is beyond the file's %lld bytes",
                       (long long) offset, (long long) old);
    if (size > f->opts.max_file)
        return err_set(err, ERR_TOO_LARGE, "a file may have %lld bytes",
                       (long long) f->opts.max_file);
    *ret_size = size;
    return charge(f, key, size - old, fresh, err);
}

static int write_file(struct files *f, const char *key, int fd, bool fresh,
                      int64_t offset, bool truncate, const void *p, size_t n,
                      int64_t *ret_size, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "is not a file");
    if (reserve(f, key, &st, fresh, offset, truncate, n, ret_size, err) < 0)
        return -1;
    if (truncate && ftruncate(fd, offset) < 0)
        err_set_errno(err, errno, "cannot truncate a file");
    else if (write_all(fd, p, n, offset, err) == 0)
        return 0;
    forget(f, key); /* some bytes may be there: count anew */
    return -1;
}

/* Open for writing, made if need be. */
static int open_target(int dir, const char *name, bool *ret_fresh,
                       struct err *err)
{
    int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    int fd = openat(dir, name, flags);

    *ret_fresh = fd < 0 && errno == ENOENT;
    if (*ret_fresh)
        fd = openat(dir, name, flags | O_CREAT | O_EXCL, 0600);
    if (fd < 0 && errno == EEXIST) {
        *ret_fresh = false;
        fd = openat(dir, name, flags);
    }
    if (fd < 0 && (errno == EISDIR || errno == ENOTDIR || errno == ELOOP))
        return err_set(err, ERR_INVALID, "'%.200s' is not a file", name);
    if (fd < 0)
        return err_set_errno(err, errno, "cannot open '%.200s'", name);
    return fd;
}

int files_put(struct files *f, const struct files_at *at, const char *path,
              int64_t offset, bool truncate, const void *p, size_t n,
              int64_t *ret_size, struct err *err)
{
    CLEANUP(mem_close) int dir = -1, fd = -1;
    const char *name;
    char key[64];
    bool fresh;

    if (files_check_name(at->kind, path, err) < 0)
        return -1;
    if (offset < 0 || offset > INT64_MAX / 2)
        return err_set(err, ERR_INVALID, "the offset is out of range");
    usage_key(at->uuid, at->attempt, key);
    if (know(f, at, key, err) < 0)
        return -1;
    dir = open_parent(f, at, path, true, &name);
    if (dir < 0 && errno == ENOTDIR)
        return err_set(err, ERR_INVALID, "a part of '%.200s' is a file",
                       path);
    if (dir < 0)
        return err_set_errno(err, errno, "cannot make the folder of %.200s",
                             path);
    if ((fd = open_target(dir, name, &fresh, err)) < 0)
        return -1;
    if (write_file(f, key, fd, fresh, offset, truncate, p, n, ret_size,
                   err) == 0)
        return 0;
    if (fresh)
        unlinkat(dir, name, 0);
    return -1;
}

/* ---------------------------------------------------------------- read -- */

static int read_into(int fd, int64_t offset, size_t max, struct buf *out,
                     struct err *err)
{
    char *room = buf_reserve(out, max);
    size_t have = 0;

    if (!room)
        return err_set(err, ERR_TOO_LARGE, "too many bytes");
    while (have < max) {
        ssize_t got = pread(fd, room + have, max - have,
                            offset + (int64_t) have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_errno(err, errno, "cannot read a file");
        if (got == 0)
            break;
        have += (size_t) got;
    }
    buf_add(out, have);
    return 0;
}

int files_get(struct files *f, const struct files_at *at, const char *path,
              int64_t offset, size_t max, struct buf *out,
              int64_t *ret_total, struct err *err)
{
    CLEANUP(mem_close) int dir = -1, fd = -1;
    const char *name;
    struct stat st;
    int64_t left;

    if (files_check_name(at->kind, path, NULL) == 0)
        dir = open_parent(f, at, path, false, &name);
    if (dir >= 0)
        fd = openat(dir, name,
                    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_NOT_FOUND, "no such file");
    *ret_total = st.st_size;
    left = st.st_size - offset;
    if (left <= 0 || max == 0)
        return 0;
    return read_into(fd, offset, (int64_t) max < left ? max : (size_t) left,
                     out, err);
}

int files_walk(struct files *f, const struct files_at *at, bool open,
               int (*each)(void *arg, const char *dir, const char *name,
                           int fd, int64_t size, struct err *err),
               void *arg, struct err *err)
{
    CLEANUP(mem_close) int dir =
        open_folder(f, at->uuid, at->attempt, kind_names[at->kind], false);
    struct walk w = {open, open && f->opts.durable, each, arg};

    if (dir < 0 && errno == ENOENT)
        return 0;
    if (dir < 0)
        return err_set_errno(err, errno, "cannot open a folder");
    return walk_run(&w, dir, err);
}
