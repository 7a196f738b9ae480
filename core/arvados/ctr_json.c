/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decoding container records.
 *
 * A user can commit a request whose container our types cannot hold (a count
 * that is a fraction, a device list beyond all measure). Such a record must
 * neither stop the queue behind it nor be retried for ever, so a bad field
 * never fails the page: the first complaint is written into `invalid`, and
 * the dispatcher cancels the container with that text.
 *
 * Called by the API client, on the loop or, for large replies, on a thread of
 * its pool. Pure.
 */

#include "core/arvados/ctr_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/model/ctr.h"

static void complain(struct ctr *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(struct ctr *c, const char *fmt, ...)
{
    va_list ap;

    if (c->invalid[0])
        return;
    va_start(ap, fmt);
    vsnprintf(c->invalid, sizeof c->invalid, fmt, ap);
    va_end(ap);
}

/* `in` names the object for messages: "" or "runtime_constraints.". */
static void get_i64(struct ctr *c, const struct jsn *j, const char *in,
                    const char *key, int64_t min, int64_t max, int64_t *ret)
{
    int64_t v = *ret;

    if (jsn_opt_i64(j, key, &v, NULL) < 0)
        complain(c, "%s%s is not an integer", in, key);
    else if (v < min || v > max)
        complain(c, "%s%s is out of range", in, key);
    else
        *ret = v;
}

static void get_i32(struct ctr *c, const struct jsn *j, const char *in,
                    const char *key, int32_t min, int32_t *ret)
{
    int64_t v = *ret;

    get_i64(c, j, in, key, min, INT32_MAX, &v);
    *ret = (int32_t) v;
}

static void get_bool(struct ctr *c, const struct jsn *j, const char *in,
                     const char *key, bool *ret)
{
    if (jsn_opt_bool(j, key, ret, NULL) < 0)
        complain(c, "%s%s is not true or false", in, key);
}

static void get_str(struct ctr *c, const struct jsn *j, const char *in,
                    const char *key, char *ret, size_t size)
{
    const char *s = "";

    if (jsn_opt_str(j, key, &s, NULL) < 0)
        complain(c, "%s%s is not a string", in, key);
    else if (strlen(s) >= size)
        complain(c, "%s%s is too long", in, key);
    else
        text_copy(ret, s, size);
}

/* The member if it is an object; NULL also when absent. */
static const struct jsn *get_obj(struct ctr *c, const struct jsn *j,
                                 const char *key)
{
    const struct jsn *o = jsn_get(j, key);

    if (o && jsn_type(o) != JSN_OBJECT) {
        complain(c, "%s is not an object", key);
        return NULL;
    }
    return o;
}

static void get_state(struct ctr *c, const struct jsn *j)
{
    const char *s = NULL;

    if (jsn_opt_str(j, "state", &s, NULL) < 0 ||
        (s && ctr_state_of(s, &c->state) < 0))
        complain(c, "state is unknown: %.40s", s ? s : "not a string");
}

static void get_created(struct ctr *c, const struct jsn *j)
{
    const char *s = NULL;

    if (jsn_opt_str(j, "created_at", &s, NULL) < 0 ||
        (s && text_parse_time(s, &c->created_us, NULL) < 0))
        complain(c, "created_at is not a time");
}

static void get_targets(struct ctr *c, const struct jsn *gpu, const char *in,
                        const char *key)
{
    const struct jsn *a = jsn_get(gpu, key);
    const char *s;

    if (a && jsn_type(a) != JSN_ARRAY)
        complain(c, "%s%s is not an array", in, key);
    if (jsn_count(a) > CTR_GPU_TARGETS) {
        complain(c, "%s%s has more than %d elements", in, key,
                 CTR_GPU_TARGETS);
        return;
    }
    for (size_t i = 0; jsn_type(a) == JSN_ARRAY && i < jsn_count(a); i++) {
        if (jsn_as_str(jsn_at(a, i), &s, NULL) < 0 ||
            strlen(s) >= sizeof c->gpu_targets[0]) {
            complain(c, "%s%s has a malformed element", in, key);
            return;
        }
        text_copy(c->gpu_targets[c->gpu_target_count++], s,
                  sizeof c->gpu_targets[0]);
    }
}

static void get_gpu(struct ctr *c, const struct jsn *rc)
{
    static const char in[] = "runtime_constraints.gpu.";
    static const char in_cuda[] = "runtime_constraints.cuda.";
    const struct jsn *gpu = get_obj(c, rc, "gpu");
    const struct jsn *cuda = get_obj(c, rc, "cuda");

    get_i32(c, gpu, in, "device_count", 0, &c->gpu_count);
    if (c->gpu_count > 0) {
        get_str(c, gpu, in, "stack", c->gpu_stack, sizeof c->gpu_stack);
        get_i64(c, gpu, in, "vram", 0, INT64_MAX, &c->gpu_vram);
        get_str(c, gpu, in, "driver_version", c->gpu_driver,
                sizeof c->gpu_driver);
        get_targets(c, gpu, in, "hardware_target");
        return;
    }
    /* The form from before `gpu`; a server fills it with zeros. */
    get_i32(c, cuda, in_cuda, "device_count", 0, &c->gpu_count);
    if (c->gpu_count == 0)
        return;
    text_copy(c->gpu_stack, "cuda", sizeof c->gpu_stack);
    get_str(c, cuda, in_cuda, "driver_version", c->gpu_driver,
            sizeof c->gpu_driver);
    if (jsn_has(cuda, "hardware_capability")) {
        get_str(c, cuda, in_cuda, "hardware_capability", c->gpu_targets[0],
                sizeof c->gpu_targets[0]);
        c->gpu_target_count = c->gpu_targets[0][0] ? 1 : 0;
    }
}

static void get_constraints(struct ctr *c, const struct jsn *j)
{
    static const char in[] = "runtime_constraints.";
    const struct jsn *rc = get_obj(c, j, "runtime_constraints");

    if (!rc)
        return;
    get_i64(c, rc, in, "vcpus", 0, INT32_MAX, &c->vcpus);
    get_i64(c, rc, in, "ram", 0, INT64_MAX, &c->ram);
    get_i64(c, rc, in, "keep_cache_ram", 0, INT64_MAX, &c->keep_cache_ram);
    get_i64(c, rc, in, "keep_cache_disk", 0, INT64_MAX, &c->keep_cache_disk);
    get_bool(c, rc, in, "API", &c->api);
    get_gpu(c, rc);
}

static void get_scheduling(struct ctr *c, const struct jsn *j)
{
    static const char in[] = "scheduling_parameters.";
    const struct jsn *sp = get_obj(c, j, "scheduling_parameters");

    get_bool(c, sp, in, "preemptible", &c->preemptible);
    get_bool(c, sp, in, "supervisor", &c->supervisor);
    get_i64(c, sp, in, "max_run_time", 0, INT32_MAX, &c->max_run_time_s);
}

/* Scratch space: the sum over mounts of kind tmp. */
static void get_mounts(struct ctr *c, const struct jsn *j)
{
    const struct jsn *mounts = get_obj(c, j, "mounts");
    struct jsn_iter it = {0};

    if (!mounts)
        return;
    c->mounts_known = true;
    while (jsn_next(mounts, &it)) {
        const char *kind = "";
        int64_t capacity = 0;

        if (jsn_type(it.value) != JSN_OBJECT ||
            jsn_opt_str(it.value, "kind", &kind, NULL) < 0) {
            complain(c, "mounts: %.60s is malformed", it.key);
            continue;
        }
        if (strcmp(kind, "tmp") != 0)
            continue;
        get_i64(c, it.value, "mounts: ", "capacity", 0, INT64_MAX, &capacity);
        if (__builtin_add_overflow(c->tmp_capacity, capacity,
                                   &c->tmp_capacity))
            complain(c, "mounts: the sum of capacities is out of range");
    }
}

static void get_exit_code(struct ctr *c, const struct jsn *j)
{
    if (!jsn_get(j, "exit_code"))
        return;
    c->has_exit_code = true;
    get_i32(c, j, "", "exit_code", INT32_MIN, &c->exit_code);
}

int ctr_parse(const struct jsn *j, struct ctr *ret, struct err *err)
{
    struct ctr c = {0};
    const char *uuid;

    if (jsn_type(j) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "a container is not an object");
    if (jsn_str(j, "uuid", &uuid, err) < 0)
        return -1;
    if (!text_is_uuid(uuid, "dz642"))
        return err_set(err, ERR_INVALID, "%.40s is no container uuid", uuid);
    text_copy(c.uuid, uuid, sizeof c.uuid);
    get_state(&c, j);
    get_i64(&c, j, "", "priority", 0, INT64_MAX, &c.priority);
    get_str(&c, j, "", "locked_by_uuid", c.locked_by, sizeof c.locked_by);
    get_i32(&c, j, "", "lock_count", 0, &c.lock_count);
    get_created(&c, j);
    get_i64(&c, j, "", "attempt", 0, INT64_MAX, &c.attempt);
    get_exit_code(&c, j);
    get_str(&c, j, "", "container_image", c.image, sizeof c.image);
    get_constraints(&c, j);
    get_scheduling(&c, j);
    get_mounts(&c, j);
    *ret = c;
    return 0;
}
