/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnt_fs.c: fresh file systems of a new root: tmpfs, proc, sys, dev, cgroup.
 *
 * Each is made detached (fsopen, fsconfig, fsmount), attached, and then
 * worked on through its own descriptor: the target may be "/proc/self/fd/N",
 * and a path through such a link does not cross what was mounted on it.
 *
 * /dev is a tmpfs with nodes made here. A bound host /dev would let root in a
 * VM change owner and mode of the host's nodes. /proc shows settings of the
 * whole machine whatever the namespace; they are made read-only against
 * accidents (root inside can remount: this is no security boundary).
 *
 * Callers and threads as mnt.c.
 */

#include "core/isolate/mnt_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/isolate/mnt.h"

/*
 * A new mount of the type; options are "key=value" or flags, separated by
 * commas. A descriptor or -1. None of our options holds a comma.
 */
static int make_fs(const char *type, const char *options, uint32_t flags,
                   struct err *err)
{
    CLEANUP(mem_close) int fs = fsopen(type, FSOPEN_CLOEXEC);
    CLEANUP(mem_free) char *copy = mem_strdup(options);
    char *rest = copy, *option;
    int fd;

    if (fs < 0)
        return err_set_errno(err, errno, "file system %s", type);
    while ((option = strsep(&rest, ",")) && *option) {
        char *value = strchr(option, '=');
        unsigned cmd = value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
        if (value)
            *value++ = '\0';
        if (fsconfig(fs, cmd, option, value, 0) < 0)
            return err_set_errno(err, errno, "%s: option %s", type, option);
    }
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_set_errno(err, errno, "make a %s", type);
    fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned) mnt_attrs(flags));
    if (fd < 0)
        return err_set_errno(err, errno, "mount a %s", type);
    return fd;
}

static int make_at(const char *type, const char *options, uint32_t flags,
                   int dir_fd, const char *target, struct err *err)
{
    int fd = make_fs(type, options, flags, err);

    if (fd >= 0 && mnt_attach(fd, dir_fd, target, err) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int plain_fs(const char *type, const char *options, uint32_t flags,
                    const char *target, struct err *err)
{
    int fd = make_at(type, options, flags, AT_FDCWD, target, err);

    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

int mnt_open_tmpfs(mode_t mode, int64_t size, uint32_t flags, struct err *err)
{
    char options[64];

    snprintf(options, sizeof options, "mode=%o", (unsigned) mode);
    if (size > 0)
        snprintf(options, sizeof options, "mode=%o,size=%" PRId64,
                 (unsigned) mode, size);
    return make_fs("tmpfs", options, flags, err);
}

int mnt_move(int mount_fd, const char *target, struct err *err)
{
    return mnt_attach(mount_fd, AT_FDCWD, target, err);
}

int mnt_tmpfs(const char *target, mode_t mode, int64_t size, uint32_t flags,
              struct err *err)
{
    CLEANUP(mem_close) int fd = mnt_open_tmpfs(mode, size, flags, err);

    return fd < 0 ? -1 : mnt_move(fd, target, err);
}

static int cover_read_only(int fs_fd, const char *name, struct err *err)
{
    CLEANUP(mem_close) int fd = mnt_clone(fs_fd, name, MNT_RO, err);

    if (fd < 0)
        return -1;
    return mnt_attach(fd, fs_fd, name, err);
}

int mnt_proc(const char *target, struct err *err)
{
    static const char *const machine[] = {"sys", "sysrq-trigger", "irq",
                                          "bus"};
    CLEANUP(mem_close) int fd = make_at(
        "proc", "", MNT_NOSUID | MNT_NODEV | MNT_NOEXEC, AT_FDCWD, target,
        err);
    size_t i;

    if (fd < 0)
        return -1;
    for (i = 0; i < MEM_COUNT(machine); i++)
        if (faccessat(fd, machine[i], F_OK, 0) == 0 &&
            cover_read_only(fd, machine[i], err) < 0)
            return -1;
    return 0;
}

int mnt_sys(const char *target, struct err *err)
{
    return plain_fs("sysfs", "", MNT_RO | MNT_NOSUID | MNT_NODEV | MNT_NOEXEC,
                    target, err);
}

int mnt_cgroup2(const char *target, struct err *err)
{
    return plain_fs("cgroup2", "", MNT_NOSUID | MNT_NODEV | MNT_NOEXEC,
                    target, err);
}

/* --- /dev ---------------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned major, minor;
} nodes[] = {
    {"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7},
    {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
};

static const struct {
    const char *name, *to;
} links[] = {
    {"ptmx", "pts/ptmx"},
    {"fd", "/proc/self/fd"},
    {"stdin", "/proc/self/fd/0"},
    {"stdout", "/proc/self/fd/1"},
    {"stderr", "/proc/self/fd/2"},
};

static int fill_dev(int fd, struct err *err)
{
    mode_t mask = umask(0);
    int bad = 0;
    size_t i;

    for (i = 0; i < MEM_COUNT(nodes); i++)
        bad |= mknodat(fd, nodes[i].name, S_IFCHR | 0666,
                       makedev(nodes[i].major, nodes[i].minor));
    for (i = 0; i < MEM_COUNT(links); i++)
        bad |= symlinkat(links[i].to, fd, links[i].name);
    bad |= mkdirat(fd, "pts", 0755);
    bad |= mkdirat(fd, "shm", 01777);
    bad |= mkdirat(fd, "mqueue", 01777);
    umask(mask);
    return bad ? err_set_errno(err, errno, "fill /dev") : 0;
}

int mnt_dev(const char *target, struct err *err)
{
    CLEANUP(mem_close) int dev = make_at(
        "tmpfs", "mode=755,size=1m", MNT_NOSUID | MNT_NOEXEC, AT_FDCWD,
        target, err);
    CLEANUP(mem_close) int pts = -1;
    CLEANUP(mem_close) int shm = -1;

    if (dev < 0 || fill_dev(dev, err) < 0)
        return -1;
    pts = make_at("devpts", "mode=620,ptmxmode=666", MNT_NOSUID | MNT_NOEXEC,
                  dev, "pts", err);
    if (pts < 0)
        return -1;
    shm = make_at("tmpfs", "mode=1777", MNT_NOSUID | MNT_NODEV, dev, "shm",
                  err);
    return shm < 0 ? -1 : 0;
}
