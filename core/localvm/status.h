/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_STATUS_H
#define CORE_LOCALVM_STATUS_H

/*
 * How far a VM is: told by its first process, read by everybody.
 *
 * A small file in the VM's state directory, mapped by the first process
 * before it leaves the host's root: it needs no descriptor and no path
 * afterwards, and what it said last outlives it.
 */

#include "core/base/err.h"

enum status_phase {
    STATUS_NEW,     /* made, not yet let go: dies with the call that made it */
    STATUS_BOOTING, /* let go */
    STATUS_RUNNING, /* sshd accepts */
    STATUS_FAILED   /* gave up; see class and text */
};

struct status {
    _Atomic int phase;
    int class;      /* enum err_class, when failed */
    char text[500]; /* failed: why; else a remark, or "" */
};

/* Make the file anew, phase NEW, and map it shared. */
struct status *status_create(const char *path, struct err *err);
void status_unmap(struct status *s); /* NULL is fine */

/* A copy of what the file says now; a missing or short one is NEW. */
void status_read(const char *path, struct status *ret);

/* For the first process: the remark or reason, then the phase. */
void status_tell(struct status *s, enum status_phase phase,
                 const struct err *why);

#endif
