/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A descriptor that ends before the callbacks.
 */

#define BAD_NAME "short_size"
#define BAD_SIZE 48u
#include "tests/bad-drivers/bad.h"
