/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a container to the instance types that may run it.
 *
 * Two filters, then a price window: traits (preemptible or not, kind of GPU)
 * must be equal, sizes must be enough, and the price must lie within
 * MaximumPriceFactor of the cheapest that is left. The table is sorted by
 * price, so the window is a prefix of what passes.
 *
 * When nothing is left, somebody has to read why. The largest machine that
 * could be made of all types with the right traits is compared with the
 * need: if even that lacks something, this is the constraint to name;
 * otherwise each figure exists, but no single type has them together.
 *
 * Called once per container and record by cqueue, never in a pass. Pure.
 */

#include "core/dispatch/choose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/model/ctr.h"
#include "core/model/itypes.h"
#include "core/model/need.h"

/* "12.4" as a number: -1 when it is none. */
static double version_of(const char *text)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return -1;
    double v = strtod(text, &end);

    return *end == '\0' ? v : -1;
}

static bool target_matches(const struct ctr *c, const struct itype *it)
{
    bool cuda = strcmp(c->gpu_stack, "cuda") == 0;

    if (cuda && c->gpu_target_count == 1) {
        double want = version_of(c->gpu_targets[0]);

        return want >= 0 && version_of(it->gpu_target) >= want;
    }
    for (int i = 0; i < c->gpu_target_count && i < CTR_GPU_TARGETS; i++)
        if (strcmp(c->gpu_targets[i], it->gpu_target) == 0)
            return true;
    return false;
}

/* All about a type that is not a size. NULL = fine, else what differs. */
static const char *traits_differ(const struct ctr *c, const struct itype *it)
{
    if (c->preemptible != it->preemptible)
        return c->preemptible ? "no preemptible instance type is configured"
                              : "only preemptible instance types are "
                                "configured";
    if (strcmp(c->gpu_stack, it->gpu_stack) != 0)
        return c->gpu_stack[0] != '\0'
                   ? "no instance type has the GPU stack that is asked for"
                   : "only instance types with a GPU are configured";
    if (c->gpu_count <= 0)
        return NULL;
    double have = version_of(it->gpu_driver);
    double want = version_of(c->gpu_driver);

    if (have < 0 || want < 0 || have < want)
        return "no instance type has a GPU driver of the version asked for";
    return target_matches(c, it) ? NULL : "no instance type has a GPU of the "
                                          "hardware target asked for";
}

static void widen(int64_t *most, int64_t v)
{
    if (v > *most)
        *most = v;
}

/* The imaginary largest machine: each figure the best of all types that have
 * the right traits. Returns what differs when there is no such type. */
static const char *largest(const struct ctr *c, const struct itypes *its,
                           struct need *ret)
{
    const char *differs = NULL;
    bool any = false;

    *ret = (struct need) {0};
    for (size_t i = 0; i < its->n; i++) {
        const char *d = traits_differ(c, &its->v[i]);
        struct need n;

        if (d) {
            differs = d;
            continue;
        }
        any = true;
        need_capacity(&its->v[i], &n);
        widen(&ret->vcpus, n.vcpus);
        widen(&ret->ram, n.ram);
        widen(&ret->scratch, n.scratch);
        widen(&ret->gpus, n.gpus);
        widen(&ret->vram, n.vram);
    }
    return any ? NULL : differs;
}

static void explain_none(const struct ctr *c, const struct need *want,
                         const struct itypes *its, struct err *err)
{
    struct need most;
    char lack[160];

    if (its->n == 0) {
        err_set(err, ERR_CONFIG, "no instance types are configured");
        return;
    }
    const char *differs = largest(c, its, &most);

    if (differs) {
        err_set(err, ERR_CONFIG, "%s", differs);
    } else if (need_lack(&most, want, lack, sizeof lack)[0] != '\0') {
        err_set(err, ERR_CONFIG, "no instance type is large enough: %s", lack);
    } else {
        err_set(err, ERR_CONFIG,
                "no single instance type has %" PRId64 " VCPUs, %" PRId64
                " MiB RAM, %" PRId64 " MiB scratch space and %" PRId64
                " GPUs together",
                want->vcpus, want->ram >> 20, want->scratch >> 20,
                want->gpus);
    }
}

size_t choose(const struct ctr *c, const struct need *want,
              const struct itypes *its, double factor,
              const struct itype **out, struct err *err)
{
    size_t n = 0;

    if (c->gpu_stack[0] != '\0' && strcmp(c->gpu_stack, "cuda") != 0 &&
        strcmp(c->gpu_stack, "rocm") != 0) {
        err_set(err, ERR_CONFIG, "unknown GPU stack \"%s\"", c->gpu_stack);
        return 0;
    }
    for (size_t i = 0; i < its->n; i++) {
        const struct itype *it = &its->v[i];
        struct need have;

        if (n > 0 && it->price > out[0]->price * (factor > 1 ? factor : 1))
            break;
        need_capacity(it, &have);
        if (!traits_differ(c, it) && need_fits(&have, want))
            out[n++] = it;
    }
    if (n == 0)
        explain_none(c, want, its, err);
    return n;
}
