/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.c: a VM's place among the machine's control groups.
 *
 * The groups hang below the top of each tree, never below the caller's own:
 * a dispatcher that is stopped by its service manager must not take its VMs
 * along. That goes for systemd's own tree too, which limits nothing.
 *
 *   groups_make -> clone -> groups_enter -> (child: unshare) ->
 *   groups_settle -> let go
 *
 * The group of the set and its parent are shared with other VMs and come and
 * go: between our mkdir of the parent and that of the child somebody may
 * remove the empty parent again. Then the whole is tried once more.
 *
 * Called by the commands, from one thread.
 */

#include "core/localvm/groups.h"

#include <stdio.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/localvm/wire.h"

enum { TRIES = 8, NAME_SIZE = 256 };

static int name_below(struct groups *g, struct err *err)
{
    if (cgroup_child(&g->vm, "sys", &g->sys, err) < 0 ||
        cgroup_child(&g->vm, "payload", &g->payload, err) < 0)
        return -1;
    return cgroup_child(&g->payload, "ns", &g->inner, err);
}

int groups_name(const struct wire_spec *spec, const char *id,
                struct groups *ret, struct err *err)
{
    struct cgroup root;

    memset(ret, 0, sizeof *ret);
    cgroup_find(&root);
    ret->version = cgroup_version(&root);
    ret->own_parent = strcmp(spec->cgroup_parent, WIRE_CGROUP_PARENT) == 0;
    if (cgroup_child(&root, spec->cgroup_parent, &ret->parent, err) < 0 ||
        cgroup_child(&ret->parent, spec->set_id, &ret->set, err) < 0 ||
        cgroup_child(&ret->set, id, &ret->vm, err) < 0)
        return -1;
    return name_below(ret, err);
}

/* On pure v2 the namespace's root must hold both sys and payload: with
 * nsdelegate the kernel moves processes only inside it. */
static void choose_birth(struct groups *g)
{
    int t;

    if (g->version == 2) {
        g->birth = g->vm;
        return;
    }
    g->birth = g->inner;
    for (t = 0; t < CGROUP_TREE_COUNT; t++)
        if (g->sys.v2 & 1U << t || g->inner.v2 & 1U << t)
            memcpy(g->birth.dir[t], g->sys.dir[t], CGROUP_DIR_SIZE);
}

static void note(struct err *why, const struct err *one)
{
    if (why && why->class == ERR_NONE)
        *why = *one;
}

/* payload and inner, with the type's limits. */
static int make_payload(const struct wire_spec *spec, struct groups *g,
                        struct err *why, struct err *err)
{
    struct cgroup_limits limits = {
        .memory = spec->ram,
        .cpu_milli = spec->vcpus * 1000,
        .pids = spec->pids,
    };
    struct err one;

    if (cgroup_create(&g->vm, "payload", &g->payload, &one, err) < 0)
        return -1;
    note(why, &one);
    g->limits = cgroup_set_limits(&g->payload, &limits, &one);
    note(why, &one);
    return cgroup_create(&g->payload, "ns", &g->inner, NULL, err);
}

static int make_once(const struct wire_spec *spec, const char *id,
                     struct groups *g, struct err *why, struct err *err)
{
    struct cgroup_limits limits = {
        .memory = spec->ram + GROUPS_OVERHEAD,
        .pids = spec->pids + GROUPS_PIDS_OVERHEAD,
    };
    char name[NAME_SIZE];
    struct cgroup root;

    cgroup_find(&root);
    snprintf(name, sizeof name, "%.128s/%.64s/%.32s", spec->cgroup_parent,
             spec->set_id, id);
    if (cgroup_create(&root, name, &g->vm, why, err) < 0)
        return -1;
    cgroup_set_limits(&g->vm, &limits, NULL);
    if (cgroup_create_bare(&g->vm, "sys", &g->sys, NULL, err) < 0)
        return -1;
    return g->version == 2 ? 0 : make_payload(spec, g, why, err);
}

int groups_make(const struct wire_spec *spec, const char *id,
                struct groups *ret, struct err *why, struct err *err)
{
    struct groups g;
    struct err reason = {0};
    int i;

    if (groups_name(spec, id, &g, err) < 0)
        return -1;
    for (i = 0; i < TRIES; i++) {
        if (make_once(spec, id, &g, &reason, err) < 0)
            return -1;
        if (strcmp(reason.code, "ENOENT") != 0)
            break;
    }
    choose_birth(&g);
    *ret = g;
    if (why)
        *why = reason;
    return 0;
}

int groups_enter(const struct groups *g, pid_t pid, struct err *err)
{
    return cgroup_attach(&g->birth, pid, err);
}

int groups_settle(const struct wire_spec *spec, struct groups *g, pid_t pid,
                  struct err *why, struct err *err)
{
    if (cgroup_attach(&g->sys, pid, err) < 0)
        return -1;
    return g->version == 2 ? make_payload(spec, g, why, err) : 0;
}

int groups_remove(const struct groups *g, int timeout_ms, struct err *err)
{
    if (cgroup_remove(&g->vm, timeout_ms, err) < 0)
        return -1;
    cgroup_remove_if_empty(&g->set);
    /* One that was configured is the operator's. */
    if (g->own_parent)
        cgroup_remove_if_empty(&g->parent);
    return 0;
}
