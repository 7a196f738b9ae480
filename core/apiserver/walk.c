/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking over the files of an attempt.
 *
 * By descriptor from folder to folder, never following a link, sorted by byte
 * order of names: the same files give the same manifest on every machine.
 * Names that no client could have made are passed over.
 */
#include "core/apiserver/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/vec.h"

bool walk_is_name(const char *s, size_t n)
{
    if (n == 0 || n > WALK_NAME || (n == 1 && s[0] == '.') ||
        (n == 2 && s[0] == '.' && s[1] == '.'))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char) s[i] < 0x20 || s[i] == 0x7f)
            return false;
    return true;
}

struct entry {
    char *name;
    int64_t size;
    bool folder;
};

struct entries {
    VEC(struct entry) list;
};

static void entries_fini(struct entries *e)
{
    for (size_t i = 0; i < e->list.n; i++)
        free(e->list.v[i].name);
    VEC_FINI(&e->list);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *) a)->name,
                  ((const struct entry *) b)->name);
}

/* Files and folders in order of name; anything else is not ours. */
static int read_entries(int dir, struct entries *ret, struct err *err)
{
    int fd = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;
    struct stat st;

    if (!d) {
        err_set_errno(err, errno, "cannot read a folder");
        mem_close(&fd);
        return -1;
    }
    rewinddir(d);
    while ((e = readdir(d))) {
        if (!walk_is_name(e->d_name, strlen(e->d_name)) ||
            fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
            continue;
        VEC_PUSH(&ret->list,
                 (struct entry){.name = mem_strdup(e->d_name),
                                .size = st.st_size,
                                .folder = S_ISDIR(st.st_mode)});
    }
    closedir(d);
    if (ret->list.n > 1)
        qsort(ret->list.v, ret->list.n, sizeof ret->list.v[0], by_name);
    return 0;
}

static int walk_file(const struct walk *w, int dir, const char *path,
                     const struct entry *e, struct err *err)
{
    CLEANUP(mem_close) int fd = -1;
    int64_t size = e->size;
    struct stat st;

    if (w->open) {
        fd = openat(dir, e->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
            return err_set_errno(err, errno, "cannot open %.200s", e->name);
        size = st.st_size;
    }
    return w->each(w->arg, path, e->name, fd, size, err);
}

/* Recursion is bounded by WALK_DEPTH: nothing deeper is ever made. */
static int walk_folder(const struct walk *w, int dir, const char *path,
                       struct err *err)
{
    CLEANUP(entries_fini) struct entries e = {0};

    if (read_entries(dir, &e, err) < 0)
        return -1;
    for (size_t i = 0; i < e.list.n; i++)
        if (!e.list.v[i].folder &&
            walk_file(w, dir, path, &e.list.v[i], err) < 0)
            return -1;
    for (size_t i = 0; i < e.list.n; i++) {
        if (!e.list.v[i].folder)
            continue;
        CLEANUP(mem_close) int sub =
            openat(dir, e.list.v[i].name,
                   O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        CLEANUP(mem_free) char *name = mem_printf(
            "%s%s%s", path, *path ? "/" : "", e.list.v[i].name);
        if (sub < 0)
            return err_set_errno(err, errno, "cannot open %.200s", name);
        if (walk_folder(w, sub, name, err) < 0)
            return -1;
    }
    if (w->sync && fsync(dir) < 0)
        return err_set_errno(err, errno, "cannot sync a folder");
    return 0;
}

int walk_run(const struct walk *w, int dir, struct err *err)
{
    return walk_folder(w, dir, "", err);
}
