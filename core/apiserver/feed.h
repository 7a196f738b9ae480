/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_FEED_H
#define CORE_APISERVER_FEED_H

/*
 * The change feed: which records changed, in the order of commits, so that a
 * dispatcher need not poll. A bounded ring; long polls wait on it. Loop
 * thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/store/schema.h"

struct buf;
struct feed;
struct loop;

struct feed *feed_create(struct loop *l, int64_t length);
void feed_destroy(struct feed *f); /* NULL is fine; nobody waits any more */

/* A record changed in commit seq, which never falls. */
void feed_add(struct feed *f, int64_t seq, enum store_table t,
              const char *uuid);
const char *feed_epoch(const struct feed *f);
int64_t feed_cursor(const struct feed *f); /* of the last commit heard of */

/* Does a client that knows everything up to `since` of `epoch` ("" = from
 * now) have to be answered at once? */
bool feed_ready(const struct feed *f, const char *epoch, int64_t since);
/* The answer. */
void feed_write(const struct feed *f, const char *epoch, int64_t since,
                struct buf *out);

/* Answer everybody who waits, now: the server ends. */
void feed_flush(struct feed *f);

#endif
