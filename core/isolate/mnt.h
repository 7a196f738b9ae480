/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ISOLATE_MNT_H
#define CORE_ISOLATE_MNT_H

/*
 * Building a root of one's own (mount(2), pivot_root(2)).
 *
 * For a child in a fresh mount namespace: mnt_private() first, always; then
 * the new root is put together under some directory, then mnt_pivot() enters
 * it and forgets the old one. The namespace takes every mount with it when
 * its last process ends, so nothing here needs undoing.
 *
 * A root that others filled may hold symbolic links in surprising places. A
 * target inside it is therefore never named by a path of ours but resolved
 * inside the root by mnt_point(), and handed on as "/proc/self/fd/N" with
 * mnt_fd_path(). /proc must be mounted while that is done.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

enum { MNT_FD_PATH_SIZE = 32 };

enum mnt_flag {
    MNT_RO = 1 << 0,
    MNT_NOSUID = 1 << 1,
    MNT_NODEV = 1 << 2,
    MNT_NOEXEC = 1 << 3,
    MNT_REC = 1 << 4      /* bind: with the mounts below it */
};

/* Nothing that is mounted from now on is seen outside, and nothing from
 * outside comes in. Fails in a plain chroot, where "/" is no mount point: what
 * lies above could not be told to keep out. */
int mnt_private(struct err *err);

/*
 * Resolve `path` inside the root directory (a descriptor), symbolic links
 * included, and never leave it (openat2(2), RESOLVE_IN_ROOT). Missing
 * directories are made with mode 0755. The last component is made as `type`
 * says: S_IFDIR with `mode`, S_IFREG as an empty file; 0 = must exist.
 * Returns an O_PATH descriptor (close-on-exec), -1 on failure.
 */
int mnt_point(int root_fd, const char *path, mode_t type, mode_t mode,
              struct err *err);
const char *mnt_fd_path(int fd, char out[MNT_FD_PATH_SIZE]);

/* size 0 = the kernel's default (half of the memory). */
int mnt_tmpfs(const char *target, mode_t mode, int64_t size, uint32_t flags,
              struct err *err);

/* A tmpfs that is mounted nowhere yet: a descriptor of its root (close-on-exec,
 * -1 on failure), through which its content stays within reach even when the
 * namespace that it was moved into is gone. mnt_move() mounts it, once. */
int mnt_open_tmpfs(mode_t mode, int64_t size, uint32_t flags,
                   struct err *err);
int mnt_move(int mount_fd, const char *target, struct err *err);

/* Show source (directory or file) at target. With MNT_REC the flags hold for
 * the mounts below too (mount_setattr(2), AT_RECURSIVE; Linux 5.12). */
int mnt_bind(const char *source, const char *target, uint32_t flags,
             struct err *err);

/*
 * lower: one directory. upper and work: directories of one file system that
 * can hold an upper layer. The overlay is "volatile": its content need not
 * survive a crash, so that unmounting does not wait for the disk.
 * ERR_UNSUPPORTED when the file system of upper cannot be used (it lies on an
 * overlay itself, say): use a tmpfs then.
 */
int mnt_overlay(const char *lower, const char *upper, const char *work,
                const char *target, uint32_t flags, struct err *err);

/* proc of the caller's pid namespace, nosuid, nodev, noexec. The settings of
 * the whole machine in it (sys, sysrq-trigger, irq, bus) are read-only. */
int mnt_proc(const char *target, struct err *err);
/* sysfs, read-only. */
int mnt_sys(const char *target, struct err *err);

/* A /dev of its own on a tmpfs: null zero full random urandom tty made by
 * mknod, pts (new instance) with ptmx, shm, mqueue's directory, and the usual
 * links. The host's /dev is never shown: its nodes could be changed there. */
int mnt_dev(const char *target, struct err *err);

/* v2, as the caller's cgroup namespace shows it. */
int mnt_cgroup2(const char *target, struct err *err);

/* Make new_root the root of this process and drop the old one. new_root
 * becomes a mount point if it is none. The working directory is "/" then. */
int mnt_pivot(const char *new_root, struct err *err);

/* Does the path lie on an overlay (so that no upper layer can be there)? */
bool mnt_on_overlay(const char *path);

#endif
