/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_STATUS_H
#define CORE_APISERVER_STATUS_H

/*
 * container_status: asks the dispatcher why a container waits, on behalf of a
 * user who has no token for its management API. Loop thread.
 */

struct app_cfg;
struct loop;
struct status;

struct status *status_create(struct loop *l, const struct app_cfg *cfg);
void status_destroy(struct status *s); /* NULL is fine */

#endif
