/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ISOLATE_NS_H
#define CORE_ISOLATE_NS_H

/*
 * Starting a process in namespaces of its own (clone(2), namespaces(7)).
 *
 * Whether it may be done is decided by trying, never by the uid: containers,
 * seccomp filters and sysctls refuse root too.
 */

#include <stdint.h>
#include <sys/types.h>

struct err;

/*
 * fork() with flags: any of CLONE_NEWPID, NEWNS, NEWUTS, NEWIPC, NEWNET,
 * NEWCGROUP, NEWUSER (others are not for this function). Returns 0 in the
 * child, the pid in the parent, -1 on failure. *ret_pidfd (NULL allowed) is
 * filled in the parent only, close-on-exec.
 *
 * cgroup_fd >= 0 starts the child inside that v2 group (cgroup_open_v2);
 * -1 = none. Where the kernel or a filter has no clone3(), clone() is used;
 * a cgroup_fd is then ERR_UNSUPPORTED.
 *
 * The caller must be single-threaded or go on in the child with
 * async-signal-safe calls only, as after fork(). No atfork handlers run.
 */
pid_t ns_fork(uint64_t flags, int cgroup_fd, int *ret_pidfd,
              struct err *err);

/* Can a child be made with these namespaces and, if CLONE_NEWNS is among
 * them, make its mounts private, mount a tmpfs over /tmp (seen by nobody
 * else) and a proc (with CLONE_NEWPID)? Tries exactly that; 0 = yes. */
int ns_probe(uint64_t flags, struct err *err);

/* Close every descriptor from `from` up but those listed (ascending). */
void ns_close_fds(int from, const int *keep, int n_keep);

/* The host name of the uts namespace. */
int ns_set_hostname(const char *name, struct err *err);

#endif
