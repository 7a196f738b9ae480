/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing what a payload left.
 *
 * A payload can nest folders deeper than any number of descriptors or bytes of
 * a path: at a certain depth a folder is moved up to the top and removed from
 * there, so the depth of the recursion and the descriptors in use are bounded.
 * Without root's privileges folders without permission bits are given them
 * first. A mount point refuses with EBUSY and stays.
 */
#include "core/runner/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"

enum { DEPTH_MAX = 32 };

struct removal {
    int top_fd;     /* folders from the depth come here */
    unsigned moved; /* how many did */
    int errnum;     /* of the first failure; 0 = none */
};

static void failed(struct removal *r)
{
    if (errno != ENOENT && r->errnum == 0)
        r->errnum = errno;
}

static DIR *open_dir(int dir_fd, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dir_fd, name, flags);
    DIR *d;

    if (fd < 0 && errno == EACCES && fchmodat(dir_fd, name, 0700, 0) == 0)
        fd = openat(dir_fd, name, flags);
    if (fd < 0)
        return NULL;
    d = fdopendir(fd);
    if (!d)
        close(fd);
    return d;
}

/* Too deep: continue at the top. */
static void move_up(struct removal *r, int dir_fd, const char *name)
{
    char fresh[32];

    snprintf(fresh, sizeof fresh, ".deep.%u", r->moved++);
    if (renameat(dir_fd, name, r->top_fd, fresh) < 0)
        failed(r);
}

static void remove_entry(struct removal *r, int dir_fd, const char *name,
                         int depth);

static void empty_dir(struct removal *r, DIR *d, int depth)
{
    struct dirent *e;

    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            remove_entry(r, dirfd(d), e->d_name, depth);
    }
}

static void remove_entry(struct removal *r, int dir_fd, const char *name,
                         int depth)
{
    DIR *d;

    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return;
    if (errno != EISDIR && errno != EPERM && errno != EACCES) {
        failed(r);
        return;
    }
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return;
    if (depth >= DEPTH_MAX) {
        move_up(r, dir_fd, name);
        return;
    }
    d = open_dir(dir_fd, name);
    if (!d) {
        failed(r);
        return;
    }
    empty_dir(r, d, depth + 1);
    closedir(d);
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
        failed(r);
}

int tree_remove(int dir_fd, const char *name, struct err *err)
{
    struct removal r = {0};
    unsigned before;
    DIR *d;

    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    d = open_dir(dir_fd, name);
    if (!d)
        return err_set_errno(err, errno, "remove %s", name);
    r.top_fd = dirfd(d);
    /* Again while folders come up from below. */
    do {
        before = r.moved;
        rewinddir(d);
        empty_dir(&r, d, 0);
    } while (r.moved != before);
    closedir(d);
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && r.errnum == 0)
        failed(&r);
    return r.errnum ? err_set_errno(err, r.errnum, "remove %s", name) : 0;
}

int tree_make_parents(int dir_fd, const char *path, uid_t uid, gid_t gid,
                      struct err *err)
{
    CLEANUP(mem_free) char *part = mem_strdup(path);

    for (char *slash = part; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdirat(dir_fd, part, 0755) == 0) {
            if (fchownat(dir_fd, part, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
                return err_set_errno(err, errno, "chown %s", part);
        } else if (errno != EEXIST) {
            return err_set_errno(err, errno, "%s", part);
        }
        *slash = '/';
    }
    return 0;
}
