/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_STORE_STATE_DIR_H
#define CORE_STORE_STATE_DIR_H

/* The state directory of a daemon: made when missing, private, locked. */

struct err;

/*
 * Make sure that path is a directory of ours (mode 0700 when it is made here)
 * and take its lock, the file `lock` in it with our process id. Returns the
 * descriptor that holds the lock until it is closed; -1/ERR_CONFLICT with the
 * holder's id when another process has it, ERR_CONFIG when the directory
 * cannot be used.
 */
int state_dir_lock(const char *path, struct err *err);

#endif
