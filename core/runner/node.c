/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading node.json.
 *
 * The file is the machine's word against the container's: it names cgroups,
 * folders and the uid of payloads, so a file that somebody else could have
 * written is refused, and every path in it must be absolute. Absent members
 * have defaults, and so has an absent file; a wrong member is an error and
 * never a default.
 *
 * Called once, before the lock is taken.
 */
#include "core/runner/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/fdio.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"

#define DEFAULT_PATH "/run/crunch/node.json"

enum { NOBODY = 65534, PIDS_MAX = 4096 };

static void set_defaults(struct node *n)
{
    *n = (struct node){
        .image_dir = mem_strdup("/var/lib/crunch-run/images"),
        .scratch_dir = mem_strdup("/tmp"),
        .lock_dir = mem_strdup("/var/lock"),
        .uid = NOBODY,
        .gid = NOBODY,
        .pids_max = PIDS_MAX,
    };
}

void node_fini(struct node *n)
{
    free(n->instance);
    free(n->cg_memory);
    free(n->cg_cpu);
    free(n->cg_pids);
    free(n->cg_unified);
    free(n->image_dir);
    free(n->scratch_dir);
    free(n->lock_dir);
    for (size_t i = 0; i < n->n_shared; i++) {
        free(n->shared[i].path);
        free(n->shared[i].source);
    }
    *n = (struct node){0};
}

/* Absolute, and free of anything that would need resolving. */
static bool is_plain_path(const char *s)
{
    return s[0] == '/' && !strstr(s, "//") && !strstr(s, "/./") &&
           !strstr(s, "/../") && strlen(s) < 1024;
}

static int opt_path(const struct jsn *j, const char *key, char **slot,
                    struct err *err)
{
    const char *s = NULL;

    if (jsn_opt_str(j, key, &s, err) < 0)
        return -1;
    if (!s)
        return 0;
    if (!is_plain_path(s))
        return err_set(err, ERR_CONFIG, "%s: \"%s\" is not an absolute path",
                       key, s);
    mem_set_str(slot, s);
    return 0;
}

static int parse_cgroup(const struct jsn *cg, struct node *n, struct err *err)
{
    if (opt_path(cg, "memory", &n->cg_memory, err) < 0 ||
        opt_path(cg, "cpu", &n->cg_cpu, err) < 0 ||
        opt_path(cg, "pids", &n->cg_pids, err) < 0 ||
        opt_path(cg, "unified", &n->cg_unified, err) < 0)
        return err_prefix(err, "cgroup");
    if (n->cg_unified && (n->cg_memory || n->cg_cpu || n->cg_pids))
        return err_set(err, ERR_CONFIG,
                       "cgroup: unified excludes the other members");
    return 0;
}

static int parse_shared(const struct jsn *list, struct node *n,
                        struct err *err)
{
    if (jsn_count(list) > NODE_SHARED_MAX)
        return err_set(err, ERR_CONFIG, "shared_dirs: more than %d",
                       NODE_SHARED_MAX);
    for (size_t i = 0; i < jsn_count(list); i++) {
        struct node_shared *s = &n->shared[n->n_shared++];
        const struct jsn *j = jsn_at(list, i);

        if (opt_path(j, "path", &s->path, err) < 0 ||
            opt_path(j, "source", &s->source, err) < 0 ||
            jsn_opt_bool(j, "writable", &s->writable, err) < 0)
            return err_prefix(err, "shared_dirs[%zu]", i);
        if (!s->path)
            return err_set(err, ERR_CONFIG, "shared_dirs[%zu]: no path", i);
        if (!s->source)
            s->source = mem_strdup(s->path);
    }
    return 0;
}

static int opt_range(const struct jsn *j, const char *key, int64_t low,
                     int64_t high, int64_t *slot, struct err *err)
{
    int64_t v = *slot;

    if (jsn_opt_i64(j, key, &v, err) < 0)
        return -1;
    if (v < low || v > high)
        return err_set(err, ERR_CONFIG, "%s: %lld is out of range", key,
                       (long long) v);
    *slot = v;
    return 0;
}

static int parse_members(const struct jsn *j, struct node *n, struct err *err)
{
    int64_t v = 0, uid = n->uid, gid = n->gid;
    const char *instance = NULL;

    if (opt_range(j, "v", 1, INT32_MAX, &v, err) < 0)
        return -1;
    if (jsn_opt_str(j, "instance", &instance, err) < 0 ||
        jsn_opt_bool(j, "plain", &n->plain, err) < 0 ||
        parse_cgroup(jsn_get(j, "cgroup"), n, err) < 0 ||
        opt_path(j, "image_dir", &n->image_dir, err) < 0 ||
        opt_path(j, "scratch_dir", &n->scratch_dir, err) < 0 ||
        opt_path(j, "lock_dir", &n->lock_dir, err) < 0 ||
        parse_shared(jsn_get(j, "shared_dirs"), n, err) < 0 ||
        opt_range(j, "uid", 0, UINT32_MAX - 1, &uid, err) < 0 ||
        opt_range(j, "gid", 0, UINT32_MAX - 1, &gid, err) < 0 ||
        opt_range(j, "pids_max", 1, 1 << 22, &n->pids_max, err) < 0)
        return -1;
    mem_set_str(&n->instance, instance);
    n->uid = (uint32_t) uid;
    n->gid = (uint32_t) gid;
    return 0;
}

int node_parse(const char *text, size_t size, struct node *ret,
               struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, size, err);
    struct node n;

    if (!j)
        return -1;
    if (jsn_type(j) != JSN_OBJECT)
        return err_set(err, ERR_CONFIG, "not a JSON object");
    set_defaults(&n);
    if (parse_members(j, &n, err) < 0) {
        node_fini(&n);
        return -1;
    }
    *ret = n;
    return 0;
}

/* Nobody but root and ourselves may have written it. */
static int check_owner(int fd, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "fstat");
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_CONFIG, "not a regular file");
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(err, ERR_CONFIG, "belongs to uid %u", st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, ERR_CONFIG, "others may write to it");
    return 0;
}

int node_load(struct node *ret, struct err *err)
{
    const char *path = getenv("CDC_NODE_JSON");
    CLEANUP(buf_fini) struct buf text;
    CLEANUP(mem_close) int fd = -1;

    buf_init(&text, NODE_FILE_MAX);
    if (!path)
        path = DEFAULT_PATH;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT && !getenv("CDC_NODE_JSON")) {
        set_defaults(ret);
        return 0;
    }
    if (fd < 0)
        return err_set_errno(err, errno, "%s", path);
    if (check_owner(fd, err) < 0)
        return err_prefix(err, "%s", path);
    if (fdio_read_all(fd, &text) < 0)
        return err_set_errno(err, errno, "%s", path);
    if (node_parse(text.data, text.len, ret, err) < 0)
        return err_prefix(err, "%s", path);
    return 0;
}
