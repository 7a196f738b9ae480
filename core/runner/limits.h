/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_LIMITS_H
#define CORE_RUNNER_LIMITS_H

/*
 * The container's control group: one below those that node.json names, made
 * for one run, with the limits of the job.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/isolate/cgroup.h"

struct err;
struct job;
struct node;

struct limits {
    struct cgroup cg;
    uint32_t in_force;              /* enum cgroup_limit_bit */
    int v2_fd;                      /* to start the payload in; -1 = none */
    int fds[CGROUP_TREE_COUNT];     /* else through these it moves */
    size_t n_fds;
};

/*
 * Make the group and set the limits. With no groups in node.json nothing is
 * made and nothing enforced. A limit whose group is named there but cannot be
 * set is an error: the container would not get what it was promised.
 */
int limits_create(const struct node *node, const struct job *job,
                  bool memory_limit, struct limits *ret, struct err *err);
/* What is killed must run to die: a group that has used up its processor time
 * dies slowly. No effect on the other limits. */
void limits_unthrottle(const struct limits *l);
/* Remove the group; everything in it must be dead. */
void limits_destroy(struct limits *l);
/* Remove the group that a killed run left. The lock must be held. */
void limits_clean(const struct node *node, const char *uuid);

/* "memory, cpu, pids" or "none": what is in force. Into out, returned. */
const char *limits_print(const struct limits *l, char *out, size_t size);

#endif
