/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_CLOUD_H
#define CORE_SIM_CLOUD_H

/*
 * A cloud of the world, and the cloud port on it: instances that boot, fail,
 * die and are destroyed; quota, capacity and rate limits; lists that may lie.
 * It has a meter of its own. Instances that never belonged to the dispatcher
 * may be put beside its own (sim_cloud_add_foreign).
 *
 * By chance two bad lists never follow each other; a scenario that forces
 * them may do so.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/port/cloud.h"
#include "core/sim/world.h"

struct sim_machine;

struct sim_tag {
    char *key;
    char *value;
};

struct sim_vm {
    struct sim_cloud *cloud;
    char id[32];
    char token[32];
    int32_t member;
    char type[64]; /* instance type, as asked for */
    char provider_type[64];
    char placement[64];
    char address[32];
    double price;
    VEC(struct sim_tag) tags;
    bool foreign;       /* not the dispatcher's */
    int64_t created_us; /* it exists, and costs, from here ... */
    int64_t listed_us;  /* ... shows in lists from here ... */
    int64_t running_us; /* ... has an address from here; INT64_MAX: never */
    int64_t failed_us;  /* ... is reported as failed; INT64_MAX: never */
    int64_t stop_us;    /* ... was told to stop; INT64_MAX: not */
    int64_t gone_us;    /* ... is gone; INT64_MAX: not */
    bool lingers;       /* listed as gone for a while after gone_us */
    struct sim_machine *machine;
};

struct sim_type_limit {
    char type[64];
    int64_t max; /* instances that the provider has */
};

struct sim_listed { /* one line of a list */
    struct sim_vm *vm;
    enum cloud_state state;
};

struct sim_cloud {
    struct cloud_port port;
    struct sim *w;
    struct sim_rng rng;
    char name[64];
    bool opened;
    VEC(struct sim_vm *) vms; /* all there ever were */

    /* settings */
    int64_t create_lo_us, create_hi_us; /* latency of a call */
    int64_t list_lo_us, list_hi_us;
    int64_t boot_lo_us, boot_hi_us;
    int64_t stop_lo_us, stop_hi_us;
    int64_t quota; /* instances at most; 0 = no limit */
    VEC(struct sim_type_limit) limits;
    int64_t create_gap_us; /* least time between creates; 0 = no limit */

    /* state */
    unsigned next_id;
    int64_t last_create_us;
    int64_t quota_until_us; /* nothing at all until then */
    int64_t capacity_until_us;
    char capacity_type[64];           /* ... of this type */
    VEC(struct sim_listed) last_list; /* the truth at the last list */
    bool last_bad;

    /* the meter */
    unsigned creates; /* create requests that arrived */
    unsigned made;    /* instances made for the dispatcher */
    unsigned destroys;
};

/* Adds it to the world; the port's backend name is `name`. */
struct sim_cloud *sim_cloud_create(struct sim *w, const char *name);
void sim_cloud_destroy(struct sim_cloud *c);

void sim_cloud_limit_type(struct sim_cloud *c, const char *type, int64_t max);
struct sim_vm *sim_cloud_add_foreign(struct sim_cloud *c, const char *set_id);
/* It dies: halts at once and leaves the lists. */
void sim_vm_die(struct sim_vm *vm);

/* Exists and is not gone. */
bool sim_vm_exists(const struct sim_vm *vm);
/* Was told to stop, died, or failed. */
bool sim_vm_going(const struct sim_vm *vm);
enum cloud_state sim_vm_state(const struct sim_vm *vm);
const char *sim_vm_tag(const struct sim_vm *vm, const char *key);
/* Instances of the dispatcher that exist. */
size_t sim_cloud_count(const struct sim_cloud *c);
/* The meter: seconds and money of the dispatcher's instances so far. */
double sim_cloud_seconds(const struct sim_cloud *c);
double sim_cloud_cost(const struct sim_cloud *c);

#endif
