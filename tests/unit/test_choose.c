/* SPDX-License-Identifier: Apache-2.0 */

/* Which types may run a container; cases from the peer's node size tests. */

#include "tests/unit/unit.h"

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/dispatch/choose.h"
#include "core/model/ctr.h"
#include "core/model/itypes.h"
#include "core/model/need.h"

#define GIB (INT64_C(1) << 30)

static struct itype types[] = {
    {.name = "small", .price = 1.0, .vcpus = 2, .ram = 4 * GIB,
     .included_scratch = 10 * GIB},
    {.name = "bigram", .price = 1.4, .vcpus = 2, .ram = 16 * GIB,
     .included_scratch = 10 * GIB},
    {.name = "bigcpu", .price = 1.5, .vcpus = 8, .ram = 8 * GIB,
     .included_scratch = 10 * GIB},
    {.name = "dear", .price = 1.51, .vcpus = 2, .ram = 4 * GIB,
     .included_scratch = 100 * GIB},
    {.name = "spot", .price = 0.3, .vcpus = 2, .ram = 4 * GIB,
     .included_scratch = 10 * GIB, .preemptible = true},
    {.name = "gpu", .price = 3, .vcpus = 4, .ram = 16 * GIB,
     .included_scratch = 10 * GIB, .gpu_stack = "cuda", .gpu_driver = "12.4",
     .gpu_target = "8.6", .gpu_count = 2, .gpu_vram = 24 * GIB},
    {.name = "amd", .price = 3, .vcpus = 4, .ram = 16 * GIB,
     .included_scratch = 10 * GIB, .gpu_stack = "rocm", .gpu_driver = "6.2",
     .gpu_target = "gfx1100", .gpu_count = 1, .gpu_vram = 24 * GIB},
};

static const struct itypes all = {types, MEM_COUNT(types)};
static const struct itype *out[MEM_COUNT(types)];
static struct err err;

static size_t try(const struct ctr *c, double factor)
{
    struct need_policy policy = {0};
    struct need need;

    need_of(c, &policy, &need);
    memset(out, 0, sizeof out);
    err_clear(&err);
    return choose(c, &need, &all, factor, out, &err);
}

static int sort(void **state)
{
    struct itypes its = all;

    (void) state;
    itypes_sort(&its);
    return 0;
}

static void within_the_price_window(void **state)
{
    struct ctr c = {.vcpus = 1, .ram = GIB};

    (void) state;
    assert_int_equal(try(&c, 1.5), 3);
    assert_string_equal(out[0]->name, "small");
    assert_string_equal(out[1]->name, "bigram");
    assert_string_equal(out[2]->name, "bigcpu");
    assert_int_equal(try(&c, 0), 1);
    assert_int_equal(try(&c, 1), 1);
    assert_int_equal(try(&c, 2), 4);
    c.ram = 12 * GIB;
    assert_int_equal(try(&c, 1.5), 1);
    assert_string_equal(out[0]->name, "bigram");
}

static void preemptible_must_match(void **state)
{
    struct ctr c = {.vcpus = 1, .ram = GIB, .preemptible = true};

    (void) state;
    assert_int_equal(try(&c, 9), 1);
    assert_string_equal(out[0]->name, "spot");
    c.vcpus = 4;
    assert_int_equal(try(&c, 9), 0);
    assert_string_equal(err.text, "no instance type is large enough: VCPUs: "
                                  "4 wanted, 2 is the most");
}

static void the_lacking_resource_is_named(void **state)
{
    struct ctr c = {.vcpus = 64, .ram = GIB};

    (void) state;
    assert_int_equal(try(&c, 1), 0);
    assert_int_equal(err.class, ERR_CONFIG);
    assert_string_equal(err.text, "no instance type is large enough: VCPUs: "
                                  "64 wanted, 8 is the most");
    c.vcpus = 1;
    c.ram = 17 * GIB;
    assert_int_equal(try(&c, 1), 0);
    assert_non_null(strstr(err.text, "RAM: 17408 MiB wanted, 16384 MiB"));
    c.ram = GIB;
    c.tmp_capacity = 200 * GIB;
    assert_int_equal(try(&c, 1), 0);
    assert_non_null(strstr(err.text, "scratch space: 204800 MiB wanted"));
    c.tmp_capacity = 0;
    c.vcpus = 8;
    c.ram = 12 * GIB;
    assert_int_equal(try(&c, 1), 0);
    assert_non_null(strstr(err.text, "no single instance type has 8 VCPUs, "
                                     "12288 MiB RAM"));
}

static void no_types_at_all(void **state)
{
    struct ctr c = {.vcpus = 1};
    struct itypes none = {NULL, 0};
    struct need need = {.vcpus = 1};

    (void) state;
    assert_int_equal(choose(&c, &need, &none, 1, out, &err), 0);
    assert_string_equal(err.text, "no instance types are configured");
}

static void gpus(void **state)
{
    struct ctr c = {.vcpus = 1, .ram = GIB, .gpu_stack = "cuda",
                    .gpu_count = 1, .gpu_driver = "11.0",
                    .gpu_targets = {"8.0"}, .gpu_target_count = 1,
                    .gpu_vram = GIB};

    (void) state;
    assert_int_equal(try(&c, 1), 1);
    assert_string_equal(out[0]->name, "gpu");
    /* one target: at least this */
    text_copy(c.gpu_targets[0], "9.0", sizeof c.gpu_targets[0]);
    assert_int_equal(try(&c, 1), 0);
    /* several: one of these */
    text_copy(c.gpu_targets[1], "8.6", sizeof c.gpu_targets[1]);
    c.gpu_target_count = 2;
    assert_int_equal(try(&c, 1), 1);
    c.gpu_target_count = 0;
    assert_int_equal(try(&c, 1), 0);
    c.gpu_target_count = 2;
    /* decimal numbers: 12.10 < 12.4 */
    text_copy(c.gpu_driver, "12.10", sizeof c.gpu_driver);
    assert_int_equal(try(&c, 1), 1);
    text_copy(c.gpu_driver, "12.5", sizeof c.gpu_driver);
    assert_int_equal(try(&c, 1), 0);
    text_copy(c.gpu_driver, "recent", sizeof c.gpu_driver);
    assert_int_equal(try(&c, 1), 0);
    text_copy(c.gpu_driver, "12.4", sizeof c.gpu_driver);
    c.gpu_count = 3;
    assert_int_equal(try(&c, 1), 0);
    assert_non_null(strstr(err.text, "GPUs: 3 wanted, 2 is the most"));
    text_copy(c.gpu_stack, "rocm", sizeof c.gpu_stack);
    c.gpu_count = 1;
    text_copy(c.gpu_driver, "6.0", sizeof c.gpu_driver);
    text_copy(c.gpu_targets[0], "gfx1100", sizeof c.gpu_targets[0]);
    c.gpu_target_count = 1;
    assert_int_equal(try(&c, 1), 1);
    assert_string_equal(out[0]->name, "amd");
    text_copy(c.gpu_stack, "opencl", sizeof c.gpu_stack);
    assert_int_equal(try(&c, 1), 0);
    assert_string_equal(err.text, "unknown GPU stack \"opencl\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_the_price_window),
        cmocka_unit_test(preemptible_must_match),
        cmocka_unit_test(the_lacking_resource_is_named),
        cmocka_unit_test(no_types_at_all),
        cmocka_unit_test(gpus),
    };

    return cmocka_run_group_tests(tests, sort, NULL);
}
