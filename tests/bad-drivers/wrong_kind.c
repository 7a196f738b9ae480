/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A plugin, but of a kind that does not exist yet.
 */

#define BAD_NAME "wrong_kind"
#define BAD_KIND 2u
#include "tests/bad-drivers/bad.h"
