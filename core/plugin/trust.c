/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks from a file up to the root, once along the path as it is spelled
 * (somebody could turn a symbolic link in a folder that he may write) and
 * once along the path that it resolves to.
 *
 * The sticky bit does not help: /tmp counts as a folder that others can
 * write, because they may make a name there before we do.
 *
 * The one switch is process-wide, because a driver that starts a program from
 * the build tree is itself in the build tree, and no caller in between should
 * have to hand it on.
 */

#include "core/plugin/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"

static bool build_tree;

void trust_set_build_tree(bool on)
{
    build_tree = on;
}

static int check_one(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st))
        return err_set_errno(err, errno, "%s", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(err, ERR_CONFIG,
                       "%s is owned by uid %u, neither root nor us", path,
                       (unsigned)st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, ERR_CONFIG,
                       "%s can be written by others (mode %04o)", path,
                       (unsigned)st.st_mode & 07777);
    return 0;
}

static int check_chain(const char *path, struct err *err)
{
    CLEANUP(mem_free) char *part = mem_strdup(path);
    char *slash;

    for (;;) {
        if (check_one(part, err))
            return -1;
        if (strcmp(part, "/") == 0)
            return 0;
        slash = strrchr(part, '/');
        slash[slash == part] = '\0'; /* "/x" becomes "/" */
    }
}

int trust_check(const char *path, struct err *err)
{
    CLEANUP(mem_free) char *resolved = NULL;

    if (build_tree)
        return 0;
    if (path[0] != '/')
        return err_set(err, ERR_CONFIG, "%s is no absolute path", path);
    if (!(resolved = realpath(path, NULL)))
        return err_set_errno(err, errno, "%s", path);
    return check_chain(path, err) || check_chain(resolved, err) ? -1 : 0;
}
