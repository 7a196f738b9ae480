/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_GROUPS_H
#define CORE_LOCALVM_GROUPS_H

/*
 * The control groups of a VM:
 *
 *     <cgroup_parent>/<set id>/<id>    the type's RAM and pids plus an overhead
 *         sys                          pid 1, sshd, sessions, crunch-run
 *         payload                      the type's RAM, CPU and pids
 *             ns                       what the VM sees as the top: one group
 *                                      per container is made below it
 *
 * The overhead keeps the kernel from having to choose sshd at the memory
 * limit; the CPU quota binds payloads only, so that logins stay quick on a
 * busy VM. `ns` lies below the limited group, so that root inside cannot
 * raise the limits through what it sees.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/isolate/cgroup.h"

struct err;
struct wire_spec;

enum { GROUPS_OVERHEAD = 64 << 20, GROUPS_PIDS_OVERHEAD = 1024 };

struct groups {
    struct cgroup parent;  /* <cgroup_parent> */
    struct cgroup set;     /* <cgroup_parent>/<set id> */
    struct cgroup vm, sys, payload, inner;
    struct cgroup birth;   /* where a cgroup namespace is to be made */
    uint32_t limits;       /* CGROUP_LIMIT_* in force on payload */
    int version;           /* cgroup_version() of the machine */
    bool own_parent;       /* <cgroup_parent> is the default one */
};

/* Names only. */
int groups_name(const struct wire_spec *spec, const char *id,
                struct groups *ret, struct err *err);

/* Make them and set the limits; what exists is kept. Where a controller is
 * refused, *why says so and the rest goes on. */
int groups_make(const struct wire_spec *spec, const char *id,
                struct groups *ret, struct err *why, struct err *err);

/*
 * Put a fresh process into the VM's groups, in two steps, between which it
 * unshares its cgroup namespace: the root of that is the group it is in. On
 * v2 `payload` can be made only after the second one (a group with processes
 * cannot pass controllers on); groups_settle() then also sets the limits.
 */
int groups_enter(const struct groups *g, pid_t pid, struct err *err);
int groups_settle(const struct wire_spec *spec, struct groups *g, pid_t pid,
                  struct err *why, struct err *err);

/* Remove them, and the set's and the default parent when they are empty. */
int groups_remove(const struct groups *g, int timeout_ms, struct err *err);

#endif
