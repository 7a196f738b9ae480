/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that does not fail, and helpers for the cleanup attribute.
 *
 * A program that checks each small malloc grows an error branch per line that
 * no test ever takes. Here the branch exists once: when the system gives
 * nothing, one line goes to standard error by write(2), which allocates
 * nothing, and the process ends by _exit with MEM_EXIT. No atexit handler
 * runs, since it could want memory too.
 *
 * Called from everywhere, on any thread. Must never be given a size that a
 * peer chose: see buf.c for those.
 */
#include "core/base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void give_up(void)
{
    static const char line[] = "out of memory\n";

    /* Nothing can be done about a failure here. */
    ssize_t n = write(STDERR_FILENO, line, sizeof line - 1);
    (void) n;
    _exit(MEM_EXIT);
}

void *mem_zalloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);

    if (!p)
        give_up();
    return p;
}

void *mem_calloc(size_t n, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(n, size, &total))
        give_up();
    return mem_zalloc(total);
}

void *mem_realloc(void *p, size_t n, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(n, size, &total))
        give_up();
    p = realloc(p, total ? total : 1);
    if (!p)
        give_up();
    return p;
}

char *mem_strdup(const char *s)
{
    return s ? mem_dup(s, strlen(s) + 1) : NULL;
}

char *mem_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = mem_zalloc(len + 1);

    memcpy(copy, s, len);
    return copy;
}

void *mem_dup(const void *p, size_t n)
{
    void *copy = mem_zalloc(n);

    if (n)
        memcpy(copy, p, n);
    return copy;
}

char *mem_printf(const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        give_up();
    va_end(ap);
    return text;
}

void mem_set_str(char **slot, const char *s)
{
    /* Copied first: s may be a part of what *slot holds. */
    char *copy = mem_strdup(s);

    free(*slot);
    *slot = copy;
}

void mem_free(void *pp)
{
    void *p;

    /* memcpy, since a char ** must not be read through a void **. */
    memcpy(&p, pp, sizeof p);
    free(p);
}

void mem_close(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    errno = saved;
}
