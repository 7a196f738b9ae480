/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a container, seen by its requests.
 *
 * Complete: each becomes Final, with collections of its own for log and
 * output. Cancelled: requests that still want a result (priority above 0, not
 * cancelled, retries left, parent alive) move together to one new container of
 * the same definition; the others become Final. Whoever wrote the final state
 * may rule a retry out with runtime_status.noRetry, because it would only fail
 * again. A non-zero exit code is a result, never a reason to retry.
 *
 * Requests that the ended container had made lose their maker: priority 0, and
 * those whose container has not started are finished at once.
 *
 * WRITE lane.
 */
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/change.h"
#include "core/apiserver/ident.h"
#include "core/apiserver/spec.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/model/ctr.h"

/* ---------------------------------------------------------- collections -- */

/* A collection of the request's owner with the same content. NULL uuid when
 * the container has none. */
static int copy_collection(struct change *ch, const struct store_row *req,
                           const struct store_row *ctr, const char *content,
                           const char *name, struct store_row *changes,
                           unsigned col, struct err *err)
{
    CLEANUP(change_rows_fini) struct change_rows found = {0};
    char uuid[IDENT_UUID];

    if (change_find(ch, STORE_COLLECTIONS, L_container_uuid,
                    store_str(ctr, C_uuid), NULL, &found, err) < 0)
        return -1;
    for (size_t i = 0; i < found.rows.n; i++) {
        struct store_row *row = &found.rows.v[i];
        if (strcmp(store_str(row, L_content), content) != 0)
            continue;
        ident_uuid(ch->cfg->cluster_id, "4zz18", uuid);
        store_set_str(row, L_uuid, uuid);
        store_set_str(row, L_owner_uuid, store_str(req, R_owner_uuid));
        store_set_str(row, L_name, name);
        store_set_str(changes, col, uuid);
        return change_insert(ch, STORE_COLLECTIONS, "4zz18", row, err);
    }
    return 0;
}

static int copy_results(struct change *ch, const struct store_row *req,
                        const struct store_row *ctr,
                        struct store_row *changes, struct err *err)
{
    const char *uuid = store_str(req, R_uuid);
    CLEANUP(mem_free) char *log =
        mem_printf("Container log for request %s", uuid);
    CLEANUP(mem_free) char *output =
        store_has(req, R_output_name)
            ? mem_strdup(store_str(req, R_output_name))
            : mem_printf("Container output for request %s", uuid);

    if (copy_collection(ch, req, ctr, "log", log, changes, R_log_uuid,
                        err) < 0)
        return -1;
    if (change_state(ctr) != CTR_COMPLETE)
        return 0;
    return copy_collection(ch, req, ctr, "output", output, changes,
                           R_output_uuid, err);
}

/* ------------------------------------------------------------ one request */

static double cost_of(const struct store_row *ctr)
{
    return store_f64(ctr, C_cost) + store_f64(ctr, C_subrequests_cost);
}

/* What a child cost is part of what its maker cost. */
static int charge_parent(struct change *ch, const struct store_row *req,
                         struct err *err)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0}, changes = {0};
    double cost = store_f64(req, R_cumulative_cost);
    struct err e = {0};

    if (!store_has(req, R_requesting_container_uuid) || cost <= 0)
        return 0;
    if (store_get(ch->tx, STORE_CONTAINERS,
                  store_str(req, R_requesting_container_uuid),
                  STORE_BIT(C_uuid) | STORE_BIT(C_subrequests_cost), &ctr,
                  &e) < 0) {
        if (e.class == ERR_NOT_FOUND)
            return 0;
        *err = e;
        return -1;
    }
    store_set_f64(&changes, C_subrequests_cost,
                  store_f64(&ctr, C_subrequests_cost) + cost);
    return change_update(ch, STORE_CONTAINERS, &ctr, &changes, err);
}

int finish_request(struct change *ch, struct store_row *req,
                   const struct store_row *ctr, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row changes = {0};

    store_set_str(&changes, R_state, cr_state_name(CR_FINAL));
    if (ctr) {
        store_set_f64(&changes, R_cumulative_cost,
                      store_f64(req, R_cumulative_cost) + cost_of(ctr));
        if (copy_results(ch, req, ctr, &changes, err) < 0)
            return -1;
    }
    store_set_str(&changes, R_secret_mounts, "{}");
    store_set_null(&changes, R_runtime_token);
    if (change_update(ch, STORE_REQUESTS, req, &changes, err) < 0)
        return -1;
    return charge_parent(ch, req, err);
}

/* ---------------------------------------------------------------- retry -- */

static bool retry_ruled_out(const struct store_row *ctr)
{
    const char *text = store_str(ctr, C_runtime_status);
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), NULL);
    bool no_retry = false;

    jsn_opt_bool(j, "noRetry", &no_retry, NULL);
    return no_retry;
}

static int parent_alive(struct change *ch, const struct store_row *req,
                        bool *ret, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct err e = {0};

    *ret = true;
    if (!store_has(req, R_requesting_container_uuid))
        return 0;
    if (store_get(ch->tx, STORE_CONTAINERS,
                  store_str(req, R_requesting_container_uuid),
                  STORE_BIT(C_state) | STORE_BIT(C_priority), &ctr,
                  &e) == 0) {
        *ret = change_state(&ctr) == CTR_RUNNING &&
               store_i64(&ctr, C_priority) > 0;
        return 0;
    }
    *ret = false;
    if (e.class == ERR_NOT_FOUND)
        return 0;
    *err = e;
    return -1;
}

static int wants_retry(struct change *ch, const struct store_row *req,
                       bool *ret, struct err *err)
{
    if (parent_alive(ch, req, ret, err) < 0)
        return -1;
    *ret = *ret && store_i64(req, R_priority) > 0 &&
           store_i64(req, R_container_count) <
               store_i64(req, R_container_count_max);
    return 0;
}

/* Move a request to the new container; its first one defines scheduling. */
static int move_request(struct change *ch, struct store_row *req,
                        const struct store_row *old, const char *uuid,
                        struct err *err)
{
    CLEANUP(store_row_fini) struct store_row changes = {0};

    store_set_str(&changes, R_container_uuid, uuid);
    store_set_i64(&changes, R_container_count,
                  store_i64(req, R_container_count) + 1);
    store_set_f64(&changes, R_cumulative_cost,
                  store_f64(req, R_cumulative_cost) + cost_of(old));
    return change_update(ch, STORE_REQUESTS, req, &changes, err);
}

static void add_scheduling(struct store_row *ctr, const struct store_row *req)
{
    const char *text = store_str(req, R_scheduling_parameters);

    if (store_has(ctr, C_scheduling_parameters))
        spec_scheduling_merge(ctr, C_scheduling_parameters, text);
    else
        store_set_str(ctr, C_scheduling_parameters, text);
}

static int retry(struct change *ch, const struct store_row *old,
                 struct change_rows *reqs, const bool *again,
                 struct err *err)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    char uuid[IDENT_UUID];

    spec_copy(old, &ctr);
    ident_uuid(ch->cfg->cluster_id, "dz642", uuid);
    store_set_str(&ctr, C_uuid, uuid);
    store_set_i64(&ctr, C_priority, 0);
    for (size_t i = 0; i < reqs->rows.n; i++)
        if (again[i])
            add_scheduling(&ctr, &reqs->rows.v[i]);
    if (change_insert(ch, STORE_CONTAINERS, "dz642", &ctr, err) < 0)
        return -1;
    for (size_t i = 0; i < reqs->rows.n; i++)
        if (again[i] &&
            move_request(ch, &reqs->rows.v[i], old, uuid, err) < 0)
            return -1;
    return prio_update(ch, uuid, err);
}

/* ------------------------------------------------------------- children -- */

static int orphan(struct change *ch, struct store_row *req, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row changes = {0}, ctr = {0};
    const char *uuid = store_str(req, R_container_uuid);
    enum ctr_state state;

    store_set_i64(&changes, R_priority, 0);
    if (change_update(ch, STORE_REQUESTS, req, &changes, err) < 0)
        return -1;
    if (!*uuid)
        return finish_request(ch, req, NULL, err);
    if (prio_update(ch, uuid, err) < 0 ||
        store_get(ch->tx, STORE_CONTAINERS, uuid, STORE_BIT(C_state), &ctr,
                  err) < 0)
        return -1;
    state = change_state(&ctr);
    if (state == CTR_QUEUED || state == CTR_LOCKED)
        return finish_request(ch, req, NULL, err);
    return 0;
}

static int orphan_children(struct change *ch, const char *uuid,
                           struct err *err)
{
    CLEANUP(change_rows_fini) struct change_rows kids = {0};

    if (change_find(ch, STORE_REQUESTS, R_requesting_container_uuid, uuid,
                    "Committed", &kids, err) < 0)
        return -1;
    for (size_t i = 0; i < kids.rows.n; i++)
        if (orphan(ch, &kids.rows.v[i], err) < 0)
            return -1;
    return 0;
}

/* -------------------------------------------------------------- the end -- */

static int choose_retries(struct change *ch, const struct store_row *ctr,
                          struct change_rows *reqs, bool *again, bool *any,
                          struct err *err)
{
    *any = false;
    if (change_state(ctr) != CTR_CANCELLED || retry_ruled_out(ctr))
        return 0;
    for (size_t i = 0; i < reqs->rows.n; i++) {
        if (wants_retry(ch, &reqs->rows.v[i], &again[i], err) < 0)
            return -1;
        *any |= again[i];
    }
    return 0;
}

int finish_requests(struct change *ch, const struct store_row *ctr,
                    struct err *err)
{
    CLEANUP(change_rows_fini) struct change_rows reqs = {0};
    CLEANUP(mem_free) bool *again = NULL;
    const char *uuid = store_str(ctr, C_uuid);
    bool any;

    if (change_find(ch, STORE_REQUESTS, R_container_uuid, uuid, "Committed",
                    &reqs, err) < 0)
        return -1;
    again = mem_calloc(reqs.rows.n + 1, sizeof *again);
    if (choose_retries(ch, ctr, &reqs, again, &any, err) < 0 ||
        (any && retry(ch, ctr, &reqs, again, err) < 0))
        return -1;
    for (size_t i = 0; i < reqs.rows.n; i++)
        if (!again[i] && finish_request(ch, &reqs.rows.v[i], ctr, err) < 0)
            return -1;
    return orphan_children(ch, uuid, err);
}

int finish_all_cancelled(struct change *ch, const char *ctr_uuid, bool *ret,
                         struct err *err)
{
    CLEANUP(change_rows_fini) struct change_rows reqs = {0};

    *ret = false;
    if (change_find(ch, STORE_REQUESTS, R_container_uuid, ctr_uuid,
                    "Committed", &reqs, err) < 0)
        return -1;
    for (size_t i = 0; i < reqs.rows.n; i++)
        if (!store_i64(&reqs.rows.v[i], R_cancelled))
            return 0;
    *ret = reqs.rows.n > 0;
    return 0;
}
