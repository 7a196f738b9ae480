/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of instance types.
 *
 * One order serves every purpose: price, then the larger machine first, then
 * the name, so that ties are resolved the same way in every run. Whoever
 * walks the table from its start meets the cheapest type that fits first.
 *
 * Filled by core/conf (or a test), then sorted once and never changed again;
 * core/dispatch holds pointers into it. Pure; any thread once sorted.
 */

#include "core/model/itypes.h"

#include <stdlib.h>
#include <string.h>

static int down(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int itype_compare(const void *pa, const void *pb)
{
    const struct itype *a = pa;
    const struct itype *b = pb;
    int r = (a->price > b->price) - (a->price < b->price);

    if (r == 0)
        r = down(a->ram, b->ram);
    if (r == 0)
        r = down(a->vcpus, b->vcpus);
    if (r == 0)
        r = down(itype_scratch(a), itype_scratch(b));
    return r != 0 ? r : strcmp(a->name, b->name);
}

void itypes_sort(struct itypes *its)
{
    if (its->n > 1)
        qsort(its->v, its->n, sizeof *its->v, itype_compare);
}

const struct itype *itypes_find(const struct itypes *its, const char *name)
{
    for (size_t i = 0; i < its->n; i++)
        if (strcmp(its->v[i].name, name) == 0)
            return &its->v[i];
    return NULL;
}

void itypes_fini(struct itypes *its)
{
    free(its->v);
    its->v = NULL;
    its->n = 0;
}

int64_t itype_scratch(const struct itype *it)
{
    int64_t sum;

    if (__builtin_add_overflow(it->included_scratch, it->added_scratch, &sum))
        return INT64_MAX;
    return sum;
}
