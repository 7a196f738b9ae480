/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_MODEL_NEED_H
#define CORE_MODEL_NEED_H

/*
 * Resources: what a container needs, what an instance has left. Pure
 * arithmetic; sums saturate, never wrap.
 */

#include <stdbool.h>
#include <stdint.h>

struct ctr;
struct itype;

struct need {
    int64_t vcpus;
    int64_t ram;     /* bytes */
    int64_t scratch; /* bytes */
    int64_t gpus;
    int64_t vram;    /* bytes per device */
    /* How many needs of 0 VCPUs were subtracted: together they take one. */
    int64_t shared;
};

struct need_policy {
    int64_t reserve_extra_ram;       /* bytes added to each container */
    int64_t keep_buffers_per_vcpu;   /* 0 = no local keepstore */
    bool ram_discount;               /* the peer's x 100/95 */
};

/* The needs of a container under a policy (arvados-dispatcher notes, 6). */
void need_of(const struct ctr *c, const struct need_policy *policy,
             struct need *ret);
/* Everything an empty instance of this type offers. */
void need_capacity(const struct itype *it, struct need *ret);
/* A need of 0 VCPUs also wants one that is free or already shared by others
 * of its kind. vram is per device: compared, never summed. */
bool need_fits(const struct need *free, const struct need *want);
/* Take from, give back to; give back only what was taken. */
void need_sub(struct need *free, const struct need *want);
void need_add(struct need *free, const struct need *want);

/* Name of the first resource of `want` that `have` lacks, with both figures,
 * for people: "VCPUs: 64 wanted, 8 is the most". Into out, returned. */
const char *need_lack(const struct need *have, const struct need *want,
                      char *out, unsigned size);

#endif
