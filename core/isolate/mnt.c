/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnt.c: mounts of a private namespace, and entering a new root.
 *
 * The mount calls with descriptors are used (fsopen, fsmount, open_tree,
 * mount_setattr, move_mount; Linux 5.12), for two reasons. A mount gets its
 * flags before it is attached, so that nothing is ever visible writable that
 * should be read-only, and read-only reaches every mount below with one call.
 * And a target may be a descriptor resolved inside a root that strangers
 * filled: mount(2) on a path would follow their symbolic links. Overlays are
 * the exception: fsconfig() cuts their directories at 256 bytes.
 *
 * Called in a child with a mount namespace of its own, before it runs
 * anything; mnt_private() comes first. Nothing here undoes anything: the
 * child ends on failure and its namespace takes all mounts along.
 */

#include "core/isolate/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/isolate/mnt_fs.h"

enum { OVERLAY_MAGIC = 0x794c7630 };

int mnt_private(struct err *err)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_set_errno(err, errno, "make mounts private");
    return 0;
}

/* --- shared with mnt_fs.c ------------------------------------------------ */

uint64_t mnt_attrs(uint32_t flags)
{
    return (flags & MNT_RO ? MOUNT_ATTR_RDONLY : 0U) |
           (flags & MNT_NOSUID ? MOUNT_ATTR_NOSUID : 0U) |
           (flags & MNT_NODEV ? MOUNT_ATTR_NODEV : 0U) |
           (flags & MNT_NOEXEC ? MOUNT_ATTR_NOEXEC : 0U);
}

int mnt_attach(int mount_fd, int dir_fd, const char *target, struct err *err)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS;

    if (move_mount(mount_fd, "", dir_fd, target, flags) < 0)
        return err_set_errno(err, errno, "mount on %s", target);
    return 0;
}

int mnt_clone(int dir_fd, const char *source, uint32_t flags, struct err *err)
{
    unsigned rec = flags & MNT_REC ? AT_RECURSIVE : 0;
    struct mount_attr attr = {.attr_set = mnt_attrs(flags)};
    int fd = open_tree(dir_fd, source,
                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | rec);

    if (fd < 0)
        return err_set_errno(err, errno, "take %s for a bind mount", source);
    if (attr.attr_set &&
        mount_setattr(fd, "", AT_EMPTY_PATH | rec, &attr, sizeof attr) < 0) {
        err_set_errno(err, errno, "set mount flags of %s", source);
        close(fd);
        return -1;
    }
    return fd;
}

/* --- roots --------------------------------------------------------------- */

/* -1 = cannot tell. */
static int is_mount_point(const char *path)
{
    struct statx st;

    if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0 ||
        !(st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return -1;
    return st.stx_attributes & STATX_ATTR_MOUNT_ROOT ? 1 : 0;
}

int mnt_pivot(const char *new_root, struct err *err)
{
    if (is_mount_point(new_root) != 1 &&
        mnt_bind(new_root, new_root, MNT_REC, err) < 0)
        return -1;
    if (chdir(new_root) < 0)
        return err_set_errno(err, errno, "enter %s", new_root);
    /* The old root comes to lie over the new one and is taken off again; no
     * directory for it is needed. */
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return err_set_errno(err, errno, "pivot_root to %s", new_root);
    if (umount2(".", MNT_DETACH) < 0)
        return err_set_errno(err, errno, "leave the old root");
    if (chdir("/") < 0)
        return err_set_errno(err, errno, "enter the new root");
    return 0;
}

/* --- points inside a root ------------------------------------------------ */

static int open_in(int root_fd, const char *path)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };

    return (int) syscall(SYS_openat2, root_fd, path, &how, sizeof how);
}

static int make_in(int dir_fd, const char *name, mode_t type, mode_t mode)
{
    int fd;

    if (type == S_IFDIR)
        return mkdirat(dir_fd, name, mode);
    fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? -1 : 0;
}

/* Open the first `len` bytes of path inside the root; made if missing. */
static int step(int root_fd, int dir_fd, char *path, size_t start, size_t len,
                mode_t type, mode_t mode)
{
    char after = path[len];
    int fd;

    path[len] = '\0';
    fd = open_in(root_fd, path);
    if (fd < 0 && errno == ENOENT && type &&
        make_in(dir_fd, path + start, type, mode) == 0)
        fd = open_in(root_fd, path);
    path[len] = after;
    return fd;
}

int mnt_point(int root_fd, const char *path, mode_t type, mode_t mode,
              struct err *err)
{
    CLEANUP(mem_free) char *copy = mem_strdup(path);
    int dir = open_in(root_fd, "."), fd;
    size_t at = strspn(copy, "/");

    while (dir >= 0 && copy[at]) {
        size_t len = strcspn(copy + at, "/");
        size_t next = at + len + strspn(copy + at + len, "/");
        bool last = copy[next] == '\0';
        mode_t make = type && !last ? S_IFDIR : type;
        fd = step(root_fd, dir, copy, at, at + len, make, last ? mode : 0755);
        close(dir);
        dir = fd;
        at = next;
    }
    if (dir < 0)
        return err_set_errno(err, errno, "%s in the new root", path);
    return dir;
}

const char *mnt_fd_path(int fd, char out[MNT_FD_PATH_SIZE])
{
    snprintf(out, MNT_FD_PATH_SIZE, "/proc/self/fd/%d", fd);
    return out;
}

/* --- bind and overlay ---------------------------------------------------- */

int mnt_bind(const char *source, const char *target, uint32_t flags,
             struct err *err)
{
    CLEANUP(mem_close) int fd = mnt_clone(AT_FDCWD, source, flags, err);

    if (fd < 0)
        return -1;
    return mnt_attach(fd, AT_FDCWD, target, err);
}

/* Commas end an option, colons a lower directory. */
static void put_dir(struct buf *b, const char *option, const char *dir)
{
    buf_puts(b, option);
    for (; *dir; dir++) {
        if (strchr("\\,:", *dir))
            buf_putc(b, '\\');
        buf_putc(b, *dir);
    }
}

int mnt_overlay(const char *lower, const char *upper, const char *work,
                const char *target, uint32_t flags, struct err *err)
{
    unsigned long ms = (flags & MNT_NOSUID ? MS_NOSUID : 0UL) |
                       (flags & MNT_NODEV ? MS_NODEV : 0UL) |
                       (flags & MNT_NOEXEC ? MS_NOEXEC : 0UL) |
                       (flags & MNT_RO ? MS_RDONLY : 0UL);
    CLEANUP(buf_fini) struct buf b;
    size_t plain;

    buf_init(&b, 4000); /* the kernel takes one page */
    put_dir(&b, "lowerdir=", lower);
    put_dir(&b, ",upperdir=", upper);
    put_dir(&b, ",workdir=", work);
    plain = b.len;
    buf_puts(&b, ",volatile");
    if (b.over)
        return err_set(err, ERR_CONFIG, "overlay paths are too long");
    if (mount("overlay", target, "overlay", ms, b.data) == 0)
        return 0;
    buf_truncate(&b, plain);
    if (errno == EINVAL &&
        mount("overlay", target, "overlay", ms, b.data) == 0)
        return 0;
    if (errno == EINVAL)
        return err_set(err, ERR_UNSUPPORTED,
                       "no overlay with its upper layer in %s", upper);
    return err_set_errno(err, errno, "overlay on %s", target);
}

bool mnt_on_overlay(const char *path)
{
    struct statfs st;

    return statfs(path, &st) == 0 &&
           (unsigned long) st.f_type == (unsigned long) OVERLAY_MAGIC;
}
