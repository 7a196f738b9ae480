/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_TAGS_H
#define CORE_DISPATCH_TAGS_H

/* The tags of an instance, put together. */

#include "core/dispatch/dispatch.h"
#include "core/port/cloud.h"

enum { TAGS_MAX = 96, TAGS_OWN = 6 };

struct tags {
    struct cloud_tag v[TAGS_MAX]; /* borrowed texts */
    size_t n;
    char key[TAGS_OWN][128];      /* names of ours, with their prefix */
};

struct tags_values {
    const char *type_name, *secret, *token, *backend;
    enum dispatch_behavior behavior;
};

/* Add, or replace the value of this key. */
void tags_put(struct tags *t, const char *key, const char *value);
/* Add the configured tags, then ours (which win). */
void tags_ours(struct tags *t, const struct dispatch *d,
               const struct tags_values *v);

#endif
