/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_GUEST_H
#define CORE_LOCALVM_GUEST_H

/*
 * What becomes the first process of a VM, from its clone to its last day.
 */

#include "core/localvm/groups.h"
#include "core/localvm/vm.h"

struct guest {
    const struct vm *vm;
    const struct vm_run *run;       /* address, port, user, degraded */
    const struct groups *groups;    /* names; limits are not looked at */
    struct status *status;
    int from_parent, to_parent;     /* pipes, see launch.c */
};

/* In the child. Never returns. */
_Noreturn void guest_main(const struct guest *g);

/* --- shared by guest*.c only --------------------------------------------- */

/* Put the VM's root together and enter it (guest_root.c). A remark about what
 * is second best goes into *remark. */
int guest_enter_root(const struct guest *g, struct err *remark,
                     struct err *err);

/* The overlay over the host's /etc without its secrets (guest_etc.c); `layer`
 * is a scratch directory. */
int guest_mount_etc(const struct guest *g, const char *layer,
                    const char *target, struct err *err);
/* Pure: must this name directly below /etc never be shown? */
bool guest_hides_etc(const char *name, mode_t mode);

/* Write sshd's files, node.json and so on below `run_dir`, which must exist
 * (guest_files.c). */
int guest_write_files(const struct guest *g, const char *run_dir,
                      struct err *err);
/* Make or replace a small file, following no link at its end. */
int guest_put(const char *dir, const char *name, mode_t mode,
              const char *text, struct err *err);
/* Pure: the texts of two of them. */
void guest_sshd_config(const struct guest *g, const char *run_dir,
                       struct buf *out);
void guest_node_json(const struct guest *g, struct buf *out);

/* Reap, keep sshd running, obey SIGTERM (guest_init.c). Runs the init command
 * first, unless degraded. */
_Noreturn void guest_init(const struct guest *g, const char *run_dir);

#endif
