/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_DESCRIPTOR_H
#define CORE_PLUGIN_DESCRIPTOR_H

/*
 * Judging a driver's descriptor. Pure.
 */

#include <stddef.h>
#include <stdint.h>

struct cdc_driver;
struct err;

/* The frozen prefix of struct cdc_driver, the same in every major version. */
struct descriptor_prefix {
    uint32_t magic;
    uint32_t kind;
    uint32_t struct_size;
    uint32_t abi_major;
    uint32_t minor_built;
    uint32_t minor_needed;
    uint32_t layout;
};

/* What a host offers; descriptor_host() is this one's. */
struct descriptor_host {
    uint32_t abi_major;
    uint32_t abi_minor;
};

struct descriptor_host descriptor_host(void);

/*
 * Can a host work with a driver that has this prefix? object_size is the size
 * of the symbol, 0 = not known. -1/ERR_CONFIG: the text has both sides'
 * numbers.
 */
int descriptor_check_prefix(const struct descriptor_prefix *prefix,
                            size_t object_size, struct descriptor_host host,
                            struct err *err);

/*
 * After descriptor_check_prefix: copy the smaller of both sizes into *ret,
 * the rest becomes zero, and check what is in it: name (must equal stem),
 * texts, thread model, callbacks that must be there, capabilities without a
 * callback.
 */
int descriptor_copy(const void *descriptor, const char *stem,
                    struct cdc_driver *ret, struct err *err);

#endif
