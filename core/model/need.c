/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a container needs, and whether an instance has it.
 *
 * The sums follow the peer's rules, so that a site's instance types mean the
 * same here as there:
 *
 *   VCPUs    as asked; 0 is allowed, and all such containers of an instance
 *            share one VCPU.
 *   RAM      (ram + keep_cache_ram + reserve + buffers) x 100/95: the last
 *            factor covers the gap between advertised and usable memory.
 *   scratch  max(tmp mounts, image) + image + keep_cache_disk: a layer is
 *            buffered while it is unpacked, and the buffer is then the job's.
 *   GPUs     a count; VRAM is per device and therefore never summed.
 *
 * Called by core/dispatch for each container it sees and for each placement
 * it tries. Pure; every sum saturates at INT64_MAX, where it fits nowhere.
 */

#include "core/model/need.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/ctr.h"
#include "core/model/itypes.h"

#define MIB (INT64_C(1) << 20)

static int64_t sum(int64_t a, int64_t b)
{
    int64_t r;

    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t product(int64_t a, int64_t b)
{
    int64_t r;

    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

/* Sizes come from users: below zero counts as nothing. */
static int64_t positive(int64_t v)
{
    return v > 0 ? v : 0;
}

/* Disk that an image takes, from the length of its manifest alone: 80 bytes
 * of file name, then 42 per block of 64 MiB. 0 for any other kind of name. */
static int64_t image_size(const char *pdh)
{
    char *end;

    if (strspn(pdh, "0123456789abcdef") != 32 || pdh[32] != '+' ||
        pdh[33] < '0' || pdh[33] > '9')
        return 0;
    long long n = strtoll(pdh + 33, &end, 10);

    if (*end != '\0' || n < 122)
        return 0;
    return product((n - 80) / 42, 64 * MIB);
}

static int64_t ram_of(const struct ctr *c, const struct need_policy *policy)
{
    int64_t ram = sum(positive(c->ram), positive(c->keep_cache_ram));

    ram = sum(ram, policy->reserve_extra_ram);
    if (policy->keep_buffers_per_vcpu > 0) {
        int64_t n = product(policy->keep_buffers_per_vcpu, c->vcpus);

        ram = sum(ram, sum(220 * MIB, product(n, 64 * MIB * 11 / 10)));
    }
    if (!policy->ram_discount)
        return ram;
    ram = product(ram, 100);
    return ram == INT64_MAX ? ram : ram / 95;
}

void need_of(const struct ctr *c, const struct need_policy *policy,
             struct need *ret)
{
    int64_t image = image_size(c->image);
    int64_t tmp = positive(c->tmp_capacity);

    *ret = (struct need) {
        .vcpus = positive(c->vcpus),
        .ram = ram_of(c, policy),
        .scratch = sum(sum(tmp > image ? tmp : image, image),
                       positive(c->keep_cache_disk)),
        .gpus = positive(c->gpu_count),
        .vram = c->gpu_count > 0 ? positive(c->gpu_vram) : 0,
    };
}

void need_capacity(const struct itype *it, struct need *ret)
{
    *ret = (struct need) {
        .vcpus = it->vcpus,
        .ram = it->ram,
        .scratch = itype_scratch(it),
        .gpus = it->gpu_count,
        .vram = it->gpu_vram,
    };
}

/* VCPUs that must be free for it: those that share one need it once. */
static int64_t vcpus_wanted(const struct need *free, const struct need *want)
{
    if (want->vcpus > 0)
        return want->vcpus;
    return free->shared > 0 ? 0 : 1;
}

bool need_fits(const struct need *free, const struct need *want)
{
    return free->vcpus >= vcpus_wanted(free, want) &&
           free->ram >= want->ram && free->scratch >= want->scratch &&
           free->gpus >= want->gpus &&
           (want->gpus == 0 || free->vram >= want->vram);
}

void need_sub(struct need *free, const struct need *want)
{
    free->vcpus -= vcpus_wanted(free, want);
    free->shared += want->vcpus == 0;
    free->ram -= want->ram;
    free->scratch -= want->scratch;
    free->gpus -= want->gpus;
}

void need_add(struct need *free, const struct need *want)
{
    free->shared -= want->vcpus == 0;
    free->vcpus += vcpus_wanted(free, want);
    free->ram += want->ram;
    free->scratch += want->scratch;
    free->gpus += want->gpus;
}

const char *need_lack(const struct need *have, const struct need *want,
                      char *out, unsigned size)
{
    const struct {
        const char *name;
        int64_t have, want, unit;
        const char *unit_name;
    } r[] = {
        {"VCPUs", have->vcpus, vcpus_wanted(have, want), 1, ""},
        {"RAM", have->ram, want->ram, MIB, " MiB"},
        {"scratch space", have->scratch, want->scratch, MIB, " MiB"},
        {"GPUs", have->gpus, want->gpus, 1, ""},
        {"VRAM per GPU", have->vram, want->gpus > 0 ? want->vram : 0, MIB,
         " MiB"},
    };

    out[0] = '\0';
    for (unsigned i = 0; i < sizeof r / sizeof r[0]; i++) {
        if (r[i].have >= r[i].want)
            continue;
        /* Round the wish up and the offer down: 4.5 of 4 must not read as
         * 4 of 4. */
        int64_t wish = r[i].want / r[i].unit + (r[i].want % r[i].unit != 0);

        snprintf(out, size,
                 "%s: %" PRId64 "%s wanted, %" PRId64 "%s is the most",
                 r[i].name, wish, r[i].unit_name,
                 r[i].have > 0 ? r[i].have / r[i].unit : 0, r[i].unit_name);
        break;
    }
    return out;
}
