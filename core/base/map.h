/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_MAP_H
#define CORE_BASE_MAP_H

/*
 * A map from strings to pointers, sorted by key.
 *
 * A balanced tree: O(log n), no hashing (nothing for a hostile peer to
 * collide), and iteration in byte order of the keys, the same in every run:
 * core/dispatch must never depend on addresses. Keys are copied. Values are
 * borrowed unless a destructor is given at creation.
 */

#include <stdbool.h>
#include <stddef.h>

struct map;

/* free_value may be NULL; it is called for a value that is replaced,
 * deleted, or left at map_destroy(). */
struct map *map_create(void (*free_value)(void *value));
void map_destroy(struct map *m); /* NULL is fine */

void *map_get(const struct map *m, const char *key); /* NULL = absent */
/* value must not be NULL. */
void map_set(struct map *m, const char *key, void *value);
bool map_delete(struct map *m, const char *key); /* false = was absent */
/* Remove without calling free_value; NULL = absent. */
void *map_take(struct map *m, const char *key);
size_t map_count(const struct map *m);
void map_clear(struct map *m);

/*
 * Iterate in key order:
 *
 *     const char *key = NULL;
 *     void *value;
 *     while ((value = map_next(m, &key)))
 *         ...
 *
 * *key NULL starts; afterwards it points to the current entry's key. Deleting
 * the current entry during iteration is NOT allowed (copy the key first and
 * restart from it: map_next finds the first key greater than *key, whether or
 * not *key is still in the map).
 */
void *map_next(const struct map *m, const char **key);

#endif
