/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ISOLATE_SYSFILE_H
#define CORE_ISOLATE_SYSFILE_H

/*
 * The small text files of /proc and the cgroup trees: read whole, written in
 * one write(2). errno tells why not; the callers decide whether that matters.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read at most size - 1 bytes and terminate them. The length, or -1 (the
 * buffer is then ""). A longer file is cut. */
ssize_t sysfile_read(const char *path, char *buf, size_t size);

/* The whole file in fresh memory, at most max bytes, terminated; *ret_len
 * (NULL allowed) without the NUL. NULL = could not. */
char *sysfile_read_all(const char *path, size_t max, size_t *ret_len);

/* An existing file only. 0 or -1. */
int sysfile_write(const char *path, const char *text);

/* The number after `key` and a blank at the start of a line ("usage_usec 12"),
 * or, with key NULL, the number at the start. -1 = absent or not a number. */
int64_t sysfile_number(const char *text, const char *key);

#endif
