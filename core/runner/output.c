/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over the output folder.
 *
 * Every name is looked at without following it, opened from the root by its
 * whole relative path with openat2(), and looked at again through the
 * descriptor: a payload's link to /etc/shadow, or a folder replaced by a link,
 * gives a remark, never a file. Devices, sockets and pipes are never opened.
 *
 * Called once per container by run.c; single-threaded.
 */
#include "core/runner/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/runner/glob.h"

enum { NOTE_MAX = 1024, PATH_BYTES_MAX = 8 * 1024, NOTES_MAX = 100 };

static int open_beneath(int root_fd, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t) (flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
                             O_NONBLOCK),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                   RESOLVE_NO_MAGICLINKS,
    };

    return (int) syscall(SYS_openat2, root_fd, path, &how, sizeof how);
}

static void skip(struct output *o, const char *path, const char *why)
{
    CLEANUP(buf_fini) struct buf text;

    buf_init(&text, NOTE_MAX);
    if (++o->skipped > NOTES_MAX || !o->note)
        return;
    buf_puts(&text, "output: ");
    text_quote_terminal(&text, path, strnlen(path, NOTE_MAX / 8));
    buf_printf(&text, ": %s", why);
    o->note(o->arg, text.data);
}

static const char *kind_of(mode_t mode)
{
    if (S_ISLNK(mode))
        return "symbolic link, not followed";
    if (S_ISFIFO(mode))
        return "pipe, left out";
    if (S_ISSOCK(mode))
        return "socket, left out";
    return "device, left out";
}

static bool is_wanted(const struct output *o, const char *path)
{
    for (size_t i = 0; o->globs && o->globs[i]; i++) {
        if (glob_match(o->globs[i], path))
            return true;
    }
    return !o->globs || !o->globs[0];
}

static bool is_excluded(const struct output *o, const char *path)
{
    for (size_t i = 0; o->exclude && o->exclude[i]; i++) {
        if (strcmp(o->exclude[i], path) == 0)
            return true;
    }
    return false;
}

static int put_file(struct output *o, const char *path, struct err *err)
{
    CLEANUP(mem_close) int fd = -1;
    struct stat st;

    if (!is_wanted(o, path))
        return 0;
    fd = open_beneath(o->root_fd, path, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) {
        skip(o, path, kind_of(st.st_mode));
        return 0;
    }
    if (o->put(o->arg, path, fd, st.st_size, err) < 0)
        return -1;
    o->files++;
    o->bytes += st.st_size;
    return 0;
}

typedef VEC(char *) names;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

static int read_names(int fd, names *list, struct err *err)
{
    DIR *d = fdopendir(fd);
    struct dirent *e;

    if (!d) {
        err_set_errno(err, errno, "fdopendir");
        close(fd);
        return -1;
    }
    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            VEC_PUSH(list, mem_strdup(e->d_name));
    }
    closedir(d);
    if (list->n)
        qsort(list->v, list->n, sizeof *list->v, by_name);
    return 0;
}

static int walk(struct output *o, struct buf *path, int depth,
                struct err *err);

/* The entry whose path is in `path`. */
static int visit(struct output *o, struct buf *path, int depth,
                 struct err *err)
{
    struct stat st;

    if (path->over)
        return err_set(err, ERR_TOO_LARGE, "output: a path is too long");
    if (is_excluded(o, path->data))
        return 0;
    if (fstatat(o->root_fd, path->data, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set_errno(err, errno, "%s", path->data);
    if (S_ISREG(st.st_mode))
        return put_file(o, path->data, err);
    if (S_ISDIR(st.st_mode))
        return walk(o, path, depth + 1, err);
    skip(o, path->data, kind_of(st.st_mode));
    return 0;
}

static int walk(struct output *o, struct buf *path, int depth,
                struct err *err)
{
    size_t len = path->len;
    names list = {0};
    int fd, r = 0;

    if (depth > OUTPUT_DEPTH_MAX)
        return err_set(err, ERR_TOO_LARGE, "output: folders deeper than %d",
                       OUTPUT_DEPTH_MAX);
    fd = open_beneath(o->root_fd, len ? path->data : ".", O_DIRECTORY);
    if (fd < 0)
        return err_set_errno(err, errno, "%s", path->data);
    r = read_names(fd, &list, err);
    for (size_t i = 0; i < list.n; i++) {
        if (r == 0) {
            if (len)
                buf_putc(path, '/');
            buf_puts(path, list.v[i]);
            r = visit(o, path, depth, err);
            buf_truncate(path, len);
        }
        free(list.v[i]);
    }
    VEC_FINI(&list);
    return r;
}

int output_collect(struct output *o, struct err *err)
{
    CLEANUP(buf_fini) struct buf path;
    int r;

    buf_init(&path, PATH_BYTES_MAX);
    o->files = o->skipped = 0;
    o->bytes = 0;
    r = walk(o, &path, 0, err);
    if (r == 0 && o->skipped > NOTES_MAX && o->note)
        o->note(o->arg, "output: more was left out than is named here");
    return r;
}
