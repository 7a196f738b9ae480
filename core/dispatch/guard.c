/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The gate in front of every create.
 *
 * Asked twice: by plan through sched, to know whether an instance can be
 * hoped for and what to tell those who wait; and again by creates at the
 * moment of the act. The order of an act is: guard, durable intent, call.
 *
 * A refused create covers a scope (one type, one zone, a quota group, spot
 * or on-demand, everything): each has a hold-off of its own, and a type is
 * blocked at a placement when any scope that covers it is held. Placements
 * are tried in the order of the configuration, backends likewise.
 *
 * No create before the backend was listed once: what is there already might
 * do. No create without a journal: its intent could not be kept.
 *
 * Pure, but for the driver's own naming of quota groups.
 */

#include "core/dispatch/guard.h"

#include <stdio.h>
#include <string.h>

#include "core/base/err.h"
#include "core/dispatch/holdoff.h"
#include "core/model/dispatch_cfg.h"
#include "core/model/itypes.h"
#include "core/port/cloud.h"

const char *guard_key(struct cloud_port *cloud, const struct itype *it,
                      const char *placement, int scope,
                      char out[GUARD_KEY_MAX])
{
    const char *market = it->preemptible ? "spot" : "on-demand";
    char group[128] = "";

    switch (scope) {
    case ERR_SCOPE_TYPE:
        snprintf(out, GUARD_KEY_MAX, "type %s %s %s", it->provider_type,
                 market, placement);
        break;
    case ERR_SCOPE_ZONE:
        snprintf(out, GUARD_KEY_MAX, "zone %s", placement);
        break;
    case ERR_SCOPE_GROUP:
        cloud->quota_group(cloud, it->provider_type, it->preemptible, group,
                           sizeof group);
        snprintf(out, GUARD_KEY_MAX, "group %s", group);
        break;
    case ERR_SCOPE_MARKET:
        snprintf(out, GUARD_KEY_MAX, "market %s", market);
        break;
    default:
        snprintf(out, GUARD_KEY_MAX, "account");
    }
    return out;
}

static enum plan_why why_of(enum err_class class)
{
    switch (class) {
    case ERR_QUOTA:
        return PLAN_QUOTA;
    case ERR_CAPACITY:
        return PLAN_CAPACITY;
    case ERR_RATE_LIMITED:
    case ERR_TRANSIENT:
    case ERR_UNKNOWN:
    case ERR_TIMEOUT:
        return PLAN_CLOUD_BUSY;
    default:
        return PLAN_CLOUD_DOWN;
    }
}

static enum plan_why try_placement(const struct guard_in *in,
                                   const struct guard_backend *b,
                                   const struct itype *it,
                                   struct guard_place *place)
{
    static const int scopes[] = {ERR_SCOPE_ACCOUNT, ERR_SCOPE_MARKET,
                                 ERR_SCOPE_GROUP, ERR_SCOPE_ZONE,
                                 ERR_SCOPE_TYPE};
    char key[GUARD_KEY_MAX];

    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++) {
        const struct holdoff_entry *e = holdoffs_get(
            b->holds, guard_key(b->cloud, it, place->placement, scopes[i],
                                key), in->now_us);

        if (e) {
            place->error = &e->why;
            place->until_us = e->h.until_us;
            return why_of(e->why.class);
        }
    }
    return PLAN_NONE;
}

static enum plan_why try_backend(const struct guard_in *in, size_t index,
                                 const struct itype *it,
                                 struct guard_place *ret)
{
    const struct guard_backend *b = &in->backends[index];
    unsigned n = b->cfg->n_placements;
    int64_t max = b->cfg->max_instances;

    *ret = (struct guard_place) {.backend = index, .placement = ""};
    if (!b->open || !b->listed)
        return PLAN_CLOUD_DOWN;
    if (b->cloud->caps & CLOUD_CAP_SINGLE)
        max = 1;
    if (max > 0 && b->instances >= max)
        return PLAN_MAX_INSTANCES;
    for (unsigned i = 0; i < (n ? n : 1); i++) {
        struct guard_place p = {
            .backend = index,
            .placement = n ? b->cfg->placements[i] : ""};
        enum plan_why why = try_placement(in, b, it, &p);

        /* Of several that are held, the one that ends first is told. */
        if (why == PLAN_NONE || !ret->error || p.until_us < ret->until_us)
            *ret = p;
        if (why == PLAN_NONE)
            return why;
    }
    return why_of(ret->error->class);
}

enum plan_why guard_create(const struct guard_in *in, const struct itype *it,
                           struct guard_place *ret)
{
    enum plan_why first = PLAN_NONE;
    struct guard_place place, first_place = {.placement = ""};

    *ret = first_place;
    if (in->stopping)
        return PLAN_BUSY;
    if (!in->journal_ok)
        return PLAN_JOURNAL;
    for (size_t i = 0; i < in->n_backends; i++) {
        const struct guard_backend *b = &in->backends[i];

        if (it->backend[0] != '\0' && strcmp(it->backend, b->cfg->name) != 0)
            continue;
        enum plan_why why = try_backend(in, i, it, &place);

        if (why == PLAN_NONE) {
            *ret = place;
            return why;
        }
        if (first == PLAN_NONE) {
            first = why;
            first_place = place;
        }
    }
    *ret = first_place;
    return first == PLAN_NONE ? PLAN_CLOUD_DOWN : first;
}
