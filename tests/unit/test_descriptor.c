/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of COMPATIBILITY.md, cell by cell, on hosts of several versions,
 * and what a descriptor must contain. Whole files are in test_registry.c.
 */

#include "tests/unit/unit.h"

#include <cdc/driver.h>

#include "core/base/mem.h"
#include "core/plugin/descriptor.h"

static const struct descriptor_prefix good = {
    CDC_MAGIC, CDC_KIND_CLOUD, sizeof(struct cdc_driver), 1, 3, 2, CDC_LAYOUT,
};

static void test_versions(void **state)
{
    static const struct {
        uint32_t major, built, needed; /* the driver's */
        struct descriptor_host host;
        const char *refusal; /* NULL = works */
    } cells[] = {
        {1, 3, 2, {1, 3}, NULL},
        {1, 1, 0, {1, 9}, NULL},                /* old driver, new host */
        {1, 9, 2, {1, 2}, NULL},                /* new driver, old host */
        {1, 9, 3, {1, 2}, "needs driver ABI 1.3, this host has 1.2"},
        {2, 0, 0, {1, 9}, "built for driver ABI 2.0, this host has 1.9"},
        {1, 9, 0, {2, 0}, "built for driver ABI 1.9, this host has 2.0"},
        {0, 1, 1, {0, 1}, NULL},                /* 0: the very same minor */
        {0, 1, 0, {0, 2}, "built for driver ABI 0.1, this host has 0.2"},
        {0, 2, 1, {0, 1}, "built for driver ABI 0.2, this host has 0.1"},
    };

    (void)state;
    for (size_t i = 0; i < MEM_COUNT(cells); i++) {
        struct descriptor_prefix p = good;
        struct err err = {0};
        int rc;

        p.abi_major = cells[i].major;
        p.minor_built = cells[i].built;
        p.minor_needed = cells[i].needed;
        rc = descriptor_check_prefix(&p, 0, cells[i].host, &err);
        if ((rc == 0) != !cells[i].refusal)
            fail_msg("cell %zu: %s", i, err.text);
        if (cells[i].refusal)
            assert_string_equal(err.text, cells[i].refusal);
    }
}

static void test_sizes(void **state)
{
    const struct descriptor_host host = {1, 3};
    struct descriptor_prefix p = good;
    struct err err;

    (void)state;
    assert_ok(descriptor_check_prefix(&p, p.struct_size, host, &err), &err);
    assert_ok(descriptor_check_prefix(&p, p.struct_size + 64, host, &err),
              &err);
    assert_err(descriptor_check_prefix(&p, p.struct_size - 1, host, &err),
               &err, ERR_CONFIG);
    p.struct_size = offsetof(struct cdc_driver, destroy);
    assert_err(descriptor_check_prefix(&p, 0, host, &err), &err, ERR_CONFIG);
    p.struct_size += sizeof(void (*)(void)); /* the last that is a must */
    assert_ok(descriptor_check_prefix(&p, 0, host, &err), &err);
    p.struct_size = UINT32_MAX;
    assert_err(descriptor_check_prefix(&p, 0, host, &err), &err, ERR_CONFIG);
    p = good;
    p.layout = 1;
    assert_err(descriptor_check_prefix(&p, 0, host, &err), &err, ERR_CONFIG);
}

/* --- the rest ---------------------------------------------------------------- */

static int32_t open_(const struct cdc_host *h, struct cdc_op *op,
                     const struct cdc_set_config *c, struct cdc_set **ret)
{
    (void)h, (void)op, (void)c, (void)ret;
    return 0;
}

static void close_(struct cdc_set *s)
{
    (void)s;
}

static int32_t create_(struct cdc_op *op, struct cdc_set *s,
                       const struct cdc_create_spec *spec)
{
    (void)op, (void)s, (void)spec;
    return 0;
}

static int32_t list_(struct cdc_op *op, struct cdc_set *s,
                     const struct cdc_tag *f, uint32_t n)
{
    (void)op, (void)s, (void)f, (void)n;
    return 0;
}

static int32_t destroy_(struct cdc_op *op, struct cdc_set *s, const char *id)
{
    (void)op, (void)s, (void)id;
    return 0;
}

static struct cdc_driver whole(void)
{
    struct cdc_driver d = {
        CDC_DRIVER_PREFIX, .name = "one", .version = "1", .description = "d",
        .set_open = open_, .set_close = close_, .create = create_,
        .list = list_, .destroy = destroy_,
    };

    return d;
}

static void expect(struct cdc_driver d, const char *stem, const char *why)
{
    struct cdc_driver copy;
    struct err err = {0};

    assert_err(descriptor_copy(&d, stem, &copy, &err), &err, ERR_CONFIG);
    if (!strstr(err.text, why))
        fail_msg("'%s' is not in '%s'", why, err.text);
}

static void test_contents(void **state)
{
    struct cdc_driver d = whole(), copy;
    struct err err;

    (void)state;
    assert_ok(descriptor_copy(&d, "one", &copy, &err), &err);
    expect(d, "two", "must be one.so");
    d.name = "One";
    expect(d, "One", "is not [a-z0-9_-]");
    d = whole();
    d.version = NULL;
    expect(d, "one", "is missing");
    d = whole();
    d.threads = 7;
    expect(d, "one", "thread model 7");
    d = whole();
    d.caps = CDC_CAP_PRICES;
    expect(d, "one", "price_history is missing");
#define MUST(callback)                                                        \
    d = whole();                                                              \
    d.callback = NULL;                                                        \
    expect(d, "one", "callback " #callback " is missing")
    MUST(set_open);
    MUST(set_close);
    MUST(create);
    MUST(list);
    MUST(destroy);
}

/* An older driver ends early: what lies behind it is not read. */
static void test_older(void **state)
{
    struct cdc_driver d = whole(), copy;
    struct err err;

    (void)state;
    d.struct_size = offsetof(struct cdc_driver, describe);
    memset((char *)&d + d.struct_size, 0xee, sizeof d - d.struct_size);
    assert_ok(descriptor_copy(&d, "one", &copy, &err), &err);
    assert_null(copy.describe);
    assert_ptr_equal(copy.destroy, destroy_);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_older),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
