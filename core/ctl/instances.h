/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_INSTANCES_H
#define CORE_CTL_INSTANCES_H

#include <stddef.h>

struct buf;
struct jsn;

/* The management API's list of instances as a table. */
void instances_print(const struct jsn *list, size_t width, struct buf *out);

#endif
