/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_CLOUD_IMPL_H
#define CORE_SIM_CLOUD_IMPL_H

/* Between cloud.c (what exists) and cloud_port.c (calls and replies). */

#include "core/sim/cloud.h"

struct sim_vm *sim_cloud_make(struct sim_cloud *c,
                              const struct cloud_create_req *req,
                              int32_t member);
void sim_vm_stop(struct sim_vm *vm);
void sim_vm_set_tags(struct sim_vm *vm, const struct cloud_tag *tags, size_t n);
unsigned sim_cloud_index(const struct sim_cloud *c);
void sim_cloud_port_init(struct sim_cloud *c);

#endif
