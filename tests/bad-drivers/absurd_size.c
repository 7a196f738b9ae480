/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A descriptor of sixteen megabytes.
 */

#define BAD_NAME "absurd_size"
#define BAD_SIZE 0x1000000u
#include "tests/bad-drivers/bad.h"
