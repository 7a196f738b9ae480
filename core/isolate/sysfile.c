/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sysfile.c: reading and writing the kernel's small text files.
 *
 * Files of /proc and of the cgroup trees have no size to ask for, must be
 * written with a single write(2), and answer with an errno that carries
 * meaning (EBUSY, EOPNOTSUPP, ESRCH). So these functions leave errno to the
 * caller instead of filling a struct err: a missing file is most often a
 * normal answer here. Used by the files of core/isolate and, for the same
 * kind of files, by programs. No allocation but in sysfile_read_all().
 */

#include "core/isolate/sysfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/mem.h"

static ssize_t read_full(int fd, char *buf, size_t size)
{
    size_t len = 0;

    while (len < size) {
        ssize_t n = read(fd, buf + len, size - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t) n;
    }
    return (ssize_t) len;
}

ssize_t sysfile_read(const char *path, char *buf, size_t size)
{
    CLEANUP(mem_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read_full(fd, buf, size - 1);

    buf[n < 0 ? 0 : n] = '\0';
    return n;
}

char *sysfile_read_all(const char *path, size_t max, size_t *ret_len)
{
    CLEANUP(mem_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    CLEANUP(buf_fini) struct buf b;
    char chunk[4096];
    ssize_t n;

    buf_init(&b, max);
    if (fd < 0)
        return NULL;
    while ((n = read_full(fd, chunk, sizeof chunk)) > 0)
        if (buf_append(&b, chunk, (size_t) n) < 0)
            return NULL;
    return n < 0 ? NULL : buf_take(&b, ret_len);
}

int sysfile_write(const char *path, const char *text)
{
    CLEANUP(mem_close) int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t len = strlen(text);

    if (fd < 0)
        return -1;
    return write(fd, text, len) == (ssize_t) len ? 0 : -1;
}

int64_t sysfile_number(const char *text, const char *key)
{
    size_t len = key ? strlen(key) : 0;
    char *end;
    long long v;

    while (key && !(strncmp(text, key, len) == 0 && text[len] == ' ')) {
        text = strchr(text, '\n');
        if (!text)
            return -1;
        text++;
    }
    if (key)
        text += len + 1;
    errno = 0;
    v = strtoll(text, &end, 10);
    return end == text || errno || v < 0 ? -1 : (int64_t) v;
}
