/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_ELFFILE_H
#define CORE_PLUGIN_ELFFILE_H

/*
 * Looking at a driver file without running any of it: what it exports, and
 * the frozen prefix of its descriptor. Reads with pread, trusts no number in
 * the file, touches at most ELFFILE_MAX bytes of it.
 */

#include <stddef.h>

struct err;

enum { ELFFILE_MAX = 16 << 20 };

/*
 * The file open at fd must be a shared object of this machine's word size and
 * byte order that exports the data symbol `name` and no other symbol (those
 * that every linker adds excepted). The first n bytes of it are put into
 * prefix; *ret_size becomes the symbol's size.
 * -1/ERR_CONFIG: something is wrong; the text is about the file but does not
 * name it.
 */
int elffile_read_symbol(int fd, const char *name, void *prefix, size_t n,
                        size_t *ret_size, struct err *err);

#endif
