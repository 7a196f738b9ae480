/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_STATE_H
#define CORE_LOCALVM_STATE_H

/*
 * The state directory: one directory per VM, a lock file, and the tokens of
 * VMs that were destroyed.
 *
 *     DIR/lvm-.../   a VM (vm.h)
 *     DIR/.new-*     being made: not yet an intent
 *     DIR/.dead-*    being removed
 *     DIR/lock       bytes of it are locked, nothing is in it
 *     DIR/ended      "token member id" a line; ended.1 is older
 *
 * A lock is one byte of the lock file, chosen by a hash of its name: no files
 * to clean up, and the kernel gives it back when a process dies. Two names
 * may share a byte; that costs waiting, nothing else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/localvm/wire.h"

struct err;

enum { STATE_PATH_SIZE = 768 };

struct state {
    char dir[STATE_PATH_SIZE];
};

/* Make the directory (0700) when missing; refuse one that is not ours or
 * that others can write to (ERR_CONFIG). */
int state_open(const char *dir, struct state *ret, struct err *err);

/* Hold the lock `name` until the returned descriptor is closed. wait = false:
 * ERR_CONFLICT when somebody has it. */
int state_lock(const struct state *s, const char *name, bool wait,
               int *ret_fd, struct err *err);

/* Replace or make a file, durable when it returns. dir is absolute. */
int state_write(const char *dir, const char *file, const char *text,
                struct err *err);
int state_sync(const char *dir, struct err *err);

/* Call fn for each VM's id, in the order of names. A non-zero result of fn
 * ends it and is returned. */
int state_each(const struct state *s, int (*fn)(void *arg, const char *id),
               void *arg, struct err *err);

/* Remove what killed calls left: .dead-* now, .new-* when old enough. */
void state_sweep(const struct state *s);

/* Was a VM with this token destroyed? Its id into ret_id. */
bool state_ended(const struct state *s, const char *token, int64_t member,
                 char ret_id[WIRE_ID_SIZE]);
int state_note_ended(const struct state *s, const char *token,
                     int64_t member, const char *id, struct err *err);

/* Remove a directory with all below it, on its own file system, following no
 * link. What vanishes meanwhile is fine. */
int state_remove_tree(const char *path, struct err *err);

#endif
