/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_ROUTES_H
#define CORE_APISERVER_ROUTES_H

/*
 * The routes below /arvados/v1/, in one table.
 */

#include <stdbool.h>
#include <stddef.h>

struct route;

/*
 * The route of a method and a path below /arvados/v1/. *ret_id (size bytes)
 * is what stands for {}, *ret_rest what stands for * (borrowed from path).
 * HEAD finds GET's routes, PATCH PUT's. NULL: none; *ret_other then says
 * whether the path exists with another method.
 */
const struct route *routes_find(const char *method, const char *path,
                                char *ret_id, size_t size,
                                const char **ret_rest, bool *ret_other);
/* i-th route; NULL at the end. For the discovery document and tests. */
const struct route *routes_at(size_t i);

#endif
