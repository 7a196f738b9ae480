/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A shared object that is no driver at all.
 */

#include <cdc/types.h>

CDC_EXPORT int something(void);

int something(void)
{
    return 1;
}
