/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nothing wrong with it until it is used: list crashes. This ends the host;
 * cdc-driver-check, which runs a driver in a child, says where it happened.
 */

#include <signal.h>

#include <cdc/types.h>

#define BAD_LIST crashing_list
struct cdc_op;
struct cdc_set;
static int32_t crashing_list(struct cdc_op *op, struct cdc_set *set,
                             const struct cdc_tag *filter, uint32_t n)
{
    (void)op;
    (void)set;
    (void)filter;
    (void)n;
    raise(SIGSEGV);
    return 0;
}

#define BAD_NAME "crash_in_list"
#include "tests/bad-drivers/bad.h"
