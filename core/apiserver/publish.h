/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_PUBLISH_H
#define CORE_APISERVER_PUBLISH_H

/*
 * The files of an attempt that ends, hashed and made durable: what becomes its
 * log and output collections.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/apiserver/manifest.h"

struct err;
struct files;
struct publish;

/* Read everything once. Takes as long as that takes: SLOW lane. */
struct publish *publish_create(struct files *f, const char *uuid,
                               int64_t attempt, struct err *err);
void publish_free(struct publish *p); /* NULL is fine */

bool publish_is_of(const struct publish *p, const char *uuid,
                   int64_t attempt);
const struct manifest *publish_log(const struct publish *p);
const struct manifest *publish_output(const struct publish *p);

#endif
