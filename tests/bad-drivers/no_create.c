/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A callback that every driver must have is missing.
 */

#define BAD_NAME "no_create"
#define BAD_CREATE NULL
#include "tests/bad-drivers/bad.h"
