/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ISOLATE_CGROUP_H
#define CORE_ISOLATE_CGROUP_H

/*
 * Control groups, v1 and v2 alike (Linux Documentation/admin-guide/
 * cgroup-v1/ and cgroup-v2.rst).
 *
 * A `struct cgroup` is one group under the same name in every tree that we
 * use: each v1 hierarchy that holds a controller of interest wherever it is
 * mounted, systemd's named v1 hierarchy, and the v2 tree. On a pure v2 system
 * all controllers have the same directory; on a hybrid one the v1 controllers
 * have theirs and the v2 tree, empty of controllers, still gives cgroup.kill
 * and CLONE_INTO_CGROUP.
 *
 * Nothing fails hard because a controller is missing, read-only or refused:
 * its directory is then empty, limits that need it are reported as not in
 * force, and numbers that come from it are -1. A struct holds plain text and
 * may be copied; it owns nothing.
 *
 *     struct cgroup root, vm;
 *     cgroup_find(&root);
 *     cgroup_create(&root, "cdc/set/vm1", &vm, &err);
 *     in_force = cgroup_set_limits(&vm, &limits, &why);
 *     cgroup_attach(&vm, pid, &err);
 *     ...
 *     cgroup_kill(&vm, 5000, &err);
 *     cgroup_remove(&vm, 2000, &err);
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/*    name       v1 controller    what we use it for */
#define CGROUP_TREES(X)                                                       \
    X(MEMORY,   "memory",        "RAM limit, peak, kills at the limit")       \
    X(CPU,      "cpu",           "CPU quota")                                 \
    X(CPUACCT,  "cpuacct",       "CPU time")                                  \
    X(PIDS,     "pids",          "limit on processes and threads")            \
    X(FREEZER,  "freezer",       "stopping all of a group at once")           \
    X(SYSTEMD,  "name=systemd",  "leaving the service that called us")        \
    X(UNIFIED,  "",              "the v2 tree itself")

enum cgroup_tree {
#define X(name, v1, use) CGROUP_##name,
    CGROUP_TREES(X)
#undef X
    CGROUP_TREE_COUNT
};

enum { CGROUP_DIR_SIZE = 384 };

struct cgroup {
    /* The group's directory in each tree, "" = not there. On v2 the
     * directories of the enabled controllers equal dir[CGROUP_UNIFIED]. */
    char dir[CGROUP_TREE_COUNT][CGROUP_DIR_SIZE];
    /* Bit 1 << tree: the directory is in the v2 tree, so its files have the
     * names of v2. */
    uint32_t v2;
};

/* 0 = no controller that limits anything, 1 = at least one of memory, cpu,
 * pids is on v1, 2 = all of those found are on v2. */
int cgroup_version(const struct cgroup *cg);
/* The tree's v1 controller name ("memory"); "unified" for the v2 tree. */
const char *cgroup_tree_name(enum cgroup_tree tree);

/* --- finding ------------------------------------------------------------- */

/* The top group of every tree as far as this process can see it (the mounts
 * of /proc/self/mountinfo). Never fails: nothing found = all empty. */
void cgroup_find(struct cgroup *ret);

/*
 * Pure: the same from the text of /proc/PID/mountinfo and, for the process's
 * own group, /proc/PID/cgroup (NULL: the top group). controllers is the text
 * of the v2 tree's cgroup.controllers ("" = none).
 */
void cgroup_parse(const char *mountinfo, const char *self,
                  const char *controllers, struct cgroup *ret);

/* Pure: the mount point of the v2 tree, "" = none. */
void cgroup_parse_unified(const char *mountinfo, char *out, size_t size);

/*
 * From known directories, as node.json tells them. Start with a zeroed
 * struct. A v2 root sets every tree whose controller the directory's
 * cgroup.controllers lists. Paths too long or not absolute: ERR_INVALID.
 */
int cgroup_set_v1(struct cgroup *cg, enum cgroup_tree tree, const char *dir,
                  struct err *err);
int cgroup_set_v2(struct cgroup *cg, const char *dir, struct err *err);

/* --- making and ending --------------------------------------------------- */

/* Names only, no system call: the group `name` (may hold '/') below parent.
 * ERR_INVALID: too long, or a component is empty, "." or "..". */
int cgroup_child(const struct cgroup *parent, const char *name,
                 struct cgroup *ret, struct err *err);

/*
 * Make the group `name` below parent in every tree, the steps between
 * included; what exists is kept. On v2 the controllers are enabled from the
 * parent downwards (cgroup.subtree_control; refused with EBUSY where a group
 * on the way holds processes itself: that controller is then absent in *ret).
 * ERR_INVALID as cgroup_child(); trees that refuse are absent in *ret and
 * *why (NULL allowed) names the first refusal, its class ERR_NONE if there
 * was none.
 */
int cgroup_create(const struct cgroup *parent, const char *name,
                  struct cgroup *ret, struct err *why, struct err *err);

/* The same, but the v2 tree gets a bare group: no controller is enabled above
 * it, and *ret has none. Processes can be moved there out of a group that
 * must be empty before it can enable controllers. */
int cgroup_create_bare(const struct cgroup *parent, const char *name,
                       struct cgroup *ret, struct err *why,
                       struct err *err);

/* True when the group exists in at least one tree. */
bool cgroup_exists(const struct cgroup *cg);

/*
 * Remove the group and all below it in every tree. Groups that still hold
 * dying processes are tried again until timeout_ms. What is absent is fine.
 * -1/ERR_TIMEOUT names the first directory that stayed.
 */
int cgroup_remove(const struct cgroup *cg, int timeout_ms, struct err *err);

/* Remove the group itself where it has no members and nothing below it; once,
 * silently. For groups that are shared with others. */
void cgroup_remove_if_empty(const struct cgroup *cg);

/* --- limits -------------------------------------------------------------- */

struct cgroup_limits {
    int64_t memory;    /* bytes, swap included where it is counted; 0 = none */
    int64_t cpu_milli; /* thousandths of a CPU; 0 = none */
    int64_t pids;      /* processes and threads; 0 = none */
    bool oom_group;    /* v2: at the memory limit, kill the whole group */
};

enum cgroup_limit_bit {
    CGROUP_LIMIT_MEMORY = 1 << 0,
    CGROUP_LIMIT_CPU = 1 << 1,
    CGROUP_LIMIT_PIDS = 1 << 2
};

/* Set what is asked for; returns the set of limits that are in force. *why
 * (NULL allowed) tells of the first one that is not; ERR_NONE = all are. */
uint32_t cgroup_set_limits(const struct cgroup *cg,
                           const struct cgroup_limits *limits,
                           struct err *why);

/* --- members ------------------------------------------------------------- */

/* Move a process (0 = the caller) into the group in every tree. All trees are
 * tried; -1 with the first refusal. */
int cgroup_attach(const struct cgroup *cg, pid_t pid, struct err *err);

/* A directory descriptor of the group in the v2 tree for CLONE_INTO_CGROUP,
 * close-on-exec; -1 = there is none. On a hybrid system the other trees still
 * need cgroup_attach(). */
int cgroup_open_v2(const struct cgroup *cg);

/* Processes in the group and all groups below; -1 = no tree can tell. */
int cgroup_count(const struct cgroup *cg);

/* --- stopping and killing ------------------------------------------------ */

/* Freeze or thaw the group and all below (v1 freezer.state, v2
 * cgroup.freeze), and wait until it is so. Thawing what is not frozen is
 * fine. ERR_UNSUPPORTED: no tree can; ERR_TIMEOUT. */
int cgroup_freeze(const struct cgroup *cg, bool frozen, int timeout_ms,
                  struct err *err);

/*
 * Kill every process of the group and of all below, and wait until none is
 * left: cgroup.kill where the kernel has it; else freeze, signal all, thaw;
 * else signal until none is left. Frozen groups are thawed (a frozen v1 group
 * does not die). ERR_UNSUPPORTED: the group is in no tree; ERR_TIMEOUT.
 */
int cgroup_kill(const struct cgroup *cg, int timeout_ms, struct err *err);

/* --- numbers ------------------------------------------------------------- */

/* Of the group with all below; -1 = cannot be told. */
struct cgroup_usage {
    int64_t memory;      /* bytes now */
    int64_t memory_peak; /* bytes */
    int64_t cpu_us;      /* user + system */
    int64_t pids;        /* now */
    int64_t oom_kills;   /* processes killed at a memory limit (v1 counts only
                          * in the victim's own group: summed here, so read it
                          * before a group below is removed) */
};

void cgroup_stat(const struct cgroup *cg, struct cgroup_usage *ret);

#endif
