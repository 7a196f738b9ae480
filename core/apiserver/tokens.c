/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_client_authorizations and users: users are names on tokens.
 *
 * Anybody may make tokens for himself, with scopes no wider than he says; an
 * administrator for any name, also administrators' tokens. The secret is told
 * once, in the answer, as `api_token`; the database keeps its digest. Deleting
 * a token revokes it at once. A token may not be used to give its owner more
 * than it has: one with limited scopes makes tokens of the same scopes only.
 *
 * WRITE lane; the reads in READ.
 */
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/change.h"
#include "core/apiserver/handlers.h"
#include "core/apiserver/ident.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/io/crypt.h"

enum { SCOPES_MAX = 100 };

static enum store_next reply_token(struct call *c,
                                   const struct store_row *row,
                                   const char *secret)
{
    const struct resource *r = resource_of(STORE_TOKENS);
    struct resource_view view;
    struct jsn_w w;

    resource_view_all(r, &view);
    call_json(c, &w);
    resource_write_members(r, &view, row, &w);
    if (secret)
        jsn_w_str(&w, "api_token", secret);
    jsn_w_end_obj(&w);
    return STORE_DONE;
}

/* -------------------------------------------------------------- create -- */

static int check_scopes(const char *text, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), err);
    const char *s;

    if (!j || jsn_type(j) != JSN_ARRAY || jsn_count(j) > SCOPES_MAX)
        return err_set(err, ERR_INVALID,
                       "scopes must be an array of at most %d strings",
                       SCOPES_MAX);
    for (size_t i = 0; i < jsn_count(j); i++)
        if (jsn_as_str(jsn_at(j, i), &s, err) < 0)
            return err_prefix(err, "scopes");
    return 0;
}

static bool is_user_name(const char *s)
{
    return text_is_file_name(s, IDENT_USER_NAME - 1);
}

/* Whose token: the caller's, or the one that an administrator names. */
static int set_owner(struct call *c, struct store_row *row,
                     const struct store_row *attrs, struct err *err)
{
    bool admin = c->who.kind == WHO_ADMIN;
    const char *name = store_str(attrs, T_user_name);
    char uuid[IDENT_UUID];

    if (!admin && (store_i64(attrs, T_is_admin) ||
                   (*name && strcmp(name, c->who.user_name) != 0) ||
                   (store_has(attrs, T_owner_uuid) &&
                    strcmp(store_str(attrs, T_owner_uuid),
                           c->who.user_uuid) != 0)))
        return err_set(err, ERR_AUTH,
                       "only an administrator makes tokens for others");
    if (!*name) {
        store_set_str(row, T_user_name, c->who.user_name);
        store_set_str(row, T_owner_uuid, c->who.user_uuid);
        store_set_i64(row, T_is_admin, admin);
        return 0;
    }
    if (!is_user_name(name))
        return err_set(err, ERR_INVALID,
                       "user_name must be a name of [A-Za-z0-9._-]+");
    ident_user(c->app->cfg.cluster_id, name, uuid);
    store_set_str(row, T_user_name, name);
    store_set_str(row, T_owner_uuid, uuid);
    store_set_i64(row, T_is_admin, store_i64(attrs, T_is_admin));
    return 0;
}

static int set_scopes(struct call *c, struct store_row *row,
                      const struct store_row *attrs, struct err *err)
{
    const char *mine = c->who.scopes;
    const char *wanted = store_has(attrs, T_scopes)
                             ? store_str(attrs, T_scopes)
                             : mine;

    if (check_scopes(wanted, err) < 0)
        return -1;
    if (strcmp(mine, "[\"all\"]") != 0 && strcmp(mine, wanted) != 0)
        return err_set(err, ERR_AUTH,
                       "a token with limited scopes makes none with others");
    store_set_str(row, T_scopes, wanted);
    return 0;
}

static enum store_next insert_token(struct call *c, struct store_tx *tx,
                                    const struct store_row *attrs)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    char secret[IDENT_SECRET], hash[2 * CRYPT_SHA256_LEN + 1];
    struct err err = {0};
    struct change ch;

    call_change(c, tx, &ch);
    ident_secret(secret);
    crypt_sha256_hex(secret, strlen(secret), hash);
    store_set_str(&row, T_secret_hash, hash);
    if (store_has(attrs, T_expires_at))
        store_set_i64(&row, T_expires_at, store_i64(attrs, T_expires_at));
    if (set_owner(c, &row, attrs, &err) < 0 ||
        set_scopes(c, &row, attrs, &err) < 0 ||
        change_insert(&ch, STORE_TOKENS, "gj3su", &row, &err) < 0 ||
        store_get(tx, STORE_TOKENS, store_str(&row, T_uuid), STORE_ALL, &row,
                  &err) < 0)
        return call_fail_err(c, &err);
    return reply_token(c, &row, secret);
}

enum store_next tokens_create(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row attrs = {0};
    const struct jsn *j;
    struct err err = {0};

    if (params_attrs(&c->params, "api_client_authorization", &j, &err) < 0 ||
        (j && resource_read(resource_of(STORE_TOKENS), j, 0, &attrs,
                            &err) < 0))
        return call_fail_err(c, &err);
    return insert_token(c, tx, &attrs);
}

/* An administrator's token of the system user, as Arvados has it. */
enum store_next tokens_create_system(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row attrs = {0};
    CLEANUP(buf_fini) struct buf text;
    const struct jsn *scopes = NULL;
    struct err err = {0};

    buf_init(&text, 64 * 1024);
    if (params_json(&c->params, "scopes", &scopes, &err) < 0)
        return call_fail_err(c, &err);
    if (scopes) {
        jsn_print(scopes, true, &text);
        store_set_str(&attrs, T_scopes, text.data);
    }
    return insert_token(c, tx, &attrs);
}

/* ------------------------------------------------- the token in use, end -- */

enum store_next tokens_current(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err err = {0};

    if (store_get(tx, STORE_TOKENS, c->who.token_uuid, STORE_ALL, &row,
                  &err) < 0) {
        if (err.class != ERR_NOT_FOUND)
            return call_fail_err(c, &err);
        /* SystemRootToken and a container's own have no row. */
        store_set_str(&row, T_uuid, c->who.token_uuid);
        store_set_str(&row, T_owner_uuid, c->who.user_uuid);
        store_set_str(&row, T_user_name, c->who.user_name);
        store_set_i64(&row, T_is_admin, c->who.kind == WHO_ADMIN);
        store_set_null(&row, T_expires_at);
        store_set_i64(&row, T_created_at, c->now);
        store_set_i64(&row, T_modified_at, c->now);
        store_set_str(&row, T_scopes, c->who.scopes);
    }
    return reply_token(c, &row, NULL);
}

enum store_next tokens_delete(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err err = {0};

    if (call_find(c, tx, STORE_TOKENS, c->id, STORE_ALL, &row, &err) < 0)
        return call_fail_err(c, &err);
    if (store_has(&row, T_container_uuid))
        return call_fail(c, 422, "an attempt is revoked at its container");
    if (store_delete(tx, STORE_TOKENS, c->id, &err) < 0)
        return call_fail_err(c, &err);
    return reply_token(c, &row, NULL);
}

/* --------------------------------------------------------------- users -- */

static enum store_next reply_user(struct call *c, const char *uuid,
                                  const char *name, bool admin)
{
    struct jsn_w w;

    call_json(c, &w);
    jsn_w_str(&w, "kind", "arvados#user");
    jsn_w_str(&w, "etag", "");
    jsn_w_str(&w, "uuid", uuid);
    jsn_w_str(&w, "owner_uuid", uuid);
    jsn_w_str(&w, "username", name);
    jsn_w_str(&w, "full_name", name);
    jsn_w_bool(&w, "is_admin", admin);
    jsn_w_bool(&w, "is_active", true);
    jsn_w_end_obj(&w);
    return STORE_DONE;
}

enum store_next users_current(struct call *c, struct store_tx *tx)
{
    (void) tx;
    return reply_user(c, c->who.user_uuid, c->who.user_name,
                      c->who.kind == WHO_ADMIN);
}

enum store_next users_get(struct call *c, struct store_tx *tx)
{
    CLEANUP(change_rows_fini) struct change_rows rows = {0};
    struct err err = {0};
    struct change ch;

    if (strcmp(c->id, c->who.user_uuid) == 0)
        return users_current(c, tx);
    if (c->who.kind != WHO_ADMIN)
        return call_fail(c, 404, "Path not found");
    call_change(c, tx, &ch);
    if (change_find(&ch, STORE_TOKENS, T_owner_uuid, c->id, NULL, &rows,
                    &err) < 0)
        return call_fail_err(c, &err);
    for (size_t i = 0; i < rows.rows.n; i++)
        if (*store_str(&rows.rows.v[i], T_user_name))
            return reply_user(c, c->id,
                              store_str(&rows.rows.v[i], T_user_name),
                              store_i64(&rows.rows.v[i], T_is_admin));
    return call_fail(c, 404, "Path not found");
}
