/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ISOLATE_CGROUP_FS_H
#define CORE_ISOLATE_CGROUP_FS_H

/*
 * What the cgroup*.c files share; nobody else includes this.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/isolate/cgroup.h"

enum {
    CGROUP_FILE_SIZE = CGROUP_DIR_SIZE + 32,
    CGROUP_DEPTH = 16,      /* of groups below groups, at most */
    CGROUP_PROCS_MAX = 1 << 20
};

/* "DIR/NAME" of the group in that tree; false = it is not there. */
bool cgroup_file(const struct cgroup *cg, enum cgroup_tree tree,
                 const char *name, char out[CGROUP_FILE_SIZE]);

/* Is this the first tree with its directory (v1 trees may share one, v2 trees
 * all do)? False for an absent one. */
bool cgroup_is_first(const struct cgroup *cg, enum cgroup_tree tree);

/* Does a blank-separated list hold the word? */
bool cgroup_has_word(const char *list, const char *word);

/* Call fn for the directory and every one below it, children first. What
 * vanishes meanwhile is no error. */
void cgroup_walk(const char *dir, void (*fn)(const char *dir, void *arg),
                 void *arg);

/* The tree to read members from; -1 = the group is in none. */
int cgroup_procs_tree(const struct cgroup *cg);

#endif
