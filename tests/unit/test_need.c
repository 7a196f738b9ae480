/* SPDX-License-Identifier: Apache-2.0 */

/* Sizes of containers and what fits where; figures from the peer's tests. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/text.h"
#include "core/model/ctr.h"
#include "core/model/itypes.h"
#include "core/model/need.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

static void image_counts_twice(void **state)
{
    static const struct {
        const char *image;
        int64_t scratch;
    } t[] = {
        {"d5025c0f29f6eef304a7358afa82a822+342", 805306368},
        {"d5025c0f29f6eef304a7358afa82a822+-342", 0},
        {"d5025c0f29f6eef304a7358afa82a822+34", 0},
        {"d5025c0f29f6eef304a7358afa82a822+121", 0},
        {"d5025c0f29f6eef304a7358afa82a822+122", 2 * 64 * MIB},
        {"d5025c0f29f6eef304a7358afa82a822+342x", 0},
        {"d5025c0f29f6eef304a7358afa82a82+342", 0},
        {"host", 0},
        {"", 0},
    };

    (void) state;
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        struct need_policy policy = {0};
        struct ctr c = {0};
        struct need n;

        text_copy(c.image, t[i].image, sizeof c.image);
        need_of(&c, &policy, &n);
        assert_int_equal(n.scratch, t[i].scratch);
        c.tmp_capacity = 10 * GIB;
        c.keep_cache_disk = GIB;
        need_of(&c, &policy, &n);
        assert_int_equal(n.scratch, 11 * GIB + t[i].scratch / 2);
    }
}

static void ram_follows_the_policy(void **state)
{
    struct ctr c = {.vcpus = 2, .ram = 1000, .keep_cache_ram = 500};
    struct need_policy policy = {0};
    struct need n;

    (void) state;
    need_of(&c, &policy, &n);
    assert_int_equal(n.ram, 1500);
    policy.reserve_extra_ram = 400;
    policy.ram_discount = true;
    need_of(&c, &policy, &n);
    assert_int_equal(n.ram, 2000);
    policy.keep_buffers_per_vcpu = 16;
    need_of(&c, &policy, &n);
    assert_int_equal(n.ram, (1900 + 220 * MIB +
                             32 * (64 * MIB * 11 / 10)) * 100 / 95);
}

static void absurd_sizes_saturate(void **state)
{
    struct ctr c = {.ram = INT64_MAX, .keep_cache_ram = INT64_MAX,
                    .tmp_capacity = INT64_MAX, .keep_cache_disk = 1,
                    .vcpus = -3, .gpu_count = -1};
    struct need_policy policy = {.ram_discount = true,
                                 .keep_buffers_per_vcpu = 1};
    struct need n;

    (void) state;
    need_of(&c, &policy, &n);
    assert_true(n.ram == INT64_MAX);
    assert_true(n.scratch == INT64_MAX);
    assert_int_equal(n.vcpus, 0);
    assert_int_equal(n.gpus, 0);
}

/* 2 free + shared takes 1 and 0 but not 2 more than is left, and so on. */
static void zero_vcpu_containers_share_one(void **state)
{
    struct need zero = {0}, one = {.vcpus = 1}, two = {.vcpus = 2};
    struct need have = {.vcpus = 2};

    (void) state;
    assert_true(need_fits(&have, &two));
    need_sub(&have, &zero);
    assert_true(need_fits(&have, &one));
    assert_true(need_fits(&have, &zero));
    assert_false(need_fits(&have, &two));
    need_sub(&have, &one);
    assert_true(need_fits(&have, &zero));
    assert_false(need_fits(&have, &one));
    need_sub(&have, &zero);
    assert_int_equal(have.vcpus, 0);
    need_add(&have, &zero);
    assert_int_equal(have.vcpus, 0);
    need_add(&have, &zero);
    need_add(&have, &one);
    assert_int_equal(have.vcpus, 2);
    have.vcpus = 0;
    assert_false(need_fits(&have, &zero));
}

static void vram_is_per_device(void **state)
{
    struct itype it = {.vcpus = 8, .gpu_count = 2, .gpu_vram = 4 * GIB};
    struct need want = {.vcpus = 1, .gpus = 1, .vram = 4 * GIB};
    struct need have;

    (void) state;
    need_capacity(&it, &have);
    for (int i = 0; i < 2; i++) {
        assert_true(need_fits(&have, &want));
        need_sub(&have, &want);
    }
    assert_false(need_fits(&have, &want));
    need_add(&have, &want);
    want.vram++;
    assert_false(need_fits(&have, &want));
}

static void lack_names_the_constraint_with_figures(void **state)
{
    struct need have = {.vcpus = 8, .ram = 4 * GIB, .scratch = GIB};
    struct need want = {.vcpus = 64, .ram = 4 * GIB};
    char text[100];

    (void) state;
    assert_string_equal(need_lack(&have, &want, text, sizeof text),
                        "VCPUs: 64 wanted, 8 is the most");
    want.vcpus = 1;
    assert_string_equal(need_lack(&have, &want, text, sizeof text), "");
    want.ram++;
    assert_string_equal(need_lack(&have, &want, text, sizeof text),
                        "RAM: 4097 MiB wanted, 4096 MiB is the most");
    want.ram = 0;
    want.gpus = 1;
    assert_string_equal(need_lack(&have, &want, text, sizeof text),
                        "GPUs: 1 wanted, 0 is the most");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(image_counts_twice),
        cmocka_unit_test(ram_follows_the_policy),
        cmocka_unit_test(absurd_sizes_saturate),
        cmocka_unit_test(zero_vcpu_containers_share_one),
        cmocka_unit_test(vram_is_per_device),
        cmocka_unit_test(lack_names_the_constraint_with_figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
