/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Says that it can set tags, and has no callback for it.
 */

#define BAD_NAME "cap_without_callback"
#define BAD_CAPS CDC_CAP_SET_TAGS
#include "tests/bad-drivers/bad.h"
