/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_ROOT_H
#define CORE_RUNNER_ROOT_H

#include <stdbool.h>

struct err;
struct node;
struct stage;

/*
 * The payload's root, put together in the calling process's fresh mount
 * namespace and entered. image: the folder whose content it shows, "/" for
 * the machine's own root. Everything is read-only but what the stage mounts,
 * /tmp, /var/tmp, /dev/shm and the writable shared folders.
 * ERR_UNSUPPORTED: the container wants what cannot be; other classes: this
 * machine is at fault.
 */
int root_enter(const struct node *node, const struct stage *stage,
               const char *image, struct err *err);

#endif
