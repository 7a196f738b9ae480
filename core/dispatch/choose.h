/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_CHOOSE_H
#define CORE_DISPATCH_CHOOSE_H

/*
 * Which instance types may run a container.
 */

#include <stddef.h>

struct ctr;
struct err;
struct itype;
struct itypes;
struct need;

/*
 * Fill out (room for its->n pointers) with the types that can hold `want`
 * and match what c asks for (preemptible, GPU), cheapest first, none dearer
 * than `factor` (below 1 counts as 1) times the cheapest. Returns how many;
 * 0 fills err (ERR_CONFIG), whose text names the constraint that cannot be
 * met, with both figures.
 */
size_t choose(const struct ctr *c, const struct need *want,
              const struct itypes *its, double factor,
              const struct itype **out, struct err *err);

#endif
