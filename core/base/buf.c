/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growable bytes with a mandatory maximum.
 *
 * Whatever a peer, a file or a program sends is collected here. The maximum is
 * chosen by the code that owns the buffer, so memory use is bounded before the
 * first byte arrives; a system without memory is reported the same way as a
 * full buffer, by `over`, not by the end of the process.
 *
 * An empty buffer owns no memory: `data` then points to a shared NUL byte that
 * is never written to (cap is 0). Otherwise cap counts the NUL byte too.
 *
 * Not synchronised: a buffer belongs to one thread at a time.
 */
#include "core/base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

enum { FIRST_CAP = 64, WIPE_CAP = 64 << 10 };

static char nothing[1];

static void terminate(struct buf *b)
{
    if (b->cap)
        b->data[b->len] = '\0';
}

void buf_init(struct buf *b, size_t max)
{
    /* Room for the NUL byte must be countable. */
    assert(max < SIZE_MAX / 2);
    *b = (struct buf){.data = nothing, .max = max};
}

void buf_fini(struct buf *b)
{
    if (b->cap)
        free(b->data);
    buf_init(b, b->max);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->over = false;
    terminate(b);
}

/* Into new memory; what is left behind is overwritten: it may be a secret on
 * its way to buf_wipe(). Large buffers hold none and are not worth it. */
static char *moved(struct buf *b, size_t cap)
{
    char *data = malloc(cap);

    if (!data)
        return NULL;
    memcpy(data, b->data, b->len + 1);
    explicit_bzero(b->data, b->cap);
    free(b->data);
    return data;
}

/* Make cap hold `want` bytes and the NUL; want <= max. */
static int grow(struct buf *b, size_t want)
{
    size_t cap = b->cap ? b->cap : FIRST_CAP;

    while (cap < want + 1)
        cap *= 2;
    if (cap > b->max + 1)
        cap = b->max + 1;
    char *data = b->cap && b->cap <= WIPE_CAP
                     ? moved(b, cap)
                     : realloc(b->cap ? b->data : NULL, cap);
    if (!data) {
        b->over = true;
        return -1;
    }
    b->data = data;
    b->cap = cap;
    return 0;
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (b->over || n > b->max - b->len) {
        b->over = true;
        return NULL;
    }
    if (b->len + n + 1 > b->cap) {
        if (grow(b, b->len + n) < 0)
            return NULL;
        terminate(b);
    }
    return b->data + b->len;
}

void buf_add(struct buf *b, size_t n)
{
    assert(n == 0 || b->len + n < b->cap);
    b->len += n;
    terminate(b);
}

int buf_append(struct buf *b, const void *p, size_t n)
{
    char *room = buf_reserve(b, n);

    if (!room)
        return -1;
    if (n)
        memcpy(room, p, n);
    buf_add(b, n);
    return 0;
}

int buf_puts(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0) {
        b->over = true;
        return -1;
    }
    char *room = buf_reserve(b, (size_t) n);
    if (!room)
        return -1;
    vsnprintf(room, (size_t) n + 1, fmt, ap);
    buf_add(b, (size_t) n);
    return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int rc = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return rc;
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->len);
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    terminate(b);
}

void buf_truncate(struct buf *b, size_t len)
{
    assert(len <= b->len);
    b->len = len;
    terminate(b);
}

char *buf_take(struct buf *b, size_t *ret_len)
{
    char *data = b->cap ? b->data : mem_strdup("");

    if (ret_len)
        *ret_len = b->len;
    buf_init(b, b->max);
    return data;
}

void buf_wipe(struct buf *b)
{
    if (b->cap)
        explicit_bzero(b->data, b->cap);
    buf_fini(b);
}
