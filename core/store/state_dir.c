/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making and locking a state directory. The lock is flock(2) on an open file:
 * it goes with the process, however it ends, and children do not inherit the
 * descriptor. The process id in the file is for people only.
 */
#include "core/store/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"

static int check_dir(const char *path, struct err *err)
{
    struct stat st;

    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        err_set_errno(err, errno, "state directory %s", path);
        goto refused;
    }
    if (stat(path, &st) < 0) {
        err_set_errno(err, errno, "state directory %s", path);
        goto refused;
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_CONFIG, "%s is not a directory", path);
    if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & S_IWOTH)
        return err_set(err, ERR_CONFIG,
                       "state directory %s must belong to us and be writable "
                       "by nobody else", path);
    return 0;
refused:
    if (err)
        err->class = ERR_CONFIG;
    return -1;
}

/* Who holds it, for the message; "?" when the file does not say. */
static const char *holder(int fd, char *out, size_t size)
{
    ssize_t n = pread(fd, out, size - 1, 0);

    if (n <= 0)
        return "?";
    out[n] = 0;
    out[strcspn(out, "\n")] = 0;
    return out;
}

int state_dir_lock(const char *path, struct err *err)
{
    char text[32];
    CLEANUP(mem_free) char *file = mem_printf("%s/lock", path);
    int fd, n;

    if (check_dir(path, err) < 0)
        return -1;
    fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        err_set_errno(err, errno, "%s", file);
        if (err)
            err->class = ERR_CONFIG;
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        err_set(err, ERR_CONFLICT,
                "state directory %s is in use by process %s", path,
                holder(fd, text, sizeof text));
        close(fd);
        return -1;
    }
    n = snprintf(text, sizeof text, "%d\n", (int) getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t) n, 0) != n) {
        err_set_errno(err, errno, "%s", file);
        close(fd);
        return -1;
    }
    return fd;
}
