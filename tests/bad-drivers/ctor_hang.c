/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Its constructor does not come back.
 */

#include <unistd.h>

#define BAD_NAME "ctor_hang"
#include "tests/bad-drivers/bad.h"

__attribute__((constructor)) static void hang(void)
{
    for (;;)
        pause();
}
