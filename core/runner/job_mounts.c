/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mounts of a container: which there may be, and where.
 *
 * One table says which members each kind understands. A member that another
 * kind understands may be present with its zero value (the server fills them
 * in) but not with another: it would be ignored. Unknown kinds and unknown
 * members with a value are refused for the same reason.
 *
 * Targets are absolute and in normal form, so that they can be compared as
 * texts; parents come before children. Where the runner itself puts something
 * (proc, sys, dev) nothing can be mounted. Below the output folder only files
 * are allowed: they are copied into it and become output.
 */
#include "core/runner/job.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"

enum { CONTENT_MAX = 16 * 1024 * 1024 };

static const struct {
    const char *name;
    enum job_mount_kind kind;
    const char *members; /* besides kind and exclude_from_output */
} kinds[] = {
    {"tmp", JOB_TMP, " capacity device_type "},
    {"json", JOB_JSON, " content "},
    {"text", JOB_TEXT, " content "},
    {"file", JOB_FILE, " path "},
};

/* Where the runner puts things of its own. */
static const char *const reserved[] = {"/proc", "/sys", "/dev"};

static bool is_zero(const struct jsn *v)
{
    const char *s = NULL;
    int64_t i = 1;
    bool b = true;

    switch (jsn_type(v)) {
    case JSN_NULL:
        return true;
    case JSN_BOOL:
        return jsn_as_bool(v, &b, NULL) == 0 && !b;
    case JSN_INT:
        return jsn_as_i64(v, &i, NULL) == 0 && i == 0;
    case JSN_STRING:
        return jsn_as_str(v, &s, NULL) == 0 && *s == '\0';
    case JSN_ARRAY:
    case JSN_OBJECT:
        return jsn_count(v) == 0;
    default:
        return false;
    }
}

static int check_members(const struct jsn *j, size_t kind, struct err *err)
{
    struct jsn_iter it = {0};

    while (jsn_next(j, &it)) {
        CLEANUP(mem_free) char *word = mem_printf(" %s ", it.key);

        if (!strstr(kinds[kind].members, word) &&
            !strstr(" kind exclude_from_output ", word) && !is_zero(it.value))
            return err_set(err, ERR_UNSUPPORTED,
                           "\"%s\" does not apply to kind \"%s\"", it.key,
                           kinds[kind].name);
    }
    return 0;
}

/* No empty, "." or ".." part, no slash at the end. */
static bool is_normal(const char *relative)
{
    if (strlen(relative) >= JOB_PATH_MAX)
        return false;
    for (;;) {
        size_t n = strcspn(relative, "/");

        if (n == 0 || (n == 1 && relative[0] == '.') ||
            (n == 2 && strncmp(relative, "..", 2) == 0))
            return false;
        if (relative[n] == '\0')
            return true;
        relative += n + 1;
    }
}

static bool is_std(const char *target)
{
    return strcmp(target, "stdin") == 0 || strcmp(target, "stdout") == 0 ||
           strcmp(target, "stderr") == 0;
}

static int check_place(const struct job *j, const struct job_mount *m,
                       struct err *err)
{
    bool std = is_std(m->target);
    bool in = strcmp(m->target, "stdin") == 0;

    if (!std && (m->target[0] != '/' || !is_normal(m->target + 1)))
        return err_set(err, ERR_UNSUPPORTED,
                       "not an absolute path in normal form");
    for (size_t i = 0; i < MEM_COUNT(reserved); i++) {
        if (job_path_within(m->target, reserved[i]))
            return err_set(err, ERR_UNSUPPORTED,
                           "nothing can be mounted in %s", reserved[i]);
    }
    if ((m->kind == JOB_FILE) != (std && !in) || (in && m->kind == JOB_TMP))
        return err_set(err, ERR_UNSUPPORTED, "this kind cannot be here");
    if (m->kind == JOB_TMP && strcmp(m->target, j->output_path) != 0 &&
        job_path_within(m->target, j->output_path))
        return err_set(err, ERR_UNSUPPORTED,
                       "only json and text can be below output_path");
    return 0;
}

static int take_content(const struct jsn *j, struct job_mount *m,
                        struct err *err)
{
    CLEANUP(buf_fini) struct buf text;
    const char *s;

    buf_init(&text, CONTENT_MAX);
    if (m->kind == JOB_TEXT) {
        if (jsn_str(j, "content", &s, err) < 0)
            return -1;
        m->content = mem_strdup(s);
        m->content_len = strlen(s);
        return 0;
    }
    if (!jsn_has(j, "content"))
        return err_set(err, ERR_UNSUPPORTED, "no content");
    if (!jsn_get(j, "content"))
        buf_puts(&text, "null");
    else if (jsn_print(jsn_get(j, "content"), false, &text) < 0)
        return err_set(err, ERR_UNSUPPORTED, "content too large");
    m->content = buf_take(&text, &m->content_len);
    return 0;
}

static int take_tmp(const struct jsn *j, struct job_mount *m, struct err *err)
{
    const char *device = "";

    if (jsn_opt_i64(j, "capacity", &m->capacity, err) < 0 ||
        jsn_opt_str(j, "device_type", &device, err) < 0)
        return -1;
    if (m->capacity < 0)
        return err_set(err, ERR_UNSUPPORTED, "capacity is negative");
    m->ram = strcmp(device, "ram") == 0;
    return 0;
}

/* A path below output_path, given absolute; kept relative. */
static int take_path(const struct jsn *j, const struct job *job,
                     struct job_mount *m, struct err *err)
{
    const char *path = NULL;
    size_t n = strlen(job->output_path);

    if (jsn_str(j, "path", &path, err) < 0)
        return -1;
    if (!job_path_within(path, job->output_path) || path[n] != '/' ||
        !is_normal(path + n + 1))
        return err_set(err, ERR_UNSUPPORTED, "path: not below output_path");
    m->path = mem_strdup(path + n + 1);
    return 0;
}

static int take_kind(const struct jsn *j, const struct job *job,
                     struct job_mount *m, struct err *err)
{
    const char *kind = NULL;
    size_t i = 0;

    if (jsn_str(j, "kind", &kind, err) < 0)
        return -1;
    while (i < MEM_COUNT(kinds) && strcmp(kinds[i].name, kind) != 0)
        i++;
    if (i == MEM_COUNT(kinds))
        return err_set(err, ERR_UNSUPPORTED,
                       "kind \"%s\" is not supported by this runner", kind);
    m->kind = kinds[i].kind;
    if (check_members(j, i, err) < 0 || check_place(job, m, err) < 0 ||
        jsn_opt_bool(j, "exclude_from_output", &m->exclude, err) < 0)
        return -1;
    switch (m->kind) {
    case JOB_TMP:
        return take_tmp(j, m, err);
    case JOB_FILE:
        return take_path(j, job, m, err);
    default:
        return take_content(j, m, err);
    }
}

static int by_target(const void *a, const void *b)
{
    const struct job_mount *x = a, *y = b;

    return strcmp(x->target, y->target);
}

static int check_output(const struct job *j, struct err *err)
{
    const struct job_mount *out = job_mount(j, j->output_path);

    if (!out || out->kind != JOB_TMP || j->output_path[0] != '/')
        return err_set(err, ERR_UNSUPPORTED,
                       "output_path: \"%s\" is not a mount of kind tmp",
                       j->output_path);
    return 0;
}

static int add_secret(struct job *j, const char *target,
                      const struct jsn *mount, struct err *err)
{
    struct job_mount *m = &j->mounts[j->n_mounts];

    if (job_mount(j, target))
        return err_set(err, ERR_UNSUPPORTED, "is in mounts too");
    *m = (struct job_mount){.target = mem_strdup(target), .secret = true};
    j->n_mounts++;
    if (take_kind(mount, j, m, err) < 0)
        return -1;
    if (m->kind != JOB_JSON && m->kind != JOB_TEXT)
        return err_set(err, ERR_UNSUPPORTED, "only json and text");
    m->exclude = true;
    return 0;
}

int job_add_secrets(const char *text, size_t n, struct job *j,
                    struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *reply = jsn_parse(text, n, err);
    const struct jsn *mounts = jsn_get(reply, "secret_mounts");
    struct jsn_iter it = {0};

    if (!reply)
        return -1;
    if (jsn_count(mounts) + j->n_mounts > JOB_MOUNTS_MAX)
        return err_set(err, ERR_UNSUPPORTED, "secret_mounts: too many");
    j->mounts = mem_realloc(j->mounts, j->n_mounts + jsn_count(mounts) + 1,
                            sizeof *j->mounts);
    while (jsn_next(mounts, &it)) {
        if (add_secret(j, it.key, it.value, err) == 0)
            continue;
        if (err)
            err->class = ERR_UNSUPPORTED;
        return err_prefix(err, "secret_mounts: %.200s", it.key);
    }
    qsort(j->mounts, j->n_mounts, sizeof *j->mounts, by_target);
    return 0;
}

int job_parse_mounts(const struct jsn *mounts, struct job *j,
                     struct err *err)
{
    struct jsn_iter it = {0};

    if (jsn_count(mounts) > JOB_MOUNTS_MAX)
        return err_set(err, ERR_UNSUPPORTED, "mounts: more than %d",
                       JOB_MOUNTS_MAX);
    j->mounts = mem_calloc(jsn_count(mounts) + 1, sizeof *j->mounts);
    while (jsn_next(mounts, &it)) {
        struct job_mount *m = &j->mounts[j->n_mounts++];

        m->target = mem_strdup(it.key);
        if (take_kind(it.value, j, m, err) < 0)
            return err_prefix(err, "mounts: %s", it.key);
    }
    qsort(j->mounts, j->n_mounts, sizeof *j->mounts, by_target);
    return check_output(j, err);
}
