/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ARVADOS_CTR_JSON_H
#define CORE_ARVADOS_CTR_JSON_H

/*
 * Container records from their JSON form (Arvados API, "containers"). Pure.
 */

#include <stddef.h>

struct ctr;
struct err;
struct jsn;

/*
 * Fill *ret from an object; absent keys leave zeros. -1/ERR_INVALID only when
 * there is no container to speak of: no object, or no valid uuid. Anything
 * else that cannot be decoded or held is told by ret->invalid, with the
 * remaining fields as far as they are good.
 */
int ctr_parse(const struct jsn *j, struct ctr *ret, struct err *err);

/*
 * The same from text that jsn_parse refuses as a whole (a number beyond all
 * types, nesting without end): what its outermost level says of uuid, state,
 * priority and lock, with `why` in invalid. -1 when that is too broken too.
 */
int ctr_salvage(const char *text, size_t n, const char *why, struct ctr *ret);

/* Call each(arg, text, n) for the elements of the array that is the member
 * `key` of an object, without looking into them. -1: no such shape. */
int ctr_split(const char *text, size_t n, const char *key,
              void (*each)(void *arg, const char *text, size_t n), void *arg);

#endif
