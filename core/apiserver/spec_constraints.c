/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_constraints and scheduling_parameters: read strictly, written in
 * full.
 *
 * A client names what matters to it; the stored form names everything, with
 * zero values for the rest and keys in order, so that readers need no defaults
 * and equal wishes are equal texts. Unknown keys are refused: a misspelt "ram"
 * must not become a container without memory. A range [min, max] counts as its
 * first value. The legacy `cuda` is translated to `gpu`.
 *
 * Pure; any thread.
 */
#include <string.h>

#include "core/apiserver/spec.h"
#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"

enum { TEXT_MAX = 64 * 1024, LIST_MAX = 64 };

/* A list of short texts, borrowed from a parsed value. */
struct texts {
    const char *v[LIST_MAX];
    size_t n;
};

struct constraints {
    int64_t vcpus, ram, keep_cache_ram, keep_cache_disk;
    bool api;
    int64_t gpu_count, gpu_vram;
    const char *gpu_stack, *gpu_driver;
    struct texts gpu_targets;
    int64_t cuda_count;
    const char *cuda_driver, *cuda_capability;
};

struct scheduling {
    int64_t max_run_time;
    struct texts partitions;
    bool preemptible, supervisor;
};

static int check_keys(const struct jsn *j, const char *const *known,
                      size_t n, struct err *err)
{
    struct jsn_iter it = {0};

    if (jsn_type(j) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "must be an object");
    while (jsn_next(j, &it)) {
        size_t i = 0;
        while (i < n && strcmp(known[i], it.key) != 0)
            i++;
        if (i == n)
            return err_set(err, ERR_INVALID, "unknown key '%.60s'", it.key);
    }
    return 0;
}

/* A number that is not negative, or a range of them. */
static int read_size(const struct jsn *j, const char *key, int64_t *ret,
                     struct err *err)
{
    const struct jsn *v = jsn_get(j, key);

    if (!v)
        return 0;
    if (jsn_type(v) == JSN_ARRAY)
        v = jsn_at(v, 0);
    if (jsn_as_i64(v, ret, err) < 0)
        return err_prefix(err, "%s", key);
    if (*ret < 0)
        return err_set(err, ERR_INVALID, "%s must not be negative", key);
    return 0;
}

static int read_texts(const struct jsn *j, const char *key,
                      struct texts *ret, struct err *err)
{
    const struct jsn *v = jsn_get(j, key);

    if (!v)
        return 0;
    if (jsn_type(v) != JSN_ARRAY || jsn_count(v) > LIST_MAX)
        return err_set(err, ERR_INVALID,
                       "%s must be an array of at most %d strings", key,
                       LIST_MAX);
    for (size_t i = 0; i < jsn_count(v); i++)
        if (jsn_as_str(jsn_at(v, i), &ret->v[ret->n++], err) < 0)
            return err_prefix(err, "%s", key);
    return 0;
}

static void write_texts(struct jsn_w *w, const char *key,
                        const struct texts *t)
{
    jsn_w_arr(w, key);
    for (size_t i = 0; i < t->n; i++)
        jsn_w_str(w, NULL, t->v[i]);
    jsn_w_end_arr(w);
}

/* -------------------------------------------------------- constraints -- */

static int read_gpu(const struct jsn *j, struct constraints *c,
                    struct err *err)
{
    static const char *const known[] = {"stack", "driver_version",
                                        "hardware_target", "device_count",
                                        "vram"};
    const struct jsn *g = jsn_get(j, "gpu");

    if (!g)
        return 0;
    if (check_keys(g, known, MEM_COUNT(known), err) < 0 ||
        jsn_opt_str(g, "stack", &c->gpu_stack, err) < 0 ||
        jsn_opt_str(g, "driver_version", &c->gpu_driver, err) < 0 ||
        read_texts(g, "hardware_target", &c->gpu_targets, err) < 0 ||
        read_size(g, "device_count", &c->gpu_count, err) < 0 ||
        read_size(g, "vram", &c->gpu_vram, err) < 0)
        return err_prefix(err, "gpu");
    if (*c->gpu_stack && strcmp(c->gpu_stack, "cuda") != 0 &&
        strcmp(c->gpu_stack, "rocm") != 0)
        return err_set(err, ERR_INVALID, "gpu: stack must be cuda or rocm");
    if (c->gpu_count > 0 && !*c->gpu_stack)
        return err_set(err, ERR_INVALID, "gpu: stack is missing");
    return 0;
}

static int read_cuda(const struct jsn *j, struct constraints *c,
                     struct err *err)
{
    static const char *const known[] = {"device_count", "driver_version",
                                        "hardware_capability"};
    const struct jsn *g = jsn_get(j, "cuda");

    if (!g)
        return 0;
    if (check_keys(g, known, MEM_COUNT(known), err) < 0 ||
        read_size(g, "device_count", &c->cuda_count, err) < 0 ||
        jsn_opt_str(g, "driver_version", &c->cuda_driver, err) < 0 ||
        jsn_opt_str(g, "hardware_capability", &c->cuda_capability, err) < 0)
        return err_prefix(err, "cuda");
    if (c->cuda_count == 0 || c->gpu_count > 0)
        return 0;
    c->gpu_stack = "cuda";
    c->gpu_count = c->cuda_count;
    c->gpu_driver = c->cuda_driver;
    c->gpu_targets = (struct texts){.v = {c->cuda_capability}, .n = 1};
    return 0;
}

static int read_constraints(const struct jsn *j, struct constraints *c,
                            struct err *err)
{
    static const char *const known[] = {
        "vcpus", "ram", "keep_cache_ram", "keep_cache_disk", "API", "gpu",
        "cuda"};

    *c = (struct constraints){.gpu_stack = "", .gpu_driver = "",
                              .cuda_driver = "", .cuda_capability = ""};
    if (check_keys(j, known, MEM_COUNT(known), err) < 0 ||
        read_size(j, "vcpus", &c->vcpus, err) < 0 ||
        read_size(j, "ram", &c->ram, err) < 0 ||
        read_size(j, "keep_cache_ram", &c->keep_cache_ram, err) < 0 ||
        read_size(j, "keep_cache_disk", &c->keep_cache_disk, err) < 0 ||
        jsn_opt_bool(j, "API", &c->api, err) < 0 ||
        read_gpu(j, c, err) < 0)
        return -1;
    return read_cuda(j, c, err);
}

/* Keys in byte order: the text is canonical. */
static void write_constraints(const struct constraints *c, bool with_cache,
                              struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_bool(&w, "API", c->api);
    jsn_w_obj(&w, "cuda");
    jsn_w_i64(&w, "device_count", c->cuda_count);
    jsn_w_str(&w, "driver_version", c->cuda_driver);
    jsn_w_str(&w, "hardware_capability", c->cuda_capability);
    jsn_w_end_obj(&w);
    jsn_w_obj(&w, "gpu");
    jsn_w_i64(&w, "device_count", c->gpu_count);
    jsn_w_str(&w, "driver_version", c->gpu_driver);
    write_texts(&w, "hardware_target", &c->gpu_targets);
    jsn_w_str(&w, "stack", c->gpu_stack);
    jsn_w_i64(&w, "vram", c->gpu_vram);
    jsn_w_end_obj(&w);
    if (with_cache) {
        jsn_w_i64(&w, "keep_cache_disk", c->keep_cache_disk);
        jsn_w_i64(&w, "keep_cache_ram", c->keep_cache_ram);
    }
    jsn_w_i64(&w, "ram", c->ram);
    jsn_w_i64(&w, "vcpus", c->vcpus);
    jsn_w_end_obj(&w);
}

int spec_constraints(struct store_row *row, unsigned col, bool commit,
                     struct err *err)
{
    const char *text = store_str(row, col);
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), err);
    CLEANUP(buf_fini) struct buf full;
    struct constraints c;

    buf_init(&full, TEXT_MAX);
    if (!j || read_constraints(j, &c, err) < 0)
        return err_prefix(err, "runtime_constraints");
    if (commit && (c.vcpus < 1 || c.ram < 1))
        return err_set(err, ERR_INVALID,
                       "runtime_constraints: vcpus and ram must be positive "
                       "integers");
    write_constraints(&c, true, &full);
    if (full.over)
        return err_set(err, ERR_INVALID, "runtime_constraints: too long");
    store_set_str(row, col, full.data);
    return 0;
}

void spec_constraints_key(const char *full, struct buf *out)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(full, strlen(full), NULL);
    struct constraints c;

    if (j && read_constraints(j, &c, NULL) == 0)
        write_constraints(&c, false, out);
}

/* --------------------------------------------------------- scheduling -- */

static int read_scheduling(const struct jsn *j, struct scheduling *s,
                           struct err *err)
{
    static const char *const known[] = {"partitions", "preemptible",
                                        "max_run_time", "supervisor"};

    *s = (struct scheduling){0};
    if (check_keys(j, known, MEM_COUNT(known), err) < 0 ||
        read_size(j, "max_run_time", &s->max_run_time, err) < 0 ||
        read_texts(j, "partitions", &s->partitions, err) < 0 ||
        jsn_opt_bool(j, "preemptible", &s->preemptible, err) < 0 ||
        jsn_opt_bool(j, "supervisor", &s->supervisor, err) < 0)
        return -1;
    return 0;
}

static int write_scheduling(const struct scheduling *s, struct store_row *row,
                            unsigned col)
{
    CLEANUP(buf_fini) struct buf out;
    struct jsn_w w;

    buf_init(&out, TEXT_MAX);
    jsn_w_init(&w, &out);
    jsn_w_obj(&w, NULL);
    jsn_w_i64(&w, "max_run_time", s->max_run_time);
    write_texts(&w, "partitions", &s->partitions);
    jsn_w_bool(&w, "preemptible", s->preemptible);
    jsn_w_bool(&w, "supervisor", s->supervisor);
    jsn_w_end_obj(&w);
    if (out.over)
        return -1;
    store_set_str(row, col, out.data);
    return 0;
}

int spec_scheduling(struct store_row *row, unsigned col, struct err *err)
{
    const char *text = store_str(row, col);
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), err);
    struct scheduling s;

    if (!j || read_scheduling(j, &s, err) < 0)
        return err_prefix(err, "scheduling_parameters");
    if (write_scheduling(&s, row, col) < 0)
        return err_set(err, ERR_INVALID, "scheduling_parameters: too long");
    return 0;
}

void spec_scheduling_supervisor(struct store_row *row, unsigned col)
{
    const char *text = store_str(row, col);
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), NULL);
    struct scheduling s;

    if (!j || read_scheduling(j, &s, NULL) < 0)
        return;
    s.supervisor = true;
    write_scheduling(&s, row, col);
}

static void merge_partitions(struct texts *a, const struct texts *b)
{
    if (a->n == 0 || b->n == 0) {
        a->n = 0; /* one of them does not care */
        return;
    }
    for (size_t i = 0; i < b->n; i++) {
        size_t k = 0;
        while (k < a->n && strcmp(a->v[k], b->v[i]) != 0)
            k++;
        if (k == a->n && a->n < LIST_MAX)
            a->v[a->n++] = b->v[i];
    }
}

void spec_scheduling_merge(struct store_row *row, unsigned col,
                           const char *other)
{
    const char *text = store_str(row, col);
    CLEANUP(jsn_cleanup) struct jsn *ja = jsn_parse(text, strlen(text), NULL);
    CLEANUP(jsn_cleanup) struct jsn *jb = jsn_parse(other, strlen(other),
                                                    NULL);
    struct scheduling a, b;

    if (!ja || !jb || read_scheduling(ja, &a, NULL) < 0 ||
        read_scheduling(jb, &b, NULL) < 0)
        return;
    merge_partitions(&a.partitions, &b.partitions);
    a.preemptible = a.preemptible && b.preemptible;
    a.supervisor = a.supervisor || b.supervisor;
    if (a.max_run_time == 0 || b.max_run_time == 0)
        a.max_run_time = 0;
    else if (b.max_run_time > a.max_run_time)
        a.max_run_time = b.max_run_time;
    write_scheduling(&a, row, col);
}
