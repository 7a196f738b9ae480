/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls a function that no library has. Linked without -z defs, it is found
 * out only when it is opened with all symbols bound.
 */

#include <cdc/types.h>

int a_function_that_nobody_has(void);

#define BAD_LIST undefined_list
struct cdc_op;
struct cdc_set;
static int32_t undefined_list(struct cdc_op *op, struct cdc_set *set,
                              const struct cdc_tag *filter, uint32_t n)
{
    (void)op;
    (void)set;
    (void)filter;
    (void)n;
    return a_function_that_nobody_has();
}

#define BAD_NAME "undefined_function"
#include "tests/bad-drivers/bad.h"
