/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_FDIO_H
#define CORE_BASE_FDIO_H

/*
 * Whole reads and writes of descriptors that block: files, pipes, terminals.
 * Signals do not interrupt them. 0, or -1 with errno.
 */

#include <stddef.h>

struct buf;

/* All n bytes. On failure some of them may have been written. */
int fdio_write_all(int fd, const void *p, size_t n);

/* Append everything up to the end of the file. EFBIG when that is more than
 * the buffer may hold. */
int fdio_read_all(int fd, struct buf *out);

#endif
