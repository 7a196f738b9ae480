/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_root.c: a root of its own for a VM.
 *
 * Two kinds. The image "host" is an allow-list: the host's programs (/usr and
 * its companions) read-only, /etc as an overlay without secrets, and for the
 * rest a fresh, empty world; host files that are not listed here do not exist
 * inside. An image directory is the lower layer of an overlay.
 *
 * On top of both come the same mounts: proc, sys with the VM's control groups
 * in it, a /dev of its own, private /run, /root and /tmp, the folder of
 * images, and shared folders. /tmp and (image "host") /var are directories of
 * the state directory, so that scratch data is on a disk and does not count
 * as memory. The image may hold links that point anywhere: all targets are
 * resolved inside the new root (mnt_point).
 *
 * Runs in the child, in its new mount namespace, before anything else is
 * there. A failure ends the child and the namespace with it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/isolate/mnt.h"
#include "core/localvm/guest.h"

enum {
    ROOT_SIZE = 64 << 20,   /* of small fresh file systems */
    LAYER_SIZE = 1 << 30    /* of an upper layer that must be in memory */
};

#define IMAGES "/var/lib/crunch-run/images"

static void dir_of(const struct guest *g, const char *name,
                   char out[STATE_PATH_SIZE])
{
    vm_path(g->vm, name, out);
}

static int make_dir(const char *path, mode_t mode, struct err *err)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "make %s", path);
    /* Whatever the umask was. */
    if (chmod(path, mode) < 0)
        return err_set_errno(err, errno, "chmod %s", path);
    return 0;
}

/* --- mounting inside the new root ---------------------------------------- */

static int bind_in(int root, const char *source, const char *target,
                   mode_t mode, uint32_t flags, struct err *err)
{
    CLEANUP(mem_close) int fd = mnt_point(root, target, S_IFDIR, mode, err);
    char path[MNT_FD_PATH_SIZE];

    if (fd < 0)
        return -1;
    return mnt_bind(source, mnt_fd_path(fd, path), flags, err);
}

static int tmpfs_in(int root, const char *target, mode_t mode, int64_t size,
                    struct err *err)
{
    CLEANUP(mem_close) int fd = mnt_point(root, target, S_IFDIR, mode, err);
    char path[MNT_FD_PATH_SIZE];

    if (fd < 0)
        return -1;
    return mnt_tmpfs(mnt_fd_path(fd, path), mode, size,
                     MNT_NOSUID | MNT_NODEV, err);
}

static int special_in(int root, const char *target,
                      int (*mount)(const char *target, struct err *err),
                      struct err *err)
{
    CLEANUP(mem_close) int fd = mnt_point(root, target, S_IFDIR, 0755, err);
    char path[MNT_FD_PATH_SIZE];

    return fd < 0 ? -1 : mount(mnt_fd_path(fd, path), err);
}

/* --- the two kinds of root ----------------------------------------------- */

static const char *const host_dirs[] = {
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "libo32"
};

/* A directory is bound, a link of a merged /usr copied. */
static int show_host_dir(int root, const char *name, struct err *err)
{
    char path[64], link[256];
    struct stat st;
    ssize_t n;

    snprintf(path, sizeof path, "/%s", name);
    if (lstat(path, &st) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return bind_in(root, path, name, 0755, MNT_RO | MNT_REC, err);
    n = readlink(path, link, sizeof link - 1);
    if (n < 0)
        return 0;
    link[n] = '\0';
    if (symlinkat(link, root, name) < 0)
        return err_set_errno(err, errno, "link %s", path);
    return 0;
}

static int fill_var(const struct guest *g, int root, struct err *err)
{
    static const char *const below[] = {"lib", "log", "cache", "spool",
                                        "opt", "mail"};
    char var[STATE_PATH_SIZE], path[STATE_PATH_SIZE + 16];
    size_t i;

    dir_of(g, "disk/var", var);
    if (make_dir(var, 0755, err) < 0)
        return -1;
    for (i = 0; i < MEM_COUNT(below); i++) {
        snprintf(path, sizeof path, "%s/%s", var, below[i]);
        if (make_dir(path, 0755, err) < 0)
            return -1;
    }
    snprintf(path, sizeof path, "%s/tmp", var);
    if (make_dir(path, 01777, err) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/run", var);
    (void) !symlink("/run", path);
    snprintf(path, sizeof path, "%s/lock", var);
    (void) !symlink("/run/lock", path);
    return bind_in(root, var, "var", 0755, MNT_NOSUID | MNT_NODEV, err);
}

static int build_host(const struct guest *g, const char *path,
                      struct err *err)
{
    static const char *const empty[] = {"home", "media", "mnt", "opt", "srv"};
    char layer[STATE_PATH_SIZE], etc[STATE_PATH_SIZE + 8];
    CLEANUP(mem_close) int root = -1;
    size_t i;

    if (mnt_tmpfs(path, 0755, ROOT_SIZE, MNT_NOSUID | MNT_NODEV, err) < 0)
        return -1;
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (i = 0; i < MEM_COUNT(host_dirs); i++)
        if (show_host_dir(root, host_dirs[i], err) < 0)
            return -1;
    for (i = 0; i < MEM_COUNT(empty); i++)
        if (mkdirat(root, empty[i], 0755) < 0)
            return err_set_errno(err, errno, "make /%s", empty[i]);
    dir_of(g, "etc", layer);
    snprintf(etc, sizeof etc, "%s/etc", path);
    if (make_dir(layer, 0700, err) < 0 || make_dir(etc, 0755, err) < 0 ||
        mnt_tmpfs(layer, 0700, ROOT_SIZE, MNT_NOSUID | MNT_NODEV, err) < 0 ||
        guest_mount_etc(g, layer, etc, err) < 0)
        return -1;
    return fill_var(g, root, err);
}

static int overlay_at(const char *image, const char *layer, const char *path,
                      struct err *err)
{
    char upper[STATE_PATH_SIZE + 8], work[STATE_PATH_SIZE + 8];

    snprintf(upper, sizeof upper, "%s/upper", layer);
    snprintf(work, sizeof work, "%s/work", layer);
    if (make_dir(upper, 0755, err) < 0 || make_dir(work, 0700, err) < 0)
        return -1;
    return mnt_overlay(image, upper, work, path, MNT_NODEV, err);
}

static int build_image(const struct guest *g, const char *path,
                       struct err *remark, struct err *err)
{
    const struct wire_spec *s = &g->vm->spec;
    CLEANUP(mem_free) char *image =
        s->image[0] == '/' ? mem_strdup(s->image)
                           : mem_printf("%s/%s", s->images_dir, s->image);
    char disk[STATE_PATH_SIZE];
    struct err why;

    dir_of(g, "disk", disk);
    if (overlay_at(image, disk, path, &why) == 0)
        return 0;
    if (why.class != ERR_UNSUPPORTED) {
        *err = why;
        return -1;
    }
    /* The state directory lies on an overlay, say, as in a container. */
    err_set(remark, ERR_UNSUPPORTED, "upper layer on tmpfs: %.200s",
            why.text);
    dir_of(g, "etc", disk);
    if (make_dir(disk, 0700, err) < 0 ||
        mnt_tmpfs(disk, 0755, s->scratch ? s->scratch : LAYER_SIZE,
                  MNT_NODEV, err) < 0)
        return -1;
    return overlay_at(image, disk, path, err);
}

/* --- what both have ------------------------------------------------------ */

static bool is_there(const struct cgroup *cg, int tree)
{
    return cg->dir[tree][0] && access(cg->dir[tree], F_OK) == 0;
}

/* A v1 controller each under its own name; v2 as one tree. */
static int show_groups(const struct guest *g, int root, struct err *err)
{
    const struct cgroup *in = &g->groups->inner;
    char target[64];
    int t;

    if (tmpfs_in(root, "sys/fs/cgroup", 0755, 1 << 16, err) < 0)
        return -1;
    if (g->groups->version == 2 && is_there(in, CGROUP_UNIFIED))
        return bind_in(root, in->dir[CGROUP_UNIFIED], "sys/fs/cgroup", 0755,
                       MNT_NOSUID | MNT_NODEV | MNT_NOEXEC, err);
    for (t = 0; t < CGROUP_SYSTEMD; t++) {
        if ((in->v2 & 1U << t) || !is_there(in, t))
            continue;
        snprintf(target, sizeof target, "sys/fs/cgroup/%s",
                 cgroup_tree_name((enum cgroup_tree) t));
        if (bind_in(root, in->dir[t], target, 0755,
                    MNT_NOSUID | MNT_NODEV | MNT_NOEXEC, err) < 0)
            return -1;
    }
    return 0;
}

static int show_tmp(const struct guest *g, int root, struct err *err)
{
    char path[STATE_PATH_SIZE];

    dir_of(g, "disk/tmp", path);
    if (make_dir(path, 01777, err) < 0)
        return -1;
    return bind_in(root, path, "tmp", 01777, MNT_NOSUID | MNT_NODEV, err);
}

static int show_folders(const struct guest *g, int root, struct err *err)
{
    const struct wire_spec *s = &g->vm->spec;
    size_t i;
    int fd;

    fd = mnt_point(root, IMAGES, S_IFDIR, 0755, err);
    if (fd < 0)
        return -1;
    close(fd);
    if (*s->images_dir &&
        bind_in(root, s->images_dir, IMAGES, 0755,
                MNT_RO | MNT_REC | MNT_NODEV, err) < 0)
        return -1;
    for (i = 0; i < s->n_shared; i++)
        if (bind_in(root, s->shared[i], s->shared[i], 0755,
                    MNT_REC | MNT_NOSUID | MNT_NODEV, err) < 0)
            return -1;
    return 0;
}

static int build_common(const struct guest *g, int root, struct err *err)
{
    if (special_in(root, "proc", mnt_proc, err) < 0 ||
        special_in(root, "sys", mnt_sys, err) < 0 ||
        show_groups(g, root, err) < 0 ||
        special_in(root, "dev", mnt_dev, err) < 0 ||
        tmpfs_in(root, "run", 0755, ROOT_SIZE, err) < 0 ||
        tmpfs_in(root, "root", 0700, ROOT_SIZE, err) < 0 ||
        show_tmp(g, root, err) < 0)
        return -1;
    return show_folders(g, root, err);
}

int guest_enter_root(const struct guest *g, struct err *remark,
                     struct err *err)
{
    bool host = strcmp(g->vm->spec.image, "host") == 0;
    char path[STATE_PATH_SIZE], disk[STATE_PATH_SIZE];
    CLEANUP(mem_close) int root = -1;

    dir_of(g, "root", path);
    dir_of(g, "disk", disk);
    if (mnt_private(err) < 0 || make_dir(path, 0755, err) < 0 ||
        make_dir(disk, 0755, err) < 0)
        return -1;
    if (host ? build_host(g, path, err) < 0
             : build_image(g, path, remark, err) < 0)
        return -1;
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_set_errno(err, errno, "open %s", path);
    if (build_common(g, root, err) < 0)
        return -1;
    return mnt_pivot(path, err);
}
