/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Its constructor crashes.
 */

#include <signal.h>

#define BAD_NAME "ctor_crash"
#include "tests/bad-drivers/bad.h"

__attribute__((constructor)) static void crash(void)
{
    raise(SIGSEGV);
}
