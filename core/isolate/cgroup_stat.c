/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_stat.c: what a group has used.
 *
 * Every number covers the group and all below it. On v1 that holds for all
 * files but one: oom_kill in memory.oom_control counts in the victim's own
 * group only, so it is summed over the tree, and must be read before groups
 * below are removed. On v2 memory.events is hierarchical, and memory.peak
 * exists from Linux 5.19. What the kernel does not tell is -1.
 *
 * Any thread; never blocks.
 */

#include <stdio.h>
#include <string.h>

#include "core/isolate/cgroup_fs.h"
#include "core/isolate/sysfile.h"

static int64_t number(const struct cgroup *cg, enum cgroup_tree tree,
                      const char *file_v1, const char *file_v2,
                      const char *key)
{
    bool v2 = cg->v2 & 1U << tree;
    char path[CGROUP_FILE_SIZE], text[4096];

    if (!cgroup_file(cg, tree, v2 ? file_v2 : file_v1, path) ||
        sysfile_read(path, text, sizeof text) < 0)
        return -1;
    return sysfile_number(text, v2 ? key : NULL);
}

static void add_oom_kills(const char *dir, void *arg)
{
    int64_t *sum = arg, n;
    char path[CGROUP_FILE_SIZE], text[256];

    snprintf(path, sizeof path, "%s/memory.oom_control", dir);
    if (sysfile_read(path, text, sizeof text) < 0)
        return;
    n = sysfile_number(text, "oom_kill");
    if (n >= 0)
        *sum = (*sum < 0 ? 0 : *sum) + n;
}

static int64_t oom_kills(const struct cgroup *cg)
{
    int64_t sum = -1;

    if (cg->v2 & 1U << CGROUP_MEMORY)
        return number(cg, CGROUP_MEMORY, "", "memory.events", "oom_kill");
    if (cg->dir[CGROUP_MEMORY][0])
        cgroup_walk(cg->dir[CGROUP_MEMORY], add_oom_kills, &sum);
    return sum;
}

void cgroup_stat(const struct cgroup *cg, struct cgroup_usage *ret)
{
    int64_t cpu = number(cg, CGROUP_CPUACCT, "cpuacct.usage", "cpu.stat",
                         "usage_usec");

    if (cpu > 0 && !(cg->v2 & 1U << CGROUP_CPUACCT))
        cpu /= 1000;
    ret->cpu_us = cpu;
    ret->memory = number(cg, CGROUP_MEMORY, "memory.usage_in_bytes",
                         "memory.current", NULL);
    ret->memory_peak = number(cg, CGROUP_MEMORY, "memory.max_usage_in_bytes",
                              "memory.peak", NULL);
    ret->pids = number(cg, CGROUP_PIDS, "pids.current", "pids.current", NULL);
    ret->oom_kills = oom_kills(cg);
}
