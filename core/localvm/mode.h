/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_MODE_H
#define CORE_LOCALVM_MODE_H

/*
 * Can VMs be made here? Found out by doing in a child what a VM's first
 * process does: new pid, mount, uts and ipc namespaces, private mounts, a
 * /dev with nodes, proc.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct mode {
    bool degraded;
    char reason[256]; /* "" unless degraded */
};

/* The namespaces of a VM: CLONE_* flags. */
uint64_t mode_flags(void);

void mode_find(struct mode *ret);

/*
 * Whom a VM's sshd lets in: root, or in degraded mode the user that this runs
 * as. -1 (ERR_CONFIG) where that one has no name or no shell: sshd runs every
 * command with the account's login shell.
 */
int mode_user(const struct mode *mode, char *ret, size_t size,
              struct err *err);

#endif
