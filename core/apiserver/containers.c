/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containers: create, update, delete, and reads that are not records.
 *
 * An update is read as columns, compared with the record, and judged by
 * rules.c on what would really change: sending back what is already so is no
 * change, so a client that lost an answer may repeat its update. `log` and
 * `output` are the server's own (it hashes the files) and are left out. State
 * Locked and Queued mean lock and unlock; a final state ends the container.
 *
 * WRITE lane, except the reads.
 */
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/change.h"
#include "core/apiserver/handlers.h"
#include "core/apiserver/ident.h"
#include "core/apiserver/rules.h"
#include "core/apiserver/spec.h"
#include "core/base/err.h"
#include "core/base/fault.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/model/ctr.h"

void call_change(struct call *c, struct store_tx *tx, struct change *ret)
{
    *ret = (struct change){.cfg = &c->app->cfg, .tx = tx, .now = c->now,
                           .user_uuid = c->who.user_uuid,
                           .token_uuid = c->who.token_uuid, .pub = c->pub};
}

int call_container(struct call *c, struct store_tx *tx,
                   struct store_row *ret, struct err *err)
{
    return call_find(c, tx, STORE_CONTAINERS, c->id, STORE_ALL, ret, err);
}

bool call_waits(struct call *c, const struct store_row *ctr, int rc,
                const struct err *err, enum store_next *ret)
{
    if (rc == 0)
        return false;
    if (rc < 0) {
        *ret = call_fail_err(c, err);
        return true;
    }
    text_copy(c->pub_uuid, store_str(ctr, C_uuid), sizeof c->pub_uuid);
    c->pub_attempt = store_i64(ctr, C_attempt);
    *ret = STORE_SLOW;
    return true;
}

/* -------------------------------------------------------------- update -- */

enum store_next containers_prepare(struct call *c, struct store_tx *tx)
{
    const struct jsn *attrs;
    struct err err = {0};

    (void) tx;
    store_row_fini(&c->attrs);
    if (params_attrs(&c->params, "container", &attrs, &err) < 0 ||
        (attrs && resource_read(resource_of(STORE_CONTAINERS), attrs,
                                STORE_BIT(C_secret_mounts) |
                                    STORE_BIT(C_runtime_token),
                                &c->attrs, &err) < 0))
        return call_fail_err(c, &err);
    store_unset(&c->attrs, C_log);
    store_unset(&c->attrs, C_output);
    return STORE_WRITE;
}

static enum rules_who role_of(const struct call *c,
                              const struct store_row *ctr)
{
    const char *holder = store_str(ctr, C_locked_by_uuid);

    switch (c->who.kind) {
    case WHO_ADMIN:
        return !*holder || strcmp(holder, c->who.token_uuid) == 0
                   ? RULES_OWNER
                   : RULES_ADMIN;
    case WHO_ATTEMPT:
        return RULES_ATTEMPT;
    case WHO_PAYLOAD:
        return RULES_PAYLOAD;
    case WHO_USER:
        break;
    }
    return RULES_USER;
}

/* Only what differs from the record, the state apart. */
static uint64_t keep_changes(struct store_row *attrs,
                             const struct store_row *ctr)
{
    for (unsigned col = 0; col < C_COUNT; col++)
        if (attrs->set & STORE_BIT(col) &&
            store_value_equal(&attrs->v[col], &ctr->v[col]))
            store_unset(attrs, col);
    return attrs->set & ~STORE_BIT(C_state);
}

static int change_to(struct change *ch, struct store_row *ctr,
                     struct store_row *attrs, enum ctr_state to,
                     struct err *err)
{
    enum ctr_state from = change_state(ctr);

    store_unset(attrs, C_state);
    if (from == to && !attrs->set)
        return 0;
    if (from == CTR_QUEUED && to == CTR_LOCKED)
        return life_lock(ch, ctr, err);
    if (from == CTR_LOCKED && to == CTR_QUEUED)
        return life_unlock(ch, ctr, err);
    if (from != to && ctr_state_final(to))
        return life_end(ch, ctr, attrs, to, err);
    return life_update(ch, ctr, attrs, to, err);
}

static int read_target(const struct store_row *attrs, enum ctr_state from,
                       enum ctr_state *ret, struct err *err)
{
    *ret = from;
    if (!store_has(attrs, C_state))
        return 0;
    if (ctr_state_of(store_str(attrs, C_state), ret) < 0)
        return err_set(err, ERR_INVALID, "unknown state '%.30s'",
                       store_str(attrs, C_state));
    return 0;
}

enum store_next containers_update(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0}, attrs = {0};
    struct err err = {0};
    enum ctr_state from, to;
    struct change ch;
    enum store_next next;

    call_change(c, tx, &ch);
    store_row_merge(&attrs, &c->attrs);
    if (call_container(c, tx, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    from = change_state(&ctr);
    if (read_target(&attrs, from, &to, &err) < 0 ||
        rules_update(role_of(c, &ctr), from, to, keep_changes(&attrs, &ctr),
                     &err) < 0)
        return call_fail_err(c, &err);
    if (from != to && ctr_state_final(to)) {
        if (fault_hit(FAULT_BEFORE_FINAL))
            return call_fail(c, 500, "planted failure");
        c->final = true;
    }
    if (call_waits(c, &ctr, change_to(&ch, &ctr, &attrs, to, &err), &err,
                   &next))
        return next;
    return call_record(c, &ctr);
}

/* ------------------------------------------------------- create, delete -- */

/* As a request would make it: the definition goes through the same checks. */
static int build(struct call *c, struct store_row *ctr, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row cr = {0};
    static const struct {
        unsigned c, r;
    } same[] = {
        {C_command, R_command}, {C_container_image, R_container_image},
        {C_cwd, R_cwd}, {C_environment, R_environment},
        {C_mounts, R_mounts}, {C_output_path, R_output_path},
        {C_runtime_constraints, R_runtime_constraints},
        {C_scheduling_parameters, R_scheduling_parameters},
        {C_secret_mounts, R_secret_mounts},
        {C_output_glob, R_output_glob}};

    for (size_t i = 0; i < MEM_COUNT(same); i++)
        if (c->attrs.set & STORE_BIT(same[i].c))
            store_set_value(&cr, same[i].r, &c->attrs.v[same[i].c]);
    store_set_i64(&cr, R_priority, 1);
    spec_defaults(&cr, c->app->cfg.max_retry_attempts);
    if (spec_check(&cr, true, err) < 0)
        return -1;
    spec_container(&cr, ctr);
    store_set_i64(ctr, C_priority, store_i64(&c->attrs, C_priority));
    return 0;
}

enum store_next containers_create(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct err err = {0};
    struct change ch;

    call_change(c, tx, &ch);
    if (store_i64(&c->attrs, C_priority) < 0)
        return call_fail(c, 422, "priority must not be negative");
    if (build(c, &ctr, &err) < 0 ||
        change_insert(&ch, STORE_CONTAINERS, "dz642", &ctr, &err) < 0 ||
        store_get(tx, STORE_CONTAINERS, store_str(&ctr, C_uuid), STORE_ALL,
                  &ctr, &err) < 0)
        return call_fail_err(c, &err);
    return call_record(c, &ctr);
}

/* Only what nothing depends on. */
enum store_next containers_delete(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    CLEANUP(change_rows_fini) struct change_rows reqs = {0};
    struct err err = {0};
    struct change ch;

    call_change(c, tx, &ch);
    if (call_container(c, tx, &ctr, &err) < 0 ||
        change_find(&ch, STORE_REQUESTS, R_container_uuid, c->id, NULL,
                    &reqs, &err) < 0)
        return call_fail_err(c, &err);
    if (reqs.rows.n > 0)
        return call_fail(c, 422, "a container request refers to it");
    if (change_state(&ctr) == CTR_LOCKED || change_state(&ctr) == CTR_RUNNING)
        return call_fail(c, 422, "cannot delete when %s",
                         store_str(&ctr, C_state));
    if (store_delete(tx, STORE_CONTAINERS, c->id, &err) < 0)
        return call_fail_err(c, &err);
    return call_record(c, &ctr);
}

enum store_next containers_update_priority(struct call *c,
                                           struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct err err = {0};
    struct change ch;

    call_change(c, tx, &ch);
    if (prio_update(&ch, c->id, &err) < 0 ||
        call_container(c, tx, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    return call_record(c, &ctr);
}

/* --------------------------------------------------------------- reads -- */

enum store_next containers_current(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct err err = {0};

    if (!*c->who.container_uuid)
        return call_fail(c, 404, "Token is not associated with a container");
    if (call_find(c, tx, STORE_CONTAINERS, c->who.container_uuid, STORE_ALL,
                  &ctr, &err) < 0)
        return call_fail_err(c, &err);
    return call_record(c, &ctr);
}

enum store_next containers_secret_mounts(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct err err = {0};
    struct jsn_w w;

    if (strcmp(c->id, c->who.container_uuid) != 0)
        return call_fail(c, 403, "Token is not the container's");
    if (call_container(c, tx, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    call_json(c, &w);
    jsn_w_raw(&w, "secret_mounts", store_str(&ctr, C_secret_mounts));
    jsn_w_end_obj(&w);
    return STORE_DONE;
}
