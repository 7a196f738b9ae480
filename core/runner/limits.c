/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of one container.
 *
 * The supervisor and init stay outside: the kernel must never have to choose
 * between them and the payload. Only the command enters: on v2 it is started
 * in the group; on v1 it moves, through descriptors opened here, because by
 * then it lives in a root where the groups are read-only. It moves itself,
 * as a thread ("0" into tasks): moving a process takes a lock of the whole
 * kernel and 10 to 30 ms.
 *
 * The group is named by the container's uuid and guarded by its lock, like its
 * folder. oom_group is off: a child that hits the limit must not take the main
 * program along.
 */
#include "core/runner/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/runner/job.h"
#include "core/runner/node.h"

enum { REMOVE_MS = 2000, KILL_MS = 5000, CPU_MILLI = 1000 };

static int parent_of(const struct node *n, struct cgroup *ret,
                     struct err *err)
{
    const struct {
        enum cgroup_tree tree;
        const char *dir;
    } v1[] = {
        {CGROUP_MEMORY, n->cg_memory},
        {CGROUP_CPU, n->cg_cpu},
        {CGROUP_PIDS, n->cg_pids},
    };

    memset(ret, 0, sizeof *ret);
    if (n->cg_unified)
        return cgroup_set_v2(ret, n->cg_unified, err);
    for (size_t i = 0; i < MEM_COUNT(v1); i++) {
        if (v1[i].dir && cgroup_set_v1(ret, v1[i].tree, v1[i].dir, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_named(const struct node *n)
{
    return n->cg_unified || n->cg_memory || n->cg_cpu || n->cg_pids;
}

/* The file of each directory, once where trees share it. */
static int open_groups(struct limits *l, struct err *err)
{
    if (cgroup_version(&l->cg) == 2)
        l->v2_fd = cgroup_open_v2(&l->cg);
    if (l->v2_fd >= 0)
        return 0;
    for (int t = 0; t < CGROUP_TREE_COUNT; t++) {
        const char *dir = l->cg.dir[t];
        CLEANUP(mem_free) char *path = mem_printf(
            "%s/%s", dir, l->cg.v2 & 1U << t ? "cgroup.procs" : "tasks");
        bool again = !dir[0];

        for (int i = 0; i < t && !again; i++)
            again = strcmp(l->cg.dir[i], dir) == 0;
        if (again)
            continue;
        l->fds[l->n_fds] = open(path, O_WRONLY | O_CLOEXEC);
        if (l->fds[l->n_fds] < 0)
            return err_set_errno(err, errno, "%s", path);
        l->n_fds++;
    }
    return 0;
}

static int set(struct limits *l, const struct node *node,
               const struct job *job, bool memory_limit, struct err *err)
{
    struct cgroup_limits want = {
        .memory = memory_limit ? job->ram : 0,
        .cpu_milli = job->vcpus * CPU_MILLI,
        .pids = node->pids_max,
    };
    struct err why = {0};

    if (want.memory && want.memory < JOB_RAM_MIN)
        want.memory = JOB_RAM_MIN;
    if (!node->cg_unified && !node->cg_memory)
        want.memory = 0;
    if (!node->cg_unified && !node->cg_cpu)
        want.cpu_milli = 0;
    if (!node->cg_unified && !node->cg_pids)
        want.pids = 0;
    l->in_force = cgroup_set_limits(&l->cg, &want, &why);
    if (why.class != ERR_NONE) {
        if (err)
            *err = why;
        return err_prefix(err, "limits");
    }
    return 0;
}

static int name_of(const struct node *node, const char *uuid,
                   struct cgroup *parent, char *name, size_t size,
                   struct err *err)
{
    snprintf(name, size, "crunch-run.%s", uuid);
    return parent_of(node, parent, err);
}

void limits_clean(const struct node *node, const char *uuid)
{
    struct cgroup parent, cg;
    char name[64];

    if (is_named(node) &&
        name_of(node, uuid, &parent, name, sizeof name, NULL) == 0 &&
        cgroup_child(&parent, name, &cg, NULL) == 0 && cgroup_exists(&cg)) {
        cgroup_kill(&cg, KILL_MS, NULL);
        cgroup_remove(&cg, REMOVE_MS, NULL);
    }
}

int limits_create(const struct node *node, const struct job *job,
                  bool memory_limit, struct limits *ret, struct err *err)
{
    struct limits l = {.v2_fd = -1};
    struct cgroup parent;
    struct err why = {0};
    char name[64];

    *ret = l;
    if (!is_named(node))
        return 0;
    limits_clean(node, job->uuid);
    if (name_of(node, job->uuid, &parent, name, sizeof name, err) < 0 ||
        cgroup_create(&parent, name, &l.cg, &why, err) < 0)
        return -1;
    if (why.class != ERR_NONE && err)
        *err = why;
    if (why.class != ERR_NONE || set(&l, node, job, memory_limit, err) < 0 ||
        open_groups(&l, err) < 0) {
        limits_destroy(&l);
        return -1;
    }
    *ret = l;
    return 0;
}

void limits_unthrottle(const struct limits *l)
{
    struct cgroup_limits plenty = {.cpu_milli = 1000 * CPU_MILLI};

    if (l->in_force & CGROUP_LIMIT_CPU)
        cgroup_set_limits(&l->cg, &plenty, NULL);
}

void limits_destroy(struct limits *l)
{
    for (size_t i = 0; i < l->n_fds; i++)
        close(l->fds[i]);
    if (cgroup_exists(&l->cg))
        cgroup_remove(&l->cg, REMOVE_MS, NULL);
    mem_close(&l->v2_fd);
    *l = (struct limits){.v2_fd = -1};
}

const char *limits_print(const struct limits *l, char *out, size_t size)
{
    snprintf(out, size, "%s%s%s%s",
             l->in_force & CGROUP_LIMIT_MEMORY ? " memory" : "",
             l->in_force & CGROUP_LIMIT_CPU ? " cpu" : "",
             l->in_force & CGROUP_LIMIT_PIDS ? " pids" : "",
             l->in_force ? "" : " none");
    return out;
}
