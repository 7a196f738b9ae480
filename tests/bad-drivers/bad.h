/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BAD_DRIVERS_BAD_H
#define TESTS_BAD_DRIVERS_BAD_H

/*
 * A driver with nothing behind it, in which one thing is wrong: a file
 * defines BAD_NAME and whatever it wants to spoil, then includes this.
 */

#include <cdc/driver.h>

#ifndef BAD_MAGIC
#define BAD_MAGIC CDC_MAGIC
#endif
#ifndef BAD_KIND
#define BAD_KIND CDC_KIND_CLOUD
#endif
#ifndef BAD_SIZE
#define BAD_SIZE sizeof(struct cdc_driver)
#endif
#ifndef BAD_MAJOR
#define BAD_MAJOR CDC_ABI_MAJOR
#endif
#ifndef BAD_BUILT
#define BAD_BUILT CDC_ABI_MINOR
#endif
#ifndef BAD_NEEDED
#define BAD_NEEDED CDC_ABI_MINOR
#endif
#ifndef BAD_CREATE
#define BAD_CREATE bad_create
#endif
#ifndef BAD_LIST
#define BAD_LIST bad_list
#endif
#ifndef BAD_CAPS
#define BAD_CAPS 0
#endif

struct cdc_set {
    const struct cdc_host *host;
};

static struct cdc_set the_set;

static int32_t bad_open(const struct cdc_host *host, struct cdc_op *op,
                        const struct cdc_set_config *config,
                        struct cdc_set **ret_set)
{
    (void)op;
    (void)config;
    the_set.host = host;
    *ret_set = &the_set;
    return 0;
}

static void bad_close(struct cdc_set *set)
{
    (void)set;
}

static inline int32_t bad_create(struct cdc_op *op, struct cdc_set *set,
                                 const struct cdc_create_spec *spec)
{
    (void)spec;
    return set->host->fail(op, CDC_CLASS_UNSUPPORTED, CDC_SCOPE_NONE, 0, NULL,
                           NULL, "a bad driver");
}

static inline int32_t bad_list(struct cdc_op *op, struct cdc_set *set,
                               const struct cdc_tag *filter,
                               uint32_t n_filter)
{
    (void)op;
    (void)set;
    (void)filter;
    (void)n_filter;
    return 0;
}

static int32_t bad_destroy(struct cdc_op *op, struct cdc_set *set,
                           const char *id)
{
    (void)op;
    (void)set;
    (void)id;
    return 0;
}

const struct cdc_driver cdc_driver_entry = {
    .magic = BAD_MAGIC,
    .kind = BAD_KIND,
    .struct_size = BAD_SIZE,
    .abi_major = BAD_MAJOR,
    .minor_built = BAD_BUILT,
    .minor_needed = BAD_NEEDED,
    .layout = CDC_LAYOUT,
    .threads = CDC_THREADS_SERIAL,
    .caps = BAD_CAPS,
    .name = BAD_NAME,
    .version = "0",
    .description = "bad on purpose",
    .set_open = bad_open,
    .set_close = bad_close,
    .create = BAD_CREATE,
    .list = BAD_LIST,
    .destroy = bad_destroy,
};

#endif
