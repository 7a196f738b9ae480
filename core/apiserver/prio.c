/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Priorities follow requests.
 *
 * A container's priority is the highest that its committed requests give it
 * (rules_priority). A request that a container made inherits that container's
 * priority, so a change runs down the tree of children, which is walked level
 * by level with a bound: a request's parent is older than itself, a circle
 * cannot be, but a bound costs nothing.
 *
 * WRITE lane.
 */
#include <string.h>

#include "core/apiserver/change.h"
#include "core/apiserver/rules.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/model/ctr.h"

enum { DEPTH_MAX = 64 };

static int parent_priority(struct change *ch, const char *uuid, int64_t *ret,
                           struct err *err)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err e = {0};

    *ret = 0;
    if (store_get(ch->tx, STORE_CONTAINERS, uuid, STORE_BIT(C_priority),
                  &row, &e) == 0)
        *ret = store_i64(&row, C_priority);
    else if (e.class != ERR_NOT_FOUND) {
        *err = e;
        return -1;
    }
    return 0;
}

static int wanted_priority(struct change *ch, const char *uuid, int64_t *ret,
                           struct err *err)
{
    CLEANUP(change_rows_fini) struct change_rows reqs = {0};
    int64_t best = 0, parent, p;

    if (change_find(ch, STORE_REQUESTS, R_container_uuid, uuid, "Committed",
                    &reqs, err) < 0)
        return -1;
    for (size_t i = 0; i < reqs.rows.n; i++) {
        const struct store_row *r = &reqs.rows.v[i];
        bool child = store_has(r, R_requesting_container_uuid);
        parent = 0;
        if (child && parent_priority(ch,
                                     store_str(r, R_requesting_container_uuid),
                                     &parent, err) < 0)
            return -1;
        p = rules_priority(store_i64(r, R_priority),
                           store_i64(r, R_created_at), child, parent);
        if (p > best)
            best = p;
    }
    *ret = best;
    return 0;
}

static int update_level(struct change *ch, const char *uuid, int depth,
                        struct err *err);

static int update_children(struct change *ch, const char *uuid, int depth,
                           struct err *err)
{
    CLEANUP(change_rows_fini) struct change_rows kids = {0};

    if (change_find(ch, STORE_REQUESTS, R_requesting_container_uuid, uuid,
                    "Committed", &kids, err) < 0)
        return -1;
    for (size_t i = 0; i < kids.rows.n; i++)
        if (store_has(&kids.rows.v[i], R_container_uuid) &&
            update_level(ch, store_str(&kids.rows.v[i], R_container_uuid),
                         depth + 1, err) < 0)
            return -1;
    return 0;
}

static int update_level(struct change *ch, const char *uuid, int depth,
                        struct err *err)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0}, changes = {0};
    int64_t priority;

    if (depth > DEPTH_MAX)
        return 0;
    if (store_get(ch->tx, STORE_CONTAINERS, uuid,
                  STORE_BIT(C_uuid) | STORE_BIT(C_state) |
                      STORE_BIT(C_priority), &ctr, err) < 0 ||
        wanted_priority(ch, uuid, &priority, err) < 0)
        return -1;
    if (priority == store_i64(&ctr, C_priority) ||
        ctr_state_final(change_state(&ctr)))
        return 0;
    store_set_i64(&changes, C_priority, priority);
    if (change_update(ch, STORE_CONTAINERS, &ctr, &changes, err) < 0)
        return -1;
    return update_children(ch, uuid, depth, err);
}

int prio_update(struct change *ch, const char *ctr_uuid, struct err *err)
{
    return update_level(ch, ctr_uuid, 0, err);
}
