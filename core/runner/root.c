/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The payload's root.
 *
 * It is a small tmpfs on which the entries of the image's top folder are
 * bound, read-only, nosuid, nodev, and links copied; proc, sys, dev, run and
 * tmp are fresh. Compared with an overlay this needs no upper and work folders
 * (which cannot lie on an overlay, and a local VM's root is one), shows the
 * mounts below the image too, and leaves nothing to clean up.
 *
 * A mount point that does not exist is made where the tmpfs shows through. In
 * a read-only folder it cannot be made: that folder is mirrored, that is,
 * covered by a tmpfs on which its entries are bound one by one. So a container
 * may mount /var/spool/x although the image's /var is not ours to change, at
 * the price of as many binds as the folder has entries.
 *
 * Runs in the payload's first process, as root, before anything of the payload
 * does. Targets are resolved inside the new root (mnt_point), never by path.
 */
#include "core/runner/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/isolate/mnt.h"
#include "core/runner/node.h"
#include "core/runner/stage.h"

enum {
    MIRRORS_MAX = 64,
    ENTRIES_MAX = 2000,          /* of a folder that is mirrored */
    ROOT_SIZE = 4 * 1024 * 1024, /* holds folders, links and empty files */
    BIND_FLAGS = MNT_RO | MNT_NOSUID | MNT_NODEV | MNT_REC,
};

struct root {
    int fd;                   /* the new root */
    int mirrors[MIRRORS_MAX]; /* tmpfs to be made read-only at the end */
    size_t n_mirrors;
};

/* Not taken from the image; made fresh where they are needed. */
static const char *const fresh[] = {"proc", "sys", "dev", "run", "tmp"};
/* Of the machine's own root not taken either. */
static const char *const hidden[] = {"root", "lost+found"};

static bool is_listed(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i], name) == 0)
            return true;
    }
    return false;
}

enum level { TOP_OF_HOST, TOP_OF_IMAGE, BELOW };

static bool is_skipped(const char *name, enum level level)
{
    static const char *const dots[] = {".", ".."};

    return is_listed(dots, MEM_COUNT(dots), name) ||
           (level != BELOW && is_listed(fresh, MEM_COUNT(fresh), name)) ||
           (level == TOP_OF_HOST &&
            is_listed(hidden, MEM_COUNT(hidden), name));
}

static int copy_link(int from, int to, const char *name, struct err *err)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);

    if (n < 0)
        return err_set_errno(err, errno, "read link %s", name);
    target[n] = '\0';
    if (symlinkat(target, to, name) < 0)
        return err_set_errno(err, errno, "copy link %s", name);
    return 0;
}

/* Bind one entry of folder `from` onto a new one in folder `to`. */
static int bind_entry(int from, int to, const char *name, mode_t mode,
                      uint32_t flags, struct err *err)
{
    char from_dir[MNT_FD_PATH_SIZE], to_dir[MNT_FD_PATH_SIZE];
    CLEANUP(mem_free) char *source =
        mem_printf("%s/%s", mnt_fd_path(from, from_dir), name);
    CLEANUP(mem_free) char *target =
        mem_printf("%s/%s", mnt_fd_path(to, to_dir), name);

    if (S_ISDIR(mode)) {
        if (mkdirat(to, name, 0755) < 0)
            return err_set_errno(err, errno, "make %s", name);
    } else if (mknodat(to, name, S_IFREG | 0444, 0) < 0) {
        return err_set_errno(err, errno, "make %s", name);
    }
    return mnt_bind(source, target, flags, err);
}

/* Show every entry of `from` in the empty folder `to`. What a mirror shows has
 * its flags already, and what is mounted in it must keep its own. */
static int mirror_entries(int from, int to, enum level level,
                          struct err *err)
{
    uint32_t flags = level == BELOW ? MNT_REC : BIND_FLAGS;
    int copy = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int r = 0, count = 0;
    struct dirent *e;

    if (!d)
        return err_set_errno(err, errno, "read a folder of the image");
    while (r == 0 && (e = readdir(d))) {
        struct stat st;

        if (is_skipped(e->d_name, level))
            continue;
        if (++count > ENTRIES_MAX)
            r = err_set(err, ERR_UNSUPPORTED, "the folder is too large to "
                                              "make a mount point in it");
        else if (fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* gone meanwhile */
        else if (S_ISLNK(st.st_mode))
            r = copy_link(from, to, e->d_name, err);
        else
            r = bind_entry(from, to, e->d_name, st.st_mode, flags, err);
    }
    closedir(d);
    return r;
}

/* Cover the read-only folder by a tmpfs that shows the same. */
static int mirror(struct root *r, const char *path, struct err *err)
{
    CLEANUP(mem_close) int from = mnt_point(r->fd, path, 0, 0, err);
    char target[MNT_FD_PATH_SIZE];
    struct stat st;
    int to;

    if (from < 0)
        return -1;
    if (r->n_mirrors == MIRRORS_MAX)
        return err_set(err, ERR_UNSUPPORTED, "too many folders of the image "
                                             "would have to be changed");
    if (fstat(from, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_UNSUPPORTED, "%s is not a folder", path);
    to = mnt_open_tmpfs(st.st_mode & 07777, ROOT_SIZE,
                        MNT_NOSUID | MNT_NODEV, err);
    if (to < 0)
        return -1;
    r->mirrors[r->n_mirrors++] = to;
    /* Filled while it is mounted: binds need a place in our namespace. */
    if (mnt_move(to, mnt_fd_path(from, target), err) < 0)
        return -1;
    return mirror_entries(from, to, BELOW, err);
}

/* Cut the path down to its longest proper prefix that exists. */
static void cut_to_existing(int root_fd, char *path)
{
    char *slash;

    while ((slash = strrchr(path, '/')) && slash != path) {
        int fd;

        *slash = '\0';
        fd = mnt_point(root_fd, path, 0, 0, NULL);
        if (fd >= 0) {
            close(fd);
            return;
        }
    }
    path[1] = '\0';
}

/* A mount point inside the root, made if need be. */
static int point(struct root *r, const char *path, mode_t type,
                 struct err *err)
{
    CLEANUP(mem_free) char *prefix = mem_strdup(path);
    int fd = mnt_point(r->fd, path, type, 0755, err);

    if (fd >= 0 || !err || err->class != ERR_AUTH)
        return fd;
    cut_to_existing(r->fd, prefix);
    if (mirror(r, prefix, err) < 0)
        return -1;
    return mnt_point(r->fd, path, type, 0755, err);
}

static int check_type(int fd, bool file, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "fstat");
    if (S_ISDIR(st.st_mode) == file)
        return err_set(err, ERR_UNSUPPORTED, "the image has a %s here",
                       file ? "folder" : "file");
    return 0;
}

static int mount_one(struct root *r, const struct stage_mount *m,
                     struct err *err)
{
    CLEANUP(mem_close) int at =
        point(r, m->target, m->file ? S_IFREG : S_IFDIR, err);
    char target[MNT_FD_PATH_SIZE];
    uint32_t flags = MNT_NOSUID | MNT_NODEV | (m->file ? MNT_RO : 0);

    if (at < 0 || check_type(at, m->file, err) < 0) {
        if (err)
            err->class = ERR_UNSUPPORTED;
        return err_prefix(err, "mounts: %s", m->target);
    }
    mnt_fd_path(at, target);
    if (m->detached)
        return mnt_move(m->fd, target, err);
    /* By path: the descriptor belongs to the namespace that we left. */
    return mnt_bind(m->path, target, flags, err);
}

static int mount_shared(struct root *r, const struct node *node,
                        struct err *err)
{
    for (size_t i = 0; i < node->n_shared; i++) {
        const struct node_shared *s = &node->shared[i];
        CLEANUP(mem_close) int at = point(r, s->path, S_IFDIR, err);
        char target[MNT_FD_PATH_SIZE];

        if (at < 0 ||
            mnt_bind(s->source, mnt_fd_path(at, target),
                     MNT_NOSUID | MNT_NODEV | (s->writable ? 0 : MNT_RO),
                     err) < 0)
            return err_prefix(err, "shared folder %s", s->path);
    }
    return 0;
}

static int make_fresh(const char *root, const struct stage *stage,
                      struct err *err)
{
    CLEANUP(mem_free) char *proc = mem_printf("%s/proc", root);
    CLEANUP(mem_free) char *dev = mem_printf("%s/dev", root);
    CLEANUP(mem_free) char *sys = mem_printf("%s/sys", root);
    CLEANUP(mem_free) char *run = mem_printf("%s/run", root);
    CLEANUP(mem_free) char *run_lock = mem_printf("%s/run/lock", root);
    CLEANUP(mem_free) char *tmp = mem_printf("%s/tmp", root);
    CLEANUP(mem_free) char *our_tmp = mem_printf("%s/tmp", stage->dir);

    if (mkdir(proc, 0555) < 0 || mkdir(dev, 0755) < 0 ||
        mkdir(sys, 0555) < 0 || mkdir(run, 0755) < 0 ||
        mkdir(run_lock, 0755) < 0 || mkdir(tmp, 01777) < 0)
        return err_set_errno(err, errno, "make folders of the root");
    /* The machine's sys shows the groups that limit us; programs look. */
    if (access("/sys", F_OK) == 0 &&
        mnt_bind("/sys", sys, BIND_FLAGS | MNT_NOEXEC, err) < 0)
        return -1;
    if (mnt_proc(proc, err) < 0 || mnt_dev(dev, err) < 0)
        return -1;
    return mnt_bind(our_tmp, tmp, MNT_NOSUID | MNT_NODEV, err);
}

/* Programs that keep large files out of /tmp use this, where it exists. */
static int show_var_tmp(const struct root *r, const struct stage *stage,
                        struct err *err)
{
    CLEANUP(mem_free) char *ours = mem_printf("%s/tmp", stage->dir);
    CLEANUP(mem_close) int at = mnt_point(r->fd, "/var/tmp", 0, 0, NULL);
    char target[MNT_FD_PATH_SIZE];
    struct stat st;

    if (at < 0 || fstat(at, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    return mnt_bind(ours, mnt_fd_path(at, target), MNT_NOSUID | MNT_NODEV,
                    err);
}

static int assemble(const char *root, const char *image, struct err *err)
{
    CLEANUP(mem_close) int from =
        open(image, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(mem_close) int to = -1;

    if (from < 0)
        return err_set_errno(err, errno, "image %s", image);
    if (mnt_tmpfs(root, 0755, ROOT_SIZE, MNT_NOSUID | MNT_NODEV, err) < 0)
        return -1;
    to = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return err_set_errno(err, errno, "%s", root);
    return mirror_entries(from, to,
                          strcmp(image, "/") == 0 ? TOP_OF_HOST
                                                  : TOP_OF_IMAGE,
                          err);
}

static int mount_all(struct root *r, const struct node *node,
                     const struct stage *stage, struct err *err)
{
    if (show_var_tmp(r, stage, err) < 0)
        return -1;
    for (size_t i = 0; i < stage->n_mounts; i++) {
        if (mount_one(r, &stage->mounts[i], err) < 0)
            return -1;
    }
    return mount_shared(r, node, err);
}

/* The file system and not the mount: a mirror may be shown in another one. */
static int make_read_only(int fd, struct err *err)
{
    char path[MNT_FD_PATH_SIZE];

    if (mount(NULL, mnt_fd_path(fd, path), NULL,
              MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
        return err_set_errno(err, errno, "make the root read-only");
    return 0;
}

static int finish(struct root *r, int result, struct err *err)
{
    if (result == 0)
        result = make_read_only(r->fd, err);
    for (size_t i = 0; i < r->n_mirrors; i++) {
        if (result == 0)
            result = make_read_only(r->mirrors[i], err);
        close(r->mirrors[i]);
    }
    close(r->fd);
    return result;
}

static int populate(const char *path, const struct node *node,
                    const struct stage *stage, struct err *err)
{
    struct root r = {.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

    if (r.fd < 0)
        return err_set_errno(err, errno, "%s", path);
    return finish(&r, mount_all(&r, node, stage, err), err);
}

int root_enter(const struct node *node, const struct stage *stage,
               const char *image, struct err *err)
{
    CLEANUP(mem_free) char *root = mem_printf("%s/root", stage->dir);

    umask(022);
    if (mnt_private(err) < 0 || assemble(root, image, err) < 0 ||
        make_fresh(root, stage, err) < 0 ||
        populate(root, node, stage, err) < 0)
        return -1;
    return mnt_pivot(root, err);
}
