/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The exported object is something else.
 */

#define BAD_NAME "wrong_magic"
#define BAD_MAGIC 0x12345678u
#include "tests/bad-drivers/bad.h"
