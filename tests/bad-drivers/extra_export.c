/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Exports a function beside its descriptor: the name could be taken for, or
 * be taken by, one of the host's.
 */

#define BAD_NAME "extra_export"
#include "tests/bad-drivers/bad.h"

CDC_EXPORT int EVP_DigestInit(void);

int EVP_DigestInit(void)
{
    return 1;
}
