/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_LISTS_H
#define CORE_DISPATCH_LISTS_H

/* Opening a cloud and listing it, again and again. */

struct backend;

/* Open the instance set, then list. Each backend reports to core_look_done()
 * once: after its first list, or its first failure. */
void lists_open(struct backend *b);

#endif
