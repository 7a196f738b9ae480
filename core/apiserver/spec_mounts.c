/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts of a request: what may be mounted where.
 *
 * A target is an absolute path, or stdin, stdout, stderr. Kinds: tmp (a fresh
 * writable folder), json and text (a literal file, also stdin), file (stdout
 * and stderr only: a file under the output path). Arvados' collection and keep
 * mounts need Keep; they and anything unknown are refused, because a container
 * that runs without an input it asked for would give a wrong result. Fields
 * that do not belong to a kind may be there with a zero value, as clients send
 * whole records.
 *
 * Pure; any thread.
 */
#include <string.h>

#include "core/apiserver/spec.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"

enum { PATH_MAX_BYTES = 4096 };

enum {
    K_TMP = 1 << 0,
    K_FILE = 1 << 1,
    K_JSON = 1 << 2,
    K_TEXT = 1 << 3
};

static const struct {
    const char *name;
    unsigned bit;
} kinds[] = {{"tmp", K_TMP}, {"file", K_FILE}, {"json", K_JSON},
             {"text", K_TEXT}};

/* Fields of a mount and the kinds they mean something for. */
static const struct {
    const char *name;
    unsigned kinds;
} fields[] = {
    {"kind", K_TMP | K_FILE | K_JSON | K_TEXT},
    {"exclude_from_output", K_TMP | K_FILE | K_JSON | K_TEXT},
    {"capacity", K_TMP},
    {"device_type", K_TMP},
    {"path", K_FILE},
    {"content", K_JSON | K_TEXT},
    {"uuid", 0},
    {"portable_data_hash", 0},
    {"writable", 0},
    {"commit", 0},
    {"git_url", 0},
    {"repository_name", 0},
};

static bool is_zero(const struct jsn *v)
{
    const char *s = "";
    int64_t i = 0;
    double f = 0;
    bool b = false;

    switch (jsn_type(v)) {
    case JSN_NULL:
        return true;
    case JSN_BOOL:
        jsn_as_bool(v, &b, NULL);
        return !b;
    case JSN_INT:
        jsn_as_i64(v, &i, NULL);
        return i == 0;
    case JSN_DOUBLE:
        jsn_as_f64(v, &f, NULL);
        return f <= 0 && f >= 0;
    case JSN_STRING:
        jsn_as_str(v, &s, NULL);
        return *s == '\0';
    case JSN_ARRAY:
    case JSN_OBJECT:
        return jsn_count(v) == 0;
    }
    return false;
}

static int check_fields(const struct jsn *m, unsigned kind,
                        const char *kind_name, struct err *err)
{
    struct jsn_iter it = {0};

    while (jsn_next(m, &it)) {
        size_t i = 0;
        while (i < MEM_COUNT(fields) && strcmp(fields[i].name, it.key) != 0)
            i++;
        if (i == MEM_COUNT(fields))
            return err_set(err, ERR_INVALID, "unknown field '%.60s'", it.key);
        if (!(fields[i].kinds & kind) && !is_zero(it.value))
            return err_set(err, ERR_INVALID, "'%s' does not go with kind %s",
                           it.key, kind_name);
    }
    return 0;
}

static int check_tmp(const struct jsn *m, struct err *err)
{
    static const char *const types[] = {"", "ram", "ssd", "disk", "network"};
    const char *type = "";
    int64_t capacity = 0;

    if (jsn_opt_i64(m, "capacity", &capacity, err) < 0 ||
        jsn_opt_str(m, "device_type", &type, err) < 0)
        return -1;
    if (capacity < 0)
        return err_set(err, ERR_INVALID, "capacity must not be negative");
    for (size_t i = 0; i < MEM_COUNT(types); i++)
        if (strcmp(types[i], type) == 0)
            return 0;
    return err_set(err, ERR_INVALID, "unknown device_type '%.30s'", type);
}

static int check_content(const struct jsn *m, unsigned kind, struct err *err)
{
    const char *text;

    if (!jsn_has(m, "content"))
        return err_set(err, ERR_INVALID, "content is missing");
    if (kind == K_TEXT)
        return jsn_str(m, "content", &text, err);
    return 0;
}

/* Absolute, without empty, "." or ".." parts. */
static bool is_clean_path(const char *path)
{
    size_t n;

    if (path[0] != '/' || strlen(path) > PATH_MAX_BYTES)
        return false;
    for (const char *p = path; *p == '/'; p += n) {
        p++;
        n = strcspn(p, "/");
        if ((n == 0 && (*p || p != path + 1)) ||
            (n == 1 && p[0] == '.') ||
            (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
    }
    return true;
}

/* stdout and stderr go to a file below the output path. */
static int check_file(const struct jsn *m, const char *output_path,
                      struct err *err)
{
    size_t n = strlen(output_path);
    const char *path;

    if (jsn_str(m, "path", &path, err) < 0)
        return -1;
    while (n > 1 && output_path[n - 1] == '/')
        n--;
    if (!is_clean_path(path) || n == 0 ||
        strncmp(path, output_path, n) != 0 || path[n] != '/' ||
        path[n + 1] == '\0')
        return err_set(err, ERR_INVALID,
                       "path '%.200s' is not a file below output_path", path);
    return 0;
}

static int check_target(const char *target, unsigned kind, bool secret,
                        struct err *err)
{
    bool in = strcmp(target, "stdin") == 0;
    bool out = strcmp(target, "stdout") == 0 || strcmp(target, "stderr") == 0;

    if (out && secret)
        return err_set(err, ERR_INVALID, "cannot be secret");
    if (out != (kind == K_FILE))
        return err_set(err, ERR_INVALID,
                       "kind file goes with stdout and stderr, and they with "
                       "kind file only");
    if (in && !(kind & (K_JSON | K_TEXT)))
        return err_set(err, ERR_INVALID, "must be of kind json or text");
    if (!in && !out && !is_clean_path(target))
        return err_set(err, ERR_INVALID,
                       "is no absolute path, stdin, stdout or stderr");
    return 0;
}

static int check_mount(const char *target, const struct jsn *m,
                       const char *output_path, bool secret, struct err *err)
{
    const char *name;
    unsigned kind = 0;

    if (jsn_type(m) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "must be an object");
    if (jsn_str(m, "kind", &name, err) < 0)
        return -1;
    for (size_t i = 0; i < MEM_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            kind = kinds[i].bit;
    if (!kind || (secret && !(kind & (K_JSON | K_TEXT))))
        return err_set(err, ERR_INVALID,
                       "kind '%.30s' is not supported %s", name,
                       secret ? "for secrets" : "by this server");
    if (check_target(target, kind, secret, err) < 0 ||
        check_fields(m, kind, name, err) < 0)
        return -1;
    if (kind == K_TMP)
        return check_tmp(m, err);
    if (kind == K_FILE)
        return check_file(m, output_path, err);
    return check_content(m, kind, err);
}

int spec_mounts(const struct jsn *mounts, const char *output_path,
                bool secret, struct err *err)
{
    struct jsn_iter it = {0};

    if (jsn_type(mounts) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "must be an object");
    while (jsn_next(mounts, &it))
        if (check_mount(it.key, it.value, output_path, secret, err) < 0)
            return err_prefix(err, "%.200s", it.key);
    return 0;
}
