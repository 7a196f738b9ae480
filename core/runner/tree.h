/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_TREE_H
#define CORE_RUNNER_TREE_H

#include <sys/types.h>

struct err;

/*
 * Folders that a payload may have filled.
 */

/* Remove the entry `name` of the folder with everything below it, however
 * deep, without following links or crossing into other file systems. Absent
 * is fine. */
int tree_remove(int dir_fd, const char *name, struct err *err);

/* Make the folders above the last part of the relative path, 0755, owned by
 * uid and gid, below a folder that nobody else has written to yet. */
int tree_make_parents(int dir_fd, const char *path, uid_t uid, gid_t gid,
                      struct err *err);

#endif
