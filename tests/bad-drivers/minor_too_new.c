/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Needs a later minor version than there is.
 */

#define BAD_NAME "minor_too_new"
#define BAD_BUILT (CDC_ABI_MINOR + 7u)
#define BAD_NEEDED (CDC_ABI_MINOR + 7u)
#include "tests/bad-drivers/bad.h"
