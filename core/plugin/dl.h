/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_DL_H
#define CORE_PLUGIN_DL_H

/*
 * Opening shared objects. The only file behind this header includes ltdl.h.
 *
 * A module is bound at once, with local scope, and stays for the life of the
 * process. Its constructors run here: a program loads while it starts, before
 * it works. Any thread.
 */

#include <stddef.h>

struct err;

/*
 * Open an absolute path that ends in `.so`; a path that is open already gives
 * the same module. NULL/ERR_CONFIG with the linker's own words on failure.
 */
void *dl_open(const char *path, struct err *err);

/* Address and size (0 = not known) of a symbol that the module itself
 * defines. NULL/ERR_CONFIG when there is none. */
const void *dl_symbol(void *module, const char *name, size_t *ret_size,
                      struct err *err);

#endif
