/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_MODEL_ITYPES_H
#define CORE_MODEL_ITYPES_H

/*
 * Instance types: the machines that may be asked for, with what they hold
 * and cost. Built by core/conf from the section InstanceTypes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ITYPE_NAME_SIZE = 64, ITYPES_MAX = 1024, ITYPE_TARGETS = 8 };

struct itype {
    char name[ITYPE_NAME_SIZE];     /* key in the configuration */
    char provider_type[ITYPE_NAME_SIZE];
    int64_t vcpus;
    int64_t ram;              /* bytes */
    int64_t included_scratch; /* bytes */
    int64_t added_scratch;    /* bytes */
    double price;             /* per hour */
    bool preemptible;
    char gpu_stack[8];
    char gpu_driver[16];
    char gpu_target[16];
    int32_t gpu_count;
    int64_t gpu_vram;         /* bytes, per device */
    /* Backends that offer it; "" = every backend. */
    char backend[ITYPE_NAME_SIZE];
};

struct itypes {
    struct itype *v; /* ordered: price, then RAM/VCPUs/scratch down, name */
    size_t n;
};

/* Order v as described; call once after filling. */
void itypes_sort(struct itypes *its);
const struct itype *itypes_find(const struct itypes *its, const char *name);
void itypes_fini(struct itypes *its);
int64_t itype_scratch(const struct itype *it); /* included + added */

#endif
