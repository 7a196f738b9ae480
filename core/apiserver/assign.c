/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a committed request to a container.
 *
 * With use_existing an equal container (same spec_hash) is shared, tried in
 * the order in which Arvados does: one that is complete with exit code 0 (the
 * oldest result), a running one (the furthest), one that waits (locked before
 * queued, the most urgent). A complete one only for a user who may read it
 * already: equal definitions must not hand out another's results. A request
 * that is not preemptible never waits for a container that is.
 *
 * WRITE lane.
 */
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/change.h"
#include "core/apiserver/spec.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"

enum { CANDIDATES_MAX = 50 };

/* One way to find an equal container. */
struct way {
    const char *state;
    struct store_order order[2];
    bool (*fits)(const struct store_row *ctr, const struct store_row *req);
};

static bool has_result(const struct store_row *ctr,
                       const struct store_row *req)
{
    (void) req;
    return store_has(ctr, C_exit_code) && store_i64(ctr, C_exit_code) == 0 &&
           store_has(ctr, C_log) && store_has(ctr, C_output);
}

static bool json_has(const char *text, const char *key)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), NULL);

    return jsn_has(j, key);
}

static bool json_true(const char *text, const char *key)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), NULL);
    bool yes = false;

    jsn_opt_bool(j, key, &yes, NULL);
    return yes;
}

static bool runs_well(const struct store_row *ctr,
                      const struct store_row *req)
{
    (void) req;
    return store_i64(ctr, C_priority) > 0 &&
           !json_has(store_str(ctr, C_runtime_status), "error");
}

static bool waits_alike(const struct store_row *ctr,
                        const struct store_row *req)
{
    const char *mine = store_str(req, R_scheduling_parameters);
    const char *its = store_str(ctr, C_scheduling_parameters);

    return !json_true(its, "preemptible") || json_true(mine, "preemptible");
}

static const struct way ways[] = {
    {"Complete", {{C_finished_at, false}, {C_uuid, false}}, has_result},
    {"Running", {{C_progress, true}, {C_started_at, false}}, runs_well},
    {"Locked", {{C_priority, true}, {C_created_at, false}}, waits_alike},
    {"Queued", {{C_priority, true}, {C_created_at, false}}, waits_alike},
};

struct search {
    const struct way *way;
    const struct store_row *req;
    struct change_rows found;
};

static bool consider(void *arg, const struct store_row *row)
{
    struct search *s = arg;
    struct store_row copy = {0};

    if (!s->way->fits(row, s->req))
        return true;
    store_row_merge(&copy, row);
    VEC_PUSH(&s->found.rows, copy);
    return s->found.rows.n < CANDIDATES_MAX;
}

static int search(struct change *ch, const char *hash, struct search *s,
                  struct err *err)
{
    struct store_value v[2] = {
        {.kind = STORE_TEXT, .s = hash, .n = strlen(hash)},
        {.kind = STORE_TEXT, .s = s->way->state,
         .n = strlen(s->way->state)}};
    struct store_cond c[2] = {
        {.table = STORE_CONTAINERS, .col = C_spec_hash, .op = STORE_OP_EQ,
         .other = -1, .v = &v[0], .n = 1},
        {.table = STORE_CONTAINERS, .col = C_state, .op = STORE_OP_EQ,
         .other = -1, .v = &v[1], .n = 1}};
    struct store_query q = {.table = STORE_CONTAINERS, .cols = STORE_ALL,
                            .conds = c, .n_conds = 2,
                            .order = s->way->order, .n_order = 2,
                            .limit = 1000};

    return store_find(ch->tx, &q, consider, s, err);
}

/* Has this user a request of his own for it? */
static int is_readable(struct change *ch, const char *ctr_uuid,
                       const char *owner, bool *ret, struct err *err)
{
    CLEANUP(change_rows_fini) struct change_rows reqs = {0};

    *ret = false;
    if (change_find(ch, STORE_REQUESTS, R_container_uuid, ctr_uuid, NULL,
                    &reqs, err) < 0)
        return -1;
    for (size_t i = 0; i < reqs.rows.n; i++)
        if (strcmp(store_str(&reqs.rows.v[i], R_owner_uuid), owner) == 0)
            *ret = true;
    return 0;
}

static void search_fini(struct search *s)
{
    change_rows_fini(&s->found);
}

/* ret stays empty when there is none. */
static int find_equal(struct change *ch, const struct store_row *req,
                      const char *hash, struct store_row *ret,
                      struct err *err)
{
    for (size_t w = 0; w < MEM_COUNT(ways); w++) {
        CLEANUP(search_fini) struct search s = {&ways[w], req, {{0}}};
        if (search(ch, hash, &s, err) < 0)
            return -1;
        for (size_t i = 0; i < s.found.rows.n; i++) {
            const struct store_row *row = &s.found.rows.v[i];
            bool may = w > 0;
            if (!may && is_readable(ch, store_str(row, C_uuid),
                                    store_str(req, R_owner_uuid), &may,
                                    err) < 0)
                return -1;
            if (!may)
                continue;
            store_row_merge(ret, row);
            return 0;
        }
    }
    return 0;
}

static int make_container(struct change *ch, const struct store_row *req,
                          struct store_row *ctr, struct err *err)
{
    store_set_i64(ctr, C_priority, 0);
    store_set_str(ctr, C_runtime_user_uuid, store_str(req, R_owner_uuid));
    store_set_str(ctr, C_runtime_auth_scopes, "[\"all\"]");
    return change_insert(ch, STORE_CONTAINERS, "dz642", ctr, err);
}

int assign_container(struct change *ch, struct store_row *req,
                     struct err *err)
{
    CLEANUP(store_row_fini) struct store_row fresh = {0}, ctr = {0};
    CLEANUP(store_row_fini) struct store_row changes = {0};

    spec_container(req, &fresh);
    if (store_i64(req, R_use_existing) &&
        find_equal(ch, req, store_str(&fresh, C_spec_hash), &ctr, err) < 0)
        return -1;
    if (!ctr.set) {
        if (make_container(ch, req, &fresh, err) < 0)
            return -1;
        store_row_merge(&ctr, &fresh);
    }
    store_set_str(&changes, R_container_uuid, store_str(&ctr, C_uuid));
    store_set_i64(&changes, R_container_count,
                  store_i64(req, R_container_count) + 1);
    if (change_update(ch, STORE_REQUESTS, req, &changes, err) < 0)
        return -1;
    if (change_state(&ctr) == CTR_COMPLETE)
        return finish_request(ch, req, &ctr, err);
    return prio_update(ch, store_str(&ctr, C_uuid), err);
}
