/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A plausible size, but larger than the object: a host that believes it
 * reads what lies behind.
 */

#define BAD_NAME "lying_size"
#define BAD_SIZE (sizeof(struct cdc_driver) + 64u)
#include "tests/bad-drivers/bad.h"
