/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_requests: create, update, cancel.
 *
 * The definition is read and checked in the READ lane, where time costs
 * nothing; the writer inserts, assigns a container, computes priorities. The
 * reply is the record as it is after all that (a request that finds an equal
 * finished container is Final at once).
 *
 * An Idempotency-Key makes a repeated create harmless: key and digest of the
 * body are stored with the request, in the same transaction, per owner, for
 * seven days. The digest is over what the client sent, not what it means.
 */
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/change.h"
#include "core/apiserver/handlers.h"
#include "core/apiserver/rules.h"
#include "core/apiserver/spec.h"
#include "core/base/err.h"
#include "core/base/fault.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/io/crypt.h"
#include "core/model/ctr.h"

enum { KEY_MAX = 255 };
static const int64_t key_life_us = 7 * 86400 * INT64_C(1000000);

/* Set by the server alone. */
static void drop_own(struct store_row *attrs)
{
    static const unsigned cols[] = {
        R_uuid, R_owner_uuid, R_container_count, R_cumulative_cost,
        R_log_uuid, R_output_uuid, R_requesting_container_uuid};

    for (size_t i = 0; i < MEM_COUNT(cols); i++)
        store_unset(attrs, cols[i]);
    if (!store_has(attrs, R_container_uuid))
        store_unset(attrs, R_container_uuid);
}

static int read_attrs(struct call *c, struct err *err)
{
    const struct jsn *attrs;

    store_row_fini(&c->attrs);
    if (params_attrs(&c->params, "container_request", &attrs, err) < 0)
        return -1;
    if (attrs && resource_read(resource_of(STORE_REQUESTS), attrs,
                               STORE_BIT(R_secret_mounts) |
                                   STORE_BIT(R_runtime_token),
                               &c->attrs, err) < 0)
        return -1;
    drop_own(&c->attrs);
    return 0;
}

static int read_state(const struct store_row *row, enum cr_state *ret,
                      struct err *err)
{
    if (cr_state_of(store_str(row, R_state), ret) == 0)
        return 0;
    return err_set(err, ERR_INVALID, "unknown state '%.30s'",
                   store_str(row, R_state));
}

/* -------------------------------------------------------------- create -- */

enum store_next requests_prepare_create(struct call *c, struct store_tx *tx)
{
    enum cr_state state;
    struct err err = {0};

    (void) tx;
    if (c->idempotency &&
        (!*c->idempotency || strlen(c->idempotency) > KEY_MAX))
        return call_fail(c, 422, "Idempotency-Key must have 1 to %d bytes",
                         KEY_MAX);
    if (read_attrs(c, &err) < 0)
        return call_fail_err(c, &err);
    store_unset(&c->attrs, R_container_uuid);
    spec_defaults(&c->attrs, c->app->cfg.max_retry_attempts);
    if (read_state(&c->attrs, &state, &err) < 0)
        return call_fail_err(c, &err);
    if (state == CR_FINAL)
        return call_fail(c, 422, "state cannot be Final in a new request");
    if (spec_check(&c->attrs, state == CR_COMMITTED, &err) < 0)
        return call_fail_err(c, &err);
    return STORE_WRITE;
}

/* A request that a container makes is as urgent as those that want it. */
static int set_parent(struct call *c, struct change *ch,
                      struct store_row *req, struct err *err)
{
    CLEANUP(change_rows_fini) struct change_rows reqs = {0};
    int64_t best = 0;

    if (c->who.kind != WHO_PAYLOAD)
        return 0;
    store_set_str(req, R_requesting_container_uuid, c->who.container_uuid);
    if (change_find(ch, STORE_REQUESTS, R_container_uuid,
                    c->who.container_uuid, "Committed", &reqs, err) < 0)
        return -1;
    for (size_t i = 0; i < reqs.rows.n; i++)
        if (store_i64(&reqs.rows.v[i], R_priority) > best)
            best = store_i64(&reqs.rows.v[i], R_priority);
    store_set_i64(req, R_priority, best);
    return 0;
}

static char *key_id(struct call *c)
{
    return mem_printf("%s/%s", c->who.user_uuid, c->idempotency);
}

/* Was this key seen? 1: answered. */
static int replay(struct call *c, struct store_tx *tx, const char *hash,
                  enum store_next *ret, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row key = {0}, req = {0};
    CLEANUP(mem_free) char *id = key_id(c);
    struct err e = {0};

    if (store_get(tx, STORE_IDEMPOTENCY, id, STORE_ALL, &key, &e) < 0) {
        if (e.class == ERR_NOT_FOUND)
            return 0;
        *err = e;
        return -1;
    }
    if (store_i64(&key, I_created_at) < c->now - key_life_us)
        return store_delete(tx, STORE_IDEMPOTENCY, id, err);
    if (strcmp(store_str(&key, I_body_hash), hash) != 0)
        return err_set(err, ERR_CONFLICT,
                       "this Idempotency-Key came with another body before");
    if (store_get(tx, STORE_REQUESTS, store_str(&key, I_request_uuid),
                  STORE_ALL, &req, err) < 0)
        return -1;
    *ret = call_record(c, &req);
    return 1;
}

static int remember(struct call *c, struct store_tx *tx, const char *hash,
                    const char *uuid, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row key = {0};
    CLEANUP(mem_free) char *id = key_id(c);

    store_set_str(&key, I_id, id);
    store_set_str(&key, I_body_hash, hash);
    store_set_str(&key, I_request_uuid, uuid);
    store_set_i64(&key, I_created_at, c->now);
    return store_insert(tx, STORE_IDEMPOTENCY, &key, err);
}

static int insert(struct call *c, struct change *ch, struct store_row *req,
                  struct err *err)
{
    store_set_str(req, R_owner_uuid, c->who.user_uuid);
    if (set_parent(c, ch, req, err) < 0 ||
        change_insert(ch, STORE_REQUESTS, "xvhdp", req, err) < 0)
        return -1;
    if (strcmp(store_str(req, R_state), "Committed") != 0)
        return 0;
    return assign_container(ch, req, err);
}

/* One with no body has not been prepared. */
static bool is_prepared(const struct call *c)
{
    return store_has(&c->attrs, R_state);
}

enum store_next requests_create(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row req = {0};
    char hash[2 * CRYPT_SHA256_LEN + 1];
    enum store_next next = STORE_ABORT;
    struct err err = {0};
    struct change ch;
    int rc;

    if (!is_prepared(c) && requests_prepare_create(c, tx) == STORE_ABORT)
        return STORE_ABORT;
    call_change(c, tx, &ch);
    crypt_sha256_hex(c->body, c->body_len, hash);
    if (c->idempotency && (rc = replay(c, tx, hash, &next, &err)) != 0)
        return rc < 0 ? call_fail_err(c, &err) : next;
    store_row_merge(&req, &c->attrs);
    if (insert(c, &ch, &req, &err) < 0 ||
        (c->idempotency &&
         remember(c, tx, hash, store_str(&req, R_uuid), &err) < 0) ||
        store_get(tx, STORE_REQUESTS, store_str(&req, R_uuid), STORE_ALL,
                  &req, &err) < 0)
        return call_fail_err(c, &err);
    return call_record(c, &req);
}

/* -------------------------------------------------------------- update -- */

enum store_next requests_prepare_update(struct call *c, struct store_tx *tx)
{
    struct err err = {0};

    (void) tx;
    if (read_attrs(c, &err) < 0)
        return call_fail_err(c, &err);
    return STORE_WRITE;
}

/* The record with the changes in it must pass the checks as a whole. */
static int check_whole(struct store_row *req, struct store_row *attrs,
                       enum cr_state to, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row whole = {0};
    static const unsigned normal[] = {R_runtime_constraints,
                                      R_scheduling_parameters};

    store_row_merge(&whole, req);
    store_row_merge(&whole, attrs);
    if (spec_check(&whole, to != CR_UNCOMMITTED, err) < 0)
        return -1;
    for (size_t i = 0; i < MEM_COUNT(normal); i++)
        store_set_value(attrs, normal[i], &whole.v[normal[i]]);
    return 0;
}

static uint64_t keep_changes(struct store_row *attrs,
                             const struct store_row *req)
{
    for (unsigned col = 0; col < R_COUNT; col++)
        if (attrs->set & STORE_BIT(col) &&
            store_value_equal(&attrs->v[col], &req->v[col]))
            store_unset(attrs, col);
    return attrs->set & ~STORE_BIT(R_state);
}

/* What follows from a change that is stored. */
static int follow_up(struct change *ch, struct store_row *req,
                     enum cr_state from, enum cr_state to,
                     bool priority_changed, struct err *err)
{
    if (from == CR_UNCOMMITTED && to == CR_COMMITTED)
        return assign_container(ch, req, err);
    if (to == CR_COMMITTED && priority_changed &&
        store_has(req, R_container_uuid))
        return prio_update(ch, store_str(req, R_container_uuid), err);
    return 0;
}

static int apply(struct change *ch, struct store_row *req,
                 struct store_row *attrs, struct err *err)
{
    enum cr_state from, to;
    uint64_t changed;
    bool priority;

    if (read_state(req, &from, err) < 0)
        return -1;
    to = from;
    if (store_has(attrs, R_state) && read_state(attrs, &to, err) < 0)
        return -1;
    if (to == CR_FINAL && from != to)
        return err_set(err, ERR_CONFLICT,
                       "a request becomes Final when its container ends");
    if (rules_request_state(from, to, err) < 0)
        return -1;
    if (from != CR_FINAL && check_whole(req, attrs, to, err) < 0)
        return -1;
    changed = keep_changes(attrs, req);
    if (rules_request_columns(from, to, changed, err) < 0)
        return -1;
    if (!attrs->set)
        return 0;
    priority = changed & STORE_BIT(R_priority);
    if (priority && store_i64(attrs, R_priority) > 0)
        store_set_i64(attrs, R_cancelled, 0);
    if (change_update(ch, STORE_REQUESTS, req, attrs, err) < 0)
        return -1;
    return follow_up(ch, req, from, to, priority, err);
}

enum store_next requests_update(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row req = {0}, attrs = {0};
    struct err err = {0};
    struct change ch;

    call_change(c, tx, &ch);
    store_row_merge(&attrs, &c->attrs);
    if (call_find(c, tx, STORE_REQUESTS, c->id, STORE_ALL, &req, &err) < 0 ||
        apply(&ch, &req, &attrs, &err) < 0 ||
        store_get(tx, STORE_REQUESTS, c->id, STORE_ALL, &req, &err) < 0)
        return call_fail_err(c, &err);
    return call_record(c, &req);
}

/* -------------------------------------------------------------- cancel -- */

static int wanted_by_others(struct change *ch, const struct store_row *req,
                            bool *ret, struct err *err)
{
    CLEANUP(change_rows_fini) struct change_rows reqs = {0};

    *ret = false;
    if (change_find(ch, STORE_REQUESTS, R_container_uuid,
                    store_str(req, R_container_uuid), "Committed", &reqs,
                    err) < 0)
        return -1;
    for (size_t i = 0; i < reqs.rows.n; i++)
        if (strcmp(store_str(&reqs.rows.v[i], R_uuid),
                   store_str(req, R_uuid)) != 0 &&
            !store_i64(&reqs.rows.v[i], R_cancelled))
            *ret = true;
    return 0;
}

/* What becomes of the container; rc as of life_end. */
static int cancel_container(struct call *c, struct change *ch,
                            struct store_row *req, struct store_row *ctr,
                            struct err *err)
{
    CLEANUP(store_row_fini) struct store_row none = {0};
    bool others;

    if (prio_update(ch, store_str(req, R_container_uuid), err) < 0 ||
        store_get(ch->tx, STORE_CONTAINERS,
                  store_str(req, R_container_uuid), STORE_ALL, ctr,
                  err) < 0 ||
        wanted_by_others(ch, req, &others, err) < 0)
        return -1;
    if (others)
        return finish_request(ch, req, NULL, err);
    if (change_state(ctr) != CTR_QUEUED)
        return 0; /* the dispatcher sees priority 0 and ends it */
    c->final = true;
    return life_end(ch, ctr, &none, CTR_CANCELLED, err);
}

static int mark_cancelled(struct change *ch, struct store_row *req,
                          struct err *err)
{
    CLEANUP(store_row_fini) struct store_row changes = {0};

    store_set_i64(&changes, R_priority, 0);
    store_set_i64(&changes, R_cancelled, 1);
    return change_update(ch, STORE_REQUESTS, req, &changes, err);
}

enum store_next requests_cancel(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row req = {0}, ctr = {0};
    enum store_next next;
    struct err err = {0};
    struct change ch;

    call_change(c, tx, &ch);
    if (call_find(c, tx, STORE_REQUESTS, c->id, STORE_ALL, &req, &err) < 0)
        return call_fail_err(c, &err);
    if (strcmp(store_str(&req, R_state), "Final") == 0)
        return call_record(c, &req);
    if (mark_cancelled(&ch, &req, &err) < 0)
        return call_fail_err(c, &err);
    if (store_has(&req, R_container_uuid) &&
        call_waits(c, &ctr, cancel_container(c, &ch, &req, &ctr, &err), &err,
                   &next))
        return next;
    if (store_get(tx, STORE_REQUESTS, c->id, STORE_ALL, &req, &err) < 0)
        return call_fail_err(c, &err);
    return call_record(c, &req);
}

/* The dispatcher is asked on the loop, see status.c. */
enum store_next requests_status(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row req = {0}, ctr = {0};
    struct err err = {0};

    if (call_find(c, tx, STORE_REQUESTS, c->id, STORE_BIT(R_container_uuid),
                  &req, &err) < 0)
        return call_fail_err(c, &err);
    if (!store_has(&req, R_container_uuid))
        return call_fail(c, 404, "the request has no container");
    if (store_get(tx, STORE_CONTAINERS, store_str(&req, R_container_uuid),
                  STORE_ALL, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    store_row_fini(&c->attrs);
    store_row_merge(&c->attrs, &ctr);
    return STORE_DONE;
}
