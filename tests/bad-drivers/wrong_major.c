/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Built for another major version.
 */

#define BAD_NAME "wrong_major"
#define BAD_MAJOR (CDC_ABI_MAJOR + 1u)
#include "tests/bad-drivers/bad.h"
