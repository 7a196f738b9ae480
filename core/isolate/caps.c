/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caps.c: giving up capabilities, groups and the uid, in the right order.
 *
 * capset(2) and prctl(2) directly: crunch-run is linked statically and wants
 * neither libcap nor the set*id wrappers of libc that signal other threads
 * (there are none). The order in caps_become() is the point of the file: the
 * bounding set needs CAP_SETPCAP, groups need CAP_SETGID, the uid CAP_SETUID;
 * no_new_privs needs nothing and comes first, so that it is on even if a
 * later step fails.
 *
 * For a single-threaded process, most often between fork and exec.
 */

#include "core/isolate/caps.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/err.h"

struct sets {
    struct __user_cap_header_struct head;
    struct __user_cap_data_struct data[2];
};

static int sets_get(struct sets *s)
{
    memset(s, 0, sizeof *s);
    s->head.version = _LINUX_CAPABILITY_VERSION_3;
    return (int) syscall(SYS_capget, &s->head, s->data);
}

static int sets_put(struct sets *s)
{
    return (int) syscall(SYS_capset, &s->head, s->data);
}

int caps_no_new_privs(struct err *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set_errno(err, errno, "no_new_privs");
    return 0;
}

/* EINVAL: a number beyond this kernel's last. */
static int bounding_drop(int cap, struct err *err)
{
    if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 1)
        return 0;
    if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
        return err_set_errno(err, errno, "drop capability %d", cap);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, cap, 0, 0);
    return 0;
}

int caps_drop(const int *caps, size_t n, struct err *err)
{
    struct sets s;
    size_t i;

    for (i = 0; i < n; i++)
        if (bounding_drop(caps[i], err) < 0)
            return -1;
    if (sets_get(&s) < 0)
        return err_set_errno(err, errno, "read capabilities");
    for (i = 0; i < n; i++) {
        struct __user_cap_data_struct *d = &s.data[caps[i] / 32];
        uint32_t keep = ~(1U << (caps[i] % 32));
        d->effective &= keep;
        d->permitted &= keep;
        d->inheritable &= keep;
    }
    if (sets_put(&s) < 0)
        return err_set_errno(err, errno, "give up capabilities");
    return 0;
}

static int drop_all(struct err *err)
{
    struct sets s;

    if (sets_get(&s) < 0)
        return err_set_errno(err, errno, "read capabilities");
    memset(s.data, 0, sizeof s.data);
    if (sets_put(&s) < 0)
        return err_set_errno(err, errno, "give up all capabilities");
    return 0;
}

static int become_other(uid_t uid, gid_t gid, struct err *err)
{
    int cap;

    for (cap = 0; cap < 64; cap++)
        if (bounding_drop(cap, err) < 0)
            return -1;
    if (setgroups(0, NULL) < 0)
        return err_set_errno(err, errno, "give up supplementary groups");
    if (syscall(SYS_setresgid, gid, gid, gid) < 0)
        return err_set_errno(err, errno, "become group %u", (unsigned) gid);
    if (syscall(SYS_setresuid, uid, uid, uid) < 0)
        return err_set_errno(err, errno, "become user %u", (unsigned) uid);
    return 0;
}

int caps_become(uid_t uid, gid_t gid, struct err *err)
{
    if (caps_no_new_privs(err) < 0)
        return -1;
    if (!(geteuid() == uid && getuid() == uid && uid != 0) &&
        become_other(uid, gid, err) < 0)
        return -1;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return drop_all(err);
}
