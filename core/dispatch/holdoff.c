/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jittered exponential back-off, per key.
 *
 * The peer keeps one create throttle for the whole pool, in which the last
 * writer wins, and none at all for errors it cannot classify. Here each
 * failure is charged to the scope that the error names, and unclassified
 * ones back off like transient ones.
 *
 * Used by creates and guard (clouds), session (instances), cqueue (API).
 * Loop thread only; randomness and time are handed in.
 */

#include "core/dispatch/holdoff.h"

#include <stdlib.h>

#include "core/base/map.h"
#include "core/base/mem.h"

struct holdoffs {
    struct map *by_key;
};

static void class_range(enum err_class class, int64_t *base, int64_t *max)
{
    switch (class) {
#define X(name, base_ms, max_ms)                                              \
    case ERR_##name:                                                          \
        *base = base_ms;                                                      \
        *max = max_ms;                                                        \
        return;
        HOLDOFF_CLASSES(X)
#undef X
    default:
        class_range(ERR_TRANSIENT, base, max);
    }
}

int64_t holdoff_delay_ms(enum err_class class, unsigned level,
                         int64_t retry_ms, uint32_t random)
{
    int64_t base, max;

    class_range(class, &base, &max);
    int64_t ms = level < 20 ? base << level : max;

    if (ms > max)
        ms = max;
    /* 3/4 .. 5/4 of it */
    ms = ms * 3 / 4 + (int64_t) ((uint64_t) random * (uint64_t) (ms / 2) >> 32);
    return ms > retry_ms ? ms : retry_ms;
}

void holdoff_hit(struct holdoff *h, const struct err *why, int64_t now_us,
                 uint32_t random)
{
    int64_t until = now_us + 1000 * holdoff_delay_ms(why->class, h->level,
                                                     why->retry_ms, random);

    h->level++;
    if (until > h->until_us)
        h->until_us = until;
}

void holdoff_hit_short(struct holdoff *h, const struct err *why,
                       int64_t now_us, uint32_t random, int64_t max_ms)
{
    int64_t most = why->retry_ms > max_ms ? why->retry_ms : max_ms;

    holdoff_hit(h, why, now_us, random);
    if (h->until_us > now_us + 1000 * most)
        h->until_us = now_us + 1000 * most;
}

void holdoff_clear(struct holdoff *h)
{
    *h = (struct holdoff) {0};
}

struct holdoffs *holdoffs_create(void)
{
    struct holdoffs *hs = MEM_NEW(struct holdoffs);

    hs->by_key = map_create(free);
    return hs;
}

void holdoffs_destroy(struct holdoffs *hs)
{
    if (!hs)
        return;
    map_destroy(hs->by_key);
    free(hs);
}

void holdoffs_hit(struct holdoffs *hs, const char *key, const struct err *why,
                  int64_t now_us, uint32_t random)
{
    struct holdoff_entry *e = map_get(hs->by_key, key);

    if (!e) {
        e = MEM_NEW(struct holdoff_entry);
        map_set(hs->by_key, key, e);
    }
    /* Several calls in flight fail together: that is one failure. */
    if (now_us < e->h.until_us && e->why.class == why->class &&
        why->retry_ms == 0)
        return;
    e->why = *why;
    holdoff_hit(&e->h, why, now_us, random);
}

void holdoffs_clear(struct holdoffs *hs, const char *key)
{
    map_delete(hs->by_key, key);
}

const struct holdoff_entry *holdoffs_get(const struct holdoffs *hs,
                                         const char *key, int64_t now_us)
{
    const struct holdoff_entry *e = map_get(hs->by_key, key);

    return e && now_us < e->h.until_us ? e : NULL;
}

void holdoffs_relent(struct holdoffs *hs, enum err_class class,
                     int64_t now_us)
{
    const char *key = NULL;
    struct holdoff_entry *e;

    while ((e = map_next(hs->by_key, &key)))
        if (e->why.class == class && e->h.until_us > now_us)
            e->h.until_us = now_us;
}
