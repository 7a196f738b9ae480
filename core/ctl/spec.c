/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container request that `submit` makes of its options (Arvados API,
 * "container_requests"). Defaults are small and closed: one CPU, 256 MiB, no
 * network, no re-use of earlier results. Whatever is wrong with an option is
 * said here, before anything is sent; what only the server can judge (names
 * of images, limits) it says itself.
 */
#include "core/ctl/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/ctl/ctl.h"
#include "core/ctl/verbs.h"

enum { SPEC_FILE_MAX = 1 << 20 };

static const char *output_path(const struct ctl *ctl)
{
    const char *path = ctl_opt(ctl, "output");

    return path ? path : "/out";
}

/* "LEFT=RIGHT" with LEFT not empty; the right part, or NULL and a line. */
static const char *split(const char *option, const char *value, char **left)
{
    const char *equals = strchr(value, '=');

    if (!equals || equals == value) {
        ctl_fail(CTL_USAGE, "--%s: \"%s\": NAME=VALUE wanted", option, value);
        return NULL;
    }
    *left = mem_strndup(value, (size_t) (equals - value));
    return equals + 1;
}

static int write_env(const struct ctl *ctl, struct jsn_w *w)
{
    const char *v;

    jsn_w_obj(w, "environment");
    for (size_t i = 0; (v = ctl_opt_at(ctl, "env", i)); i++) {
        CLEANUP(mem_free) char *name = NULL;
        const char *value = split("env", v, &name);

        if (!value)
            return CTL_USAGE;
        jsn_w_str(w, name, value);
    }
    jsn_w_end_obj(w);
    return 0;
}

static void write_tmp(struct jsn_w *w, const char *path, int64_t capacity)
{
    jsn_w_obj(w, path);
    jsn_w_str(w, "kind", "tmp");
    jsn_w_i64(w, "capacity", capacity);
    jsn_w_end_obj(w);
}

static void write_text(struct jsn_w *w, const char *path, const char *text)
{
    jsn_w_obj(w, path);
    jsn_w_str(w, "kind", "text");
    jsn_w_str(w, "content", text);
    jsn_w_end_obj(w);
}

static int write_tmps(const struct ctl *ctl, struct jsn_w *w)
{
    const char *v;

    for (size_t i = 0; (v = ctl_opt_at(ctl, "tmp", i)); i++) {
        CLEANUP(mem_free) char *path = NULL;
        const char *size = split("tmp", v, &path);
        int64_t bytes;
        struct err err;

        if (!size)
            return CTL_USAGE;
        if (text_parse_size(size, &bytes, &err) < 0)
            return ctl_fail(CTL_USAGE, "--tmp: %s", err.text);
        write_tmp(w, path, bytes);
    }
    return 0;
}

static int write_texts(const struct ctl *ctl, struct jsn_w *w)
{
    const char *v;

    for (size_t i = 0; (v = ctl_opt_at(ctl, "text", i)); i++) {
        CLEANUP(mem_free) char *path = NULL;
        const char *text = split("text", v, &path);

        if (!text)
            return CTL_USAGE;
        write_text(w, path, text);
    }
    return 0;
}

/* A local file's text: a JSON string, so UTF-8 without NUL. */
static int read_text(const char *file, struct buf *out)
{
    CLEANUP(mem_close) int fd = open(file, O_RDONLY | O_CLOEXEC);

    while (fd >= 0) {
        char *room = buf_reserve(out, 65536);
        ssize_t n = room ? read(fd, room, 65536) : 0;

        if (!room)
            return ctl_fail(CTL_USAGE, "--file-text: %s: more than 1 MiB",
                            file);
        if (n < 0)
            break;
        if (n == 0 && text_is_utf8(out->data, out->len))
            return 0;
        if (n == 0)
            return ctl_fail(CTL_USAGE, "--file-text: %s: not a text in UTF-8",
                            file);
        buf_add(out, (size_t) n);
    }
    return ctl_fail(CTL_USAGE, "--file-text: %s: %s", file, strerror(errno));
}

static int write_file_texts(const struct ctl *ctl, struct jsn_w *w)
{
    const char *v;

    for (size_t i = 0; (v = ctl_opt_at(ctl, "file-text", i)); i++) {
        CLEANUP(mem_free) char *path = NULL;
        CLEANUP(buf_fini) struct buf text;
        const char *file = split("file-text", v, &path);
        int rc;

        buf_init(&text, SPEC_FILE_MAX + 65536);
        if (!file)
            return CTL_USAGE;
        rc = read_text(file, &text);
        if (rc)
            return rc;
        write_text(w, path, text.data);
    }
    return 0;
}

static int write_mounts(const struct ctl *ctl, struct jsn_w *w)
{
    int64_t scratch;
    int rc;

    if (ctl_opt_size(ctl, "scratch", 64 << 20, &scratch) < 0)
        return CTL_USAGE;
    jsn_w_obj(w, "mounts");
    write_tmp(w, output_path(ctl), scratch);
    rc = write_tmps(ctl, w);
    if (!rc)
        rc = write_texts(ctl, w);
    if (!rc)
        rc = write_file_texts(ctl, w);
    jsn_w_end_obj(w);
    return rc;
}

static int write_constraints(const struct ctl *ctl, struct jsn_w *w)
{
    int64_t vcpus, ram;

    if (ctl_opt_i64(ctl, "vcpus", 1, 1, 1000000, &vcpus) < 0 ||
        ctl_opt_size(ctl, "ram", 256 << 20, &ram) < 0)
        return CTL_USAGE;
    jsn_w_obj(w, "runtime_constraints");
    jsn_w_i64(w, "vcpus", vcpus);
    jsn_w_i64(w, "ram", ram);
    jsn_w_bool(w, "API", ctl_has(ctl, "network"));
    jsn_w_end_obj(w);
    return 0;
}

static int write_scheduling(const struct ctl *ctl, struct jsn_w *w)
{
    int64_t ms;

    if (ctl_opt_duration(ctl, "max-run-time", 0, &ms) < 0)
        return CTL_USAGE;
    jsn_w_obj(w, "scheduling_parameters");
    jsn_w_bool(w, "preemptible", ctl_has(ctl, "preemptible"));
    jsn_w_i64(w, "max_run_time", (ms + 999) / 1000);
    jsn_w_end_obj(w);
    return 0;
}

static int write_request(const struct ctl *ctl, struct jsn_w *w)
{
    const char *image = ctl_opt(ctl, "image"), *cwd = ctl_opt(ctl, "cwd");
    int64_t priority, retries;
    int rc;

    if (ctl_opt_i64(ctl, "priority", 500, 0, 1000, &priority) < 0 ||
        ctl_opt_i64(ctl, "retries", 3, 1, 1000, &retries) < 0)
        return CTL_USAGE;
    jsn_w_str(w, "name", ctl_opt(ctl, "name"));
    jsn_w_str(w, "state", "Committed");
    jsn_w_i64(w, "priority", priority);
    jsn_w_bool(w, "use_existing", ctl_has(ctl, "use-existing"));
    jsn_w_i64(w, "container_count_max", retries);
    jsn_w_str(w, "container_image", image ? image : "host");
    jsn_w_arr(w, "command");
    for (size_t i = 0; i < ctl->n_args; i++)
        jsn_w_str(w, NULL, ctl->args[i]);
    jsn_w_end_arr(w);
    jsn_w_str(w, "cwd", cwd ? cwd : output_path(ctl));
    jsn_w_str(w, "output_path", output_path(ctl));
    rc = write_env(ctl, w);
    if (!rc)
        rc = write_mounts(ctl, w);
    if (!rc)
        rc = write_constraints(ctl, w);
    return rc ? rc : write_scheduling(ctl, w);
}

int spec_write(const struct ctl *ctl, struct buf *out)
{
    struct jsn_w w;
    int rc;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_obj(&w, "container_request");
    rc = write_request(ctl, &w);
    jsn_w_end_obj(&w);
    jsn_w_end_obj(&w);
    if (!rc && out->over)
        rc = ctl_fail(CTL_USAGE, "the request is too large");
    return rc;
}
