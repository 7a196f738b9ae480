/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_etc.c: the host's /etc without what is nobody else's business.
 *
 * The VM needs most of /etc (users, services, certificates, alternatives) and
 * may change it; the host's secrets must not be there. An overlay with its
 * upper layer on a tmpfs does both: before it is mounted, the upper layer gets
 * a whiteout (a character device 0:0, kernel overlayfs.rst) for each name to
 * be hidden.
 *
 * Hidden is what other users of the host could not read either: files
 * without read permission for others, directories without entry, at every
 * depth; and by name the SSH server's folder and the settings of Arvados and
 * of this suite, whatever their modes. /etc/shadow is replaced by a private
 * one in which root may log in by key ("*", not "!": sshd refuses a locked
 * account when it does not use PAM); a resolv.conf that is a link into /run is
 * copied, since the VM's /run is empty.
 *
 * Runs in the child, before it enters its root.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/isolate/mnt.h"
#include "core/isolate/sysfile.h"
#include "core/localvm/guest.h"

enum { ETC_DEPTH = 8, PATH_SIZE = 1024, RESOLV_MAX = 64 << 10 };

#define SHADOW "root:*:20000:0:99999:7:::\n"

bool guest_hides_etc(const char *name, mode_t mode)
{
    static const char *const names[] = {
        "ssh", "arvados", "crunch-dispatch-cloud", "crunch-api-server",
        "shadow", "shadow-", "gshadow", "gshadow-"
    };
    size_t i;

    for (i = 0; i < MEM_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    if (S_ISDIR(mode))
        return (mode & 05) != 05;
    return !S_ISLNK(mode) && !(mode & S_IROTH);
}

static int hide(const char *upper, const char *path, struct err *err)
{
    CLEANUP(mem_free) char *target = mem_printf("%s/%s", upper, path);
    char *slash;

    /* The directories above it; they merge with the lower ones. */
    for (slash = strchr(target + strlen(upper) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(target, 0755) < 0 && errno != EEXIST)
            return err_set_errno(err, errno, "make %s", target);
        *slash = '/';
    }
    if (mknod(target, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "hide /etc/%s", path);
    return 0;
}

static int hide_below(const char *upper, const char *path, int depth,
                      struct err *err)
{
    char dir[PATH_SIZE], sub[PATH_SIZE];
    struct dirent *e;
    struct stat st;
    int rc = 0;
    DIR *d;

    snprintf(dir, sizeof dir, "/etc/%s", path);
    d = opendir(dir);
    while (d && rc == 0 && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            (size_t) snprintf(sub, sizeof sub, "%s%s%s", path,
                              *path ? "/" : "", e->d_name) >= sizeof sub)
            continue;
        /* Below the top only the modes decide. */
        if (guest_hides_etc(*path ? "" : e->d_name, st.st_mode))
            rc = hide(upper, sub, err);
        else if (S_ISDIR(st.st_mode) && depth < ETC_DEPTH)
            rc = hide_below(upper, sub, depth + 1, err);
    }
    if (d)
        closedir(d);
    return rc;
}

static int copy_resolv(const char *upper, struct err *err)
{
    CLEANUP(mem_free) char *text = NULL;
    struct stat st;

    if (lstat("/etc/resolv.conf", &st) < 0 || !S_ISLNK(st.st_mode))
        return 0;
    text = sysfile_read_all("/etc/resolv.conf", RESOLV_MAX, NULL);
    return text ? guest_put(upper, "resolv.conf", 0644, text, err) : 0;
}

/* An upper directory's own mode is that of the merged one. */
static int copy_modes(const char *upper, struct err *err)
{
    struct stat st;

    if (stat("/etc", &st) < 0 || chmod(upper, st.st_mode & 07777) < 0)
        return err_set_errno(err, errno, "mode of /etc");
    return 0;
}

int guest_mount_etc(const struct guest *g, const char *layer,
                    const char *target, struct err *err)
{
    CLEANUP(mem_free) char *upper = mem_printf("%s/upper", layer);
    CLEANUP(mem_free) char *work = mem_printf("%s/work", layer);
    CLEANUP(mem_free) char *shadow = mem_printf("%s/shadow", upper);
    CLEANUP(mem_free) char *hostname = mem_printf("%s\n", g->vm->name);

    if (mkdir(upper, 0755) < 0 || mkdir(work, 0700) < 0)
        return err_set_errno(err, errno, "make %s", upper);
    if (hide_below(upper, "", 0, err) < 0)
        return -1;
    unlink(shadow);
    if (guest_put(upper, "shadow", 0640, SHADOW, err) < 0 ||
        guest_put(upper, "hostname", 0644, hostname, err) < 0 ||
        copy_resolv(upper, err) < 0 || copy_modes(upper, err) < 0)
        return -1;
    return mnt_overlay("/etc", upper, work, target, MNT_NOSUID | MNT_NODEV,
                       err);
}
