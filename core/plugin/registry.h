/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_REGISTRY_H
#define CORE_PLUGIN_REGISTRY_H

/*
 * Driver files: found by name, checked, opened once, kept for ever.
 *
 * `NAME` is the file `<dir>/NAME.so`. Before any of it runs: the file and the
 * folders above it must belong to root or to us and be writable by nobody
 * else (trust.h), the ELF file must export `cdc_driver_entry` and nothing more, and the
 * descriptor in it must suit this host. Then a child process opens it
 * (preflight.h), and only if that went well do we.
 *
 * Load everything on the main thread, before other threads exist: libltdl has
 * one global state. A driver is never unloaded, its file never read again.
 */

#include <stdbool.h>
#include <stddef.h>

struct cdc_driver;
struct err;
struct logger;
struct registry;

struct registry_options {
    struct logger *log;       /* what drivers log outside of any call; it must
                               * outlive the registry; may be NULL */
    const char *dir;          /* absolute; NULL = the installed one */
    bool trust_build_tree;    /* tests only: no check of owner and mode, of
                               * drivers and of the programs they start */
    int preflight_ms;         /* time limit of the child; 0 = 10 s */
};

struct driver {
    const char *name;         /* the stem; equals descriptor->name */
    const char *path;         /* absolute, symbolic links resolved */
    /* Our own copy of the descriptor: members that an older driver does not
     * have are zero, those that we do not know are cut off. */
    const struct cdc_driver *descriptor;
};

struct registry *registry_create(const struct registry_options *options);
/* The list is freed; drivers stay mapped. NULL is fine. */
void registry_destroy(struct registry *r);

/*
 * Load a driver, or return the one that is loaded. NULL on failure; the text
 * is one line that names the file and what is wrong with it. ERR_NOT_FOUND:
 * no such file; ERR_CONFIG: everything else that the operator can mend.
 * Borrowed until registry_destroy.
 */
const struct driver *registry_load(struct registry *r, const char *name,
                                   struct err *err);
/* The same by path, which must end in `.so`. */
const struct driver *registry_load_file(struct registry *r, const char *path,
                                        struct err *err);

#endif
