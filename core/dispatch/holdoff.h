/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_HOLDOFF_H
#define CORE_DISPATCH_HOLDOFF_H

/*
 * How long to leave something alone after it failed.
 *
 * A hold-off belongs to a key (a type, a zone, a quota group, an instance,
 * ...). Each failure doubles its length, from the base to the maximum of the
 * error's class, spread by a quarter either way so that many waiters do not
 * return together. A shorter one never replaces a longer one. A success ends
 * it. Times are microseconds of the clock port, monotonic.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

/*      class         base ms  max ms */
#define HOLDOFF_CLASSES(X)                                                    \
    X(TRANSIENT,         500,   60000)                                        \
    X(RATE_LIMITED,     1000,  120000)                                        \
    X(QUOTA,           10000,  300000)                                        \
    X(CAPACITY,        10000,  300000)                                        \
    X(AUTH,            15000,  600000)                                        \
    X(CONFIG,          15000,  600000)                                        \
    X(UNKNOWN,           500,   60000)                                        \
    X(TIMEOUT,           500,   60000)

/* One delay: failure number `level` (from 0), `random` any 32 bits. Never
 * below retry_ms. Classes that the table leaves out count as TRANSIENT. */
int64_t holdoff_delay_ms(enum err_class class, unsigned level,
                         int64_t retry_ms, uint32_t random);

/* A single one, embedded where there is just one key. */
struct holdoff {
    unsigned level;
    int64_t until_us;
};
void holdoff_hit(struct holdoff *h, const struct err *why, int64_t now_us,
                 uint32_t random);
/* The same, but no longer than max_ms unless the error itself asks for more:
 * for peers whose return must be noticed soon. */
void holdoff_hit_short(struct holdoff *h, const struct err *why,
                       int64_t now_us, uint32_t random, int64_t max_ms);
void holdoff_clear(struct holdoff *h);

/* Many, by key. */
struct holdoffs;
struct holdoff_entry {
    struct holdoff h;
    struct err why; /* the last failure */
};

struct holdoffs *holdoffs_create(void);
void holdoffs_destroy(struct holdoffs *hs); /* NULL is fine */
void holdoffs_hit(struct holdoffs *hs, const char *key, const struct err *why,
                  int64_t now_us, uint32_t random);
void holdoffs_clear(struct holdoffs *hs, const char *key);
/* The entry that holds key at this moment, or NULL. */
const struct holdoff_entry *holdoffs_get(const struct holdoffs *hs,
                                         const char *key, int64_t now_us);
/* Expire at once what is held for this class, keeping the levels: something
 * happened that may have ended the cause. */
void holdoffs_relent(struct holdoffs *hs, enum err_class class,
                     int64_t now_us);

#endif
