/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls itself by another name than its file.
 */

#define BAD_NAME "somebody_else"
#include "tests/bad-drivers/bad.h"
