/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets: tokens and keys in files, and random bytes.
 *
 * A secret lies in a file that only its owner can read; that is checked on the
 * open descriptor, so the file that was checked is the file that is read. A
 * FIFO or a device at that path must not hang the program: it is opened
 * without blocking and refused by its kind. A link is followed, since secret
 * stores mount their files as links; it is the target that must be tight.
 *
 * Any thread.
 */
#include "core/base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"

static int check_file(const char *path, const struct stat *st, size_t max,
                      struct err *err)
{
    mode_t loose = st->st_mode & (S_IRWXG | S_IRWXO);

    if (!S_ISREG(st->st_mode))
        return err_set(err, ERR_CONFIG, "%s is not a regular file", path);
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return err_set(err, ERR_CONFIG,
                       "%s belongs to another user (uid %u): chown it to root "
                       "or to the user that reads it",
                       path, (unsigned) st->st_uid);
    if (st->st_uid == 0 && st->st_gid == 0)
        loose &= ~(mode_t) S_IRGRP;
    if (loose)
        return err_set(err, ERR_CONFIG,
                       "%s holds a secret and is open to others (mode %04o): "
                       "chmod 600 it",
                       path, (unsigned) (st->st_mode & 07777));
    if (st->st_size < 0 || (uintmax_t) st->st_size > max)
        return err_set(err, ERR_TOO_LARGE, "%s is larger than %zu bytes",
                       path, max);
    return 0;
}

/* Exactly size bytes into s, or up to an earlier end of the file. */
static int read_all(int fd, char *s, size_t size, size_t *ret_n)
{
    size_t n = 0;

    while (n < size) {
        ssize_t got = read(fd, s + n, size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t) got;
    }
    *ret_n = n;
    return 0;
}

char *secret_read(const char *path, size_t max, struct err *err)
{
    CLEANUP(mem_close)
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    CLEANUP(secret_cleanup) char *s = NULL;
    struct stat st;
    size_t n = 0;

    if (fd < 0 || fstat(fd, &st) < 0) {
        err_set_errno(err, errno, "%s", path);
        return NULL;
    }
    if (check_file(path, &st, max, err) < 0)
        return NULL;
    s = mem_zalloc((size_t) st.st_size + 1);
    if (read_all(fd, s, (size_t) st.st_size, &n) < 0) {
        err_set_errno(err, errno, "%s", path);
        return NULL;
    }
    if (memchr(s, '\0', n)) {
        err_set(err, ERR_CONFIG, "%s contains a NUL byte", path);
        return NULL;
    }
    if (n > 0 && s[n - 1] == '\n')
        s[n - 1] = '\0';
    char *ret = s;
    s = NULL;
    return ret;
}

void secret_free(char *s)
{
    if (!s)
        return;
    explicit_bzero(s, strlen(s));
    free(s);
}

void secret_cleanup(char **s)
{
    secret_free(*s);
}

bool secret_equal(const char *a, const char *b)
{
    size_t len;
    volatile unsigned char diff = 0;

    if (!a || !b)
        return false;
    /* The length of a token is no secret. */
    len = strlen(a);
    if (len != strlen(b))
        return false;
    for (size_t i = 0; i < len; i++)
        diff = (unsigned char) (diff | (a[i] ^ b[i]));
    return diff == 0;
}

void secret_random(void *p, size_t n)
{
    static const char line[] = "the kernel gives no random bytes\n";
    unsigned char *out = p;

    while (n > 0) {
        ssize_t got = getrandom(out, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            ssize_t ignored = write(STDERR_FILENO, line, sizeof line - 1);
            (void) ignored;
            _exit(MEM_EXIT);
        }
        out += got;
        n -= (size_t) got;
    }
}
