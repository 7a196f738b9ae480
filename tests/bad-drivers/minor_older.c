/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Built for an older minor version: refused while the major is 0.
 */

#define BAD_NAME "minor_older"
#define BAD_BUILT (CDC_ABI_MINOR - 1u)
#define BAD_NEEDED 0u
#include "tests/bad-drivers/bad.h"
