/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock, unlock, auth, attempt: what a dispatcher does with a container.
 *
 * These are the only points where dispatchers meet. Each reads, decides and
 * writes inside the one writer's transaction, so that of two locks exactly one
 * succeeds. Lock and unlock answer with five fields, byte for byte as Arvados
 * does; a lost race is a 422, which the caller settles by reading again.
 *
 * An attempt is what makes a superseded runner harmless: its token is compared
 * in the transaction of every write (who.c), and a new attempt, a revocation
 * or an unlock ends it.
 *
 * WRITE lane; auth: READ.
 */
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/change.h"
#include "core/apiserver/handlers.h"
#include "core/apiserver/ident.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/model/ctr.h"

/* The record of Arvados' lock and unlock answers. */
static enum store_next reply_five(struct call *c, const struct store_row *ctr)
{
    static const unsigned cols[] = {C_uuid, C_state, C_priority, C_auth_uuid,
                                    C_locked_by_uuid};
    struct resource_view view = {0};
    struct jsn_w w;

    for (size_t i = 0; i < MEM_COUNT(cols); i++)
        view.cols |= STORE_BIT(cols[i]);
    call_json(c, &w);
    resource_write_members(resource_of(STORE_CONTAINERS), &view, ctr, &w);
    jsn_w_end_obj(&w);
    return STORE_DONE;
}

static bool holds_lock(const struct call *c, const struct store_row *ctr)
{
    return strcmp(store_str(ctr, C_locked_by_uuid), c->who.token_uuid) == 0;
}

enum store_next locks_lock(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct err err = {0};
    struct change ch;

    call_change(c, tx, &ch);
    if (call_container(c, tx, &ctr, &err) < 0 ||
        life_lock(&ch, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    c->locked = true;
    return reply_five(c, &ctr);
}

enum store_next locks_unlock(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct err err = {0};
    struct change ch;
    enum store_next next;

    call_change(c, tx, &ch);
    if (call_container(c, tx, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    if (change_state(&ctr) != CTR_LOCKED)
        return call_fail(c, 422, "cannot unlock when %s",
                         store_str(&ctr, C_state));
    if (!holds_lock(c, &ctr))
        return call_fail(c, 403, "Forbidden: locked by another token");
    if (call_waits(c, &ctr, life_unlock(&ch, &ctr, &err), &err, &next))
        return next;
    return reply_five(c, &ctr);
}

/* ---------------------------------------------------------------- auth -- */

/* The container's own token has no row: this is how it would look. */
static void write_token(struct call *c, const struct store_row *ctr)
{
    const char *uuid = store_str(ctr, C_auth_uuid);
    char secret[IDENT_SECRET];
    struct jsn_w w;

    who_payload_secret(&c->app->cfg, uuid, secret);
    call_json(c, &w);
    jsn_w_str(&w, "kind", resource_of(STORE_TOKENS)->kind);
    jsn_w_str(&w, "etag", "");
    jsn_w_str(&w, "uuid", uuid);
    jsn_w_str(&w, "owner_uuid", store_str(ctr, C_runtime_user_uuid));
    jsn_w_time(&w, "created_at", store_i64(ctr, C_modified_at));
    jsn_w_null(&w, "modified_by_user_uuid");
    jsn_w_time(&w, "modified_at", store_i64(ctr, C_modified_at));
    jsn_w_str(&w, "api_token", secret);
    jsn_w_null(&w, "created_by_ip_address");
    jsn_w_null(&w, "expires_at");
    jsn_w_null(&w, "last_used_at");
    jsn_w_null(&w, "last_used_by_ip_address");
    jsn_w_raw(&w, "scopes",
              store_has(ctr, C_runtime_auth_scopes)
                  ? store_str(ctr, C_runtime_auth_scopes)
                  : "[\"all\"]");
    jsn_w_end_obj(&w);
}

static bool wants_api(const struct store_row *ctr)
{
    const char *text = store_str(ctr, C_runtime_constraints);
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), NULL);
    bool api = false;

    jsn_opt_bool(j, "API", &api, NULL);
    return api;
}

enum store_next locks_auth(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    bool runner = c->who.kind == WHO_ATTEMPT;
    struct err err = {0};

    if (call_container(c, tx, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    if (!runner && !holds_lock(c, &ctr))
        return call_fail(c, 403, "Not locked by your token");
    if (runner && !wants_api(&ctr))
        return call_fail(c, 403, "the container does not ask for API access");
    if (!store_has(&ctr, C_auth_uuid))
        return call_fail(c, 403, "the container has no token of its own");
    write_token(c, &ctr);
    return STORE_DONE;
}

/* ------------------------------------------------------------- attempts -- */

static void write_attempt(struct call *c, const struct store_row *ctr,
                          const char *token)
{
    struct jsn_w w;

    call_json(c, &w);
    jsn_w_str(&w, "uuid", store_str(ctr, C_uuid));
    jsn_w_i64(&w, "attempt", store_i64(ctr, C_attempt));
    if (token)
        jsn_w_str(&w, "api_token", token);
    jsn_w_end_obj(&w);
}

enum store_next locks_attempt(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    char token[IDENT_TOKEN];
    struct err err = {0};
    struct change ch;

    call_change(c, tx, &ch);
    if (call_container(c, tx, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    if (change_state(&ctr) == CTR_LOCKED && !holds_lock(c, &ctr))
        return call_fail(c, 403, "Not locked by your token");
    if (life_attempt(&ch, &ctr, token, &err) < 0)
        return call_fail_err(c, &err);
    c->attempted = true;
    write_attempt(c, &ctr, token);
    return STORE_DONE;
}

enum store_next locks_revoke(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct err err = {0};
    struct change ch;

    call_change(c, tx, &ch);
    if (call_container(c, tx, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    if (store_has(&ctr, C_locked_by_uuid) && !holds_lock(c, &ctr))
        return call_fail(c, 403, "Not locked by your token");
    if (life_revoke(&ch, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    write_attempt(c, &ctr, NULL);
    return STORE_DONE;
}
