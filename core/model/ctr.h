/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_MODEL_CTR_H
#define CORE_MODEL_CTR_H

/*
 * A container as the dispatcher knows it: a plain record, owned by whoever
 * holds it, with no pointer inside. Field meanings: Arvados API, "containers".
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/model/ctr_states.h"

enum {
    CTR_UUID_SIZE = 28, /* 27 characters and NUL */
    CTR_IMAGE_SIZE = 128,
    CTR_GPU_TARGETS = 8,
};

struct ctr {
    char uuid[CTR_UUID_SIZE];
    enum ctr_state state;
    int64_t priority;              /* 0 = on hold, or stop it */
    char locked_by[CTR_UUID_SIZE]; /* uuid of the locking token, or "" */
    int32_t lock_count;
    int64_t created_us;  /* server time */
    int64_t attempt;     /* number of the last attempt made; 0 = none */
    bool has_exit_code;
    int32_t exit_code;

    /* what it asks for (runtime_constraints, scheduling_parameters, mounts) */
    char image[CTR_IMAGE_SIZE];
    int64_t vcpus;
    int64_t ram;             /* bytes */
    int64_t keep_cache_ram;  /* bytes */
    int64_t keep_cache_disk; /* bytes */
    int64_t tmp_capacity;    /* bytes, sum over mounts of kind tmp */
    bool mounts_known;       /* tmp_capacity is true; lists may leave it out */
    bool api;                /* network and API access wanted */
    bool preemptible;
    bool supervisor;
    int64_t max_run_time_s;  /* 0 = none */
    char gpu_stack[8];       /* "", "cuda", "rocm" */
    int32_t gpu_count;
    int64_t gpu_vram;
    char gpu_driver[16];
    char gpu_targets[CTR_GPU_TARGETS][16];
    int32_t gpu_target_count;

    /* Not "": the record cannot be decoded or served; the text says why. Such
     * a container is cancelled with this text, never retried for ever. */
    char invalid[160];
};

/* Wire name of a state; "?" out of range. */
const char *ctr_state_name(enum ctr_state state);
/* -1 when unknown. */
int ctr_state_of(const char *wire, enum ctr_state *ret);
bool ctr_state_final(enum ctr_state state);
bool ctr_move_allowed(enum ctr_state from, enum ctr_state to);

const char *cr_state_name(enum cr_state state);
int cr_state_of(const char *wire, enum cr_state *ret);

#endif
