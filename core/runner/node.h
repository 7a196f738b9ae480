/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_NODE_H
#define CORE_RUNNER_NODE_H

/*
 * node.json: what only the machine knows and no container may choose.
 *
 * Whoever made the machine writes /run/crunch/node.json (0600, owned by root).
 * Another place is named by the environment variable CDC_NODE_JSON; then the
 * file must belong to the caller and be writable by nobody else. No file at
 * all means the defaults below: no limits are enforced, and the log says so.
 *
 *   {
 *     "v": 1,
 *     "instance": "c4kq...-00",          for the log; may be absent
 *     "plain": false,                    true: no namespaces, same user
 *     "cgroup": {                        directories as seen from here in
 *       "memory": "/sys/fs/cgroup/memory/payload",     which one group per
 *       "cpu":    "/sys/fs/cgroup/cpu/payload",        container is made;
 *       "pids":   "/sys/fs/cgroup/pids/payload"        v1, any subset
 *     }
 *     or "cgroup": {"unified": "/sys/fs/cgroup/payload"},           v2
 *     "image_dir": "/var/lib/crunch-run/images",       unpacked roots
 *     "scratch_dir": "/tmp",             container folders and outputs
 *     "lock_dir": "/var/lock",           lock files
 *     "shared_dirs": [                   bound into every payload
 *       {"path": "/shared", "source": "/shared", "writable": true}
 *     ],                                 source absent = path
 *     "uid": 65534, "gid": 65534,        of payloads (not in plain mode)
 *     "pids_max": 4096                   processes per container
 *   }
 *
 * Every member but "v" may be absent; the values shown for image_dir,
 * scratch_dir, lock_dir, uid, gid and pids_max are the defaults. Unknown
 * members are ignored, so that a newer writer may serve an older runner.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum { NODE_SHARED_MAX = 16, NODE_FILE_MAX = 64 * 1024 };

struct node_shared {
    char *path;   /* inside the payload, absolute */
    char *source; /* on this machine, absolute */
    bool writable;
};

struct node {
    char *instance; /* NULL = unknown */
    bool plain;
    char *cg_memory, *cg_cpu, *cg_pids; /* v1; NULL = not limited */
    char *cg_unified;                   /* v2; then the others are NULL */
    char *image_dir, *scratch_dir, *lock_dir;
    struct node_shared shared[NODE_SHARED_MAX];
    size_t n_shared;
    uint32_t uid, gid;
    int64_t pids_max;
};

/* Fill *ret from JSON text. ERR_CONFIG names the member. */
int node_parse(const char *text, size_t n, struct node *ret, struct err *err);

/* Read the file as described above; absent = defaults. */
int node_load(struct node *ret, struct err *err);
void node_fini(struct node *n);

#endif
