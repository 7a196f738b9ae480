/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_BUF_H
#define CORE_BASE_BUF_H

/*
 * Growable bytes with a mandatory maximum.
 *
 * A buffer never holds more than `max` bytes. An append that would exceed it
 * appends nothing, sets `over`, and returns -1; every later append fails too,
 * so that a caller may append many times and look at `over` once at the end.
 * `data` is always followed by a NUL byte that `len` does not count; data is
 * never NULL after buf_init().
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
    bool over;
};

void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);  /* also for CLEANUP(buf_fini) */
void buf_reset(struct buf *b); /* empty, `over` cleared, memory kept */

int buf_append(struct buf *b, const void *p, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* Room for n more bytes at data + len; the caller then adds to len itself
 * with buf_add(). NULL (and `over`) when it would exceed max. */
char *buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, size_t n);

/* Drop the first n bytes. */
void buf_consume(struct buf *b, size_t n);
void buf_truncate(struct buf *b, size_t len);

/* The bytes, owned by the caller; the buffer is empty afterwards. */
char *buf_take(struct buf *b, size_t *ret_len);

/* Overwrite with zeros, then buf_fini(): for secrets. Memory that a growing
 * buffer leaves behind is overwritten too, up to 64 KiB. */
void buf_wipe(struct buf *b);

#endif
