/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_MEM_H
#define CORE_BASE_MEM_H

/*
 * Memory and the cleanup attribute.
 *
 * Small allocations never fail from the caller's point of view: when the
 * system has no memory left, one line is written to standard error and the
 * process ends with exit code MEM_EXIT (70). That is a stop, not a crash: each
 * program of this suite is built to be killed at any instruction and to
 * continue from its durable state (doc/decisions/0001-out-of-memory.md).
 * Sizes that come from outside (bodies, files, lists) never go through these
 * functions directly; they go through struct buf, which has a maximum and
 * returns an error.
 */

#include <stddef.h>

enum { MEM_EXIT = 70 };

/* Zero-filled memory of n bytes (n == 0 counts as 1). Free with free(). */
void *mem_zalloc(size_t n) __attribute__((malloc, returns_nonnull));

/* Zero-filled array; a product that overflows ends the process likewise. */
void *mem_calloc(size_t n, size_t size)
    __attribute__((malloc, returns_nonnull));

/* As realloc(), never NULL; new bytes are not initialised. */
void *mem_realloc(void *p, size_t n, size_t size)
    __attribute__((returns_nonnull));

/* Copies; mem_strdup(NULL) is NULL. */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n)
    __attribute__((malloc, returns_nonnull));
void *mem_dup(const void *p, size_t n)
    __attribute__((malloc, returns_nonnull));

/* printf into fresh memory. For short texts of bounded size only. */
char *mem_printf(const char *fmt, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/* Replace *slot by a copy of s (or NULL) and free what was there. */
void mem_set_str(char **slot, const char *s);

/* Locals: CLEANUP(mem_free) char *text = NULL; CLEANUP(mem_close) int fd = -1; */
/* unused: clang does not count the cleanup as a use. */
#define CLEANUP(fn) __attribute__((cleanup(fn), unused))
void mem_free(void *pp);   /* takes the address of a pointer */
void mem_close(int *fd);   /* closes when >= 0; keeps errno */

#define MEM_NEW(T) ((T *) mem_zalloc(sizeof(T)))
#define MEM_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The struct of type T that contains the member at p. */
#define MEM_CONTAINER(p, T, member) \
    ((T *) (void *) ((char *) (p) - offsetof(T, member)))

#endif
