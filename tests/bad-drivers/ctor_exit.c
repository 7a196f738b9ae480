/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Its constructor ends the process, and calls that success.
 */

#include <unistd.h>

#define BAD_NAME "ctor_exit"
#include "tests/bad-drivers/bad.h"

__attribute__((constructor)) static void end(void)
{
    _exit(0);
}
