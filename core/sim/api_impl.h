/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_API_IMPL_H
#define CORE_SIM_API_IMPL_H

/* Between api.c (rules) and api_port.c (requests and replies). */

#include "core/sim/api.h"

/* Commits. -1 = refused, with the class that the port reports. */
int sim_api_lock(struct sim_api *a, struct sim_ctr *c, struct err *err);
int sim_api_unlock(struct sim_api *a, struct sim_ctr *c, struct err *err);
int sim_api_attempt(struct sim_api *a, struct sim_ctr *c, struct err *err);
int sim_api_revoke(struct sim_api *a, struct sim_ctr *c, struct err *err);
int sim_api_update(struct sim_api *a, struct sim_ctr *c,
                   const struct api_update_req *req, struct err *err);

/* A container changed: tell the feed. */
void sim_api_changed(struct sim_api *a, struct sim_ctr *c);
void sim_api_port_init(struct sim_api *a);

#endif
