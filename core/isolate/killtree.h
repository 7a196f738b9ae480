/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ISOLATE_KILLTREE_H
#define CORE_ISOLATE_KILLTREE_H

/*
 * Killing a process with everything that it ever started: double forks, new
 * sessions and fork bombs included.
 *
 * The means, best first; each that is available is used until nothing is
 * left:
 *
 *   pidns      SIGKILL to pid 1 of a pid namespace; the kernel does the rest
 *   cgroup     cgroup.kill, or freeze + signal + thaw (cgroup_kill)
 *   subreaper  the caller is a child subreaper (PR_SET_CHILD_SUBREAPER): kill
 *              and reap its children, again and again until it has none;
 *              orphans come to it on the way
 *   marked     processes of the caller's uid with a certain NAME=value in
 *              their start environment (/proc/PID/environ); misses those that
 *              changed it, so it is the last resort
 *
 * A cgroup that is frozen is thawed first. All of it is bounded by the
 * timeout; afterwards ERR_TIMEOUT says what is still there.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup;
struct err;

enum killtree_how {
    KILLTREE_PIDNS = 1 << 0,
    KILLTREE_CGROUP = 1 << 1,
    KILLTREE_SUBREAPER = 1 << 2,
    KILLTREE_MARKED = 1 << 3
};

struct killtree {
    int pidfd;                /* of the tree's first process; -1 = none */
    bool pidfd_is_init;       /* it is pid 1 of its own pid namespace */
    const struct cgroup *cg;  /* the tree's group, nobody else's; or NULL */
    bool subreaper;           /* every child of the caller is of the tree */
    const char *mark;         /* "NAME=value", or NULL */

    /* With subreaper: the exit status of this child is kept when it is
     * reaped here. 0 = none. */
    pid_t main_pid;
    bool main_reaped;         /* out */
    int main_status;          /* out, as from waitpid() */

    uint32_t used;            /* out: enum killtree_how */
};

/* Start from this. */
#define KILLTREE_INIT { .pidfd = -1 }

/*
 * Kill it all. 0 = nothing is left (a pidfd's process may remain as a zombie
 * until its parent waits, unless subreaper). ERR_TIMEOUT, or ERR_UNSUPPORTED
 * when no means was given.
 */
int killtree_run(struct killtree *k, int timeout_ms, struct err *err);

/* Processes with the mark, not counting the caller; at most `max` pids into
 * ret (NULL with max 0 only counts). */
int killtree_find_marked(const char *mark, pid_t *ret, int max);

#endif
