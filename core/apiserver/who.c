/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens to identities.
 *
 * Four kinds of token, told apart by where they are found:
 *   - SystemRootToken, literally, from the configuration;
 *   - a row of api_client_authorizations: a person's or an administrator's;
 *   - such a row with a container: an attempt token, valid only while it is
 *     the one that the container names in attempt_uuid;
 *   - no row, but a Locked or Running container whose auth_uuid it is: the
 *     container's own. Its secret is derived, it ends with the lock, and
 *     nothing has to be written to make or to expire it.
 *
 * A token is a bare secret, or v2/uuid/secret, perhaps with /container-uuid
 * behind it, which must then match.
 */
#include "core/apiserver/who.h"

#include <stdlib.h>
#include <string.h>

#include "core/apiserver/app.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/io/crypt.h"
#include "core/io/httpd.h"
#include "core/store/store.h"

enum { SECRET_MAX = 256 };

struct token {
    char uuid[IDENT_UUID]; /* "" in the bare form */
    char secret[SECRET_MAX];
    char container[IDENT_UUID]; /* "" = not named */
};

void who_fini(struct who *w)
{
    free(w->scopes);
    w->scopes = NULL;
}

static int refuse(struct err *err)
{
    return err_set(err, ERR_AUTH, "Not logged in");
}

/* The next part up to a slash; -1 when it is longer than out. */
static int take_part(const char **p, char *out, size_t size)
{
    size_t n = strcspn(*p, "/");

    if (n >= size)
        return -1;
    memcpy(out, *p, n);
    out[n] = '\0';
    *p += n;
    if (**p == '/')
        ++*p;
    return 0;
}

static int parse_token(const char *text, struct token *t)
{
    *t = (struct token){0};
    if (strncmp(text, "v2/", 3) != 0)
        return text_copy(t->secret, text, sizeof t->secret) <
                           sizeof t->secret && *text
                   ? 0
                   : -1;
    text += 3;
    if (take_part(&text, t->uuid, sizeof t->uuid) < 0 ||
        take_part(&text, t->secret, sizeof t->secret) < 0 ||
        take_part(&text, t->container, sizeof t->container) < 0 || *text)
        return -1;
    return text_is_uuid(t->uuid, "gj3su") && *t->secret ? 0 : -1;
}

/* ------------------------------------------------------ kinds of token -- */

static void set_root(const struct app_cfg *cfg, struct who *w)
{
    w->kind = WHO_ADMIN;
    ident_system(cfg->cluster_id, "gj3su", w->token_uuid);
    ident_system(cfg->cluster_id, "tpzed", w->user_uuid);
    text_copy(w->user_name, "root", sizeof w->user_name);
    w->scopes = mem_strdup("[\"all\"]");
}

static bool take_first(void *arg, const struct store_row *row)
{
    store_row_merge(arg, row);
    return false;
}

/* The first row whose text column has that value; row stays empty if none. */
static int find_by(struct store_tx *tx, enum store_table t, unsigned col,
                   const char *text, struct store_row *row, struct err *err)
{
    struct store_value v = {.kind = STORE_TEXT, .s = text,
                            .n = strlen(text)};
    struct store_cond c = {.table = t, .col = col, .op = STORE_OP_EQ,
                           .other = -1, .v = &v, .n = 1};
    struct store_query q = {.table = t, .cols = STORE_ALL, .conds = &c,
                            .n_conds = 1, .limit = 1};

    return store_find(tx, &q, take_first, row, err);
}

static int check_attempt(struct store_tx *tx, const struct who *w,
                         struct err *err)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};

    if (store_get(tx, STORE_CONTAINERS, w->container_uuid,
                  STORE_BIT(C_attempt_uuid), &ctr, err) < 0)
        return err && err->class == ERR_NOT_FOUND ? refuse(err) : -1;
    if (strcmp(store_str(&ctr, C_attempt_uuid), w->token_uuid) != 0)
        return refuse(err);
    return 0;
}

static int set_from_row(struct store_tx *tx, const struct token *t,
                        const struct store_row *row, struct who *w,
                        struct err *err)
{
    char hash[2 * CRYPT_SHA256_LEN + 1];

    crypt_sha256_hex(t->secret, strlen(t->secret), hash);
    if (!secret_equal(hash, store_str(row, T_secret_hash)) ||
        (store_has(row, T_expires_at) &&
         store_i64(row, T_expires_at) <= clock_wall_us()))
        return refuse(err);
    text_copy(w->token_uuid, store_str(row, T_uuid), sizeof w->token_uuid);
    text_copy(w->user_uuid, store_str(row, T_owner_uuid),
              sizeof w->user_uuid);
    text_copy(w->user_name, store_str(row, T_user_name),
              sizeof w->user_name);
    w->scopes = mem_strdup(store_str(row, T_scopes));
    w->kind = store_i64(row, T_is_admin) ? WHO_ADMIN : WHO_USER;
    if (!store_has(row, T_container_uuid))
        return 0;
    w->kind = WHO_ATTEMPT;
    w->attempt = store_i64(row, T_attempt);
    text_copy(w->container_uuid, store_str(row, T_container_uuid),
              sizeof w->container_uuid);
    return check_attempt(tx, w, err);
}

void who_payload_secret(const struct app_cfg *cfg, const char *auth_uuid,
                        char out[IDENT_SECRET])
{
    ident_derive(cfg->root_token, "container token", auth_uuid, out);
}

static int set_payload(const struct app_cfg *cfg, struct store_tx *tx,
                       const struct token *t, struct who *w, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    char secret[IDENT_SECRET];

    who_payload_secret(cfg, t->uuid, secret);
    if (!secret_equal(secret, t->secret))
        return refuse(err);
    if (find_by(tx, STORE_CONTAINERS, C_auth_uuid, t->uuid, &ctr, err) < 0)
        return -1;
    if (!ctr.set)
        return refuse(err);
    w->kind = WHO_PAYLOAD;
    text_copy(w->token_uuid, t->uuid, sizeof w->token_uuid);
    text_copy(w->user_uuid, store_str(&ctr, C_runtime_user_uuid),
              sizeof w->user_uuid);
    text_copy(w->container_uuid, store_str(&ctr, C_uuid),
              sizeof w->container_uuid);
    w->scopes = mem_strdup(store_has(&ctr, C_runtime_auth_scopes)
                               ? store_str(&ctr, C_runtime_auth_scopes)
                               : "[\"all\"]");
    return 0;
}

static int check_parsed(const struct app_cfg *cfg, struct store_tx *tx,
                        const struct token *t, struct who *w,
                        struct err *err)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    char hash[2 * CRYPT_SHA256_LEN + 1];

    crypt_sha256_hex(t->secret, strlen(t->secret), hash);
    if (find_by(tx, STORE_TOKENS, *t->uuid ? T_uuid : T_secret_hash,
                *t->uuid ? t->uuid : hash, &row, err) < 0)
        return -1;
    if (row.set)
        return set_from_row(tx, t, &row, w, err);
    if (*t->uuid)
        return set_payload(cfg, tx, t, w, err);
    return refuse(err);
}

int who_check(const struct app_cfg *cfg, struct store_tx *tx,
              const char *authorization, struct who *ret, struct err *err)
{
    const char *text = httpd_token(authorization);
    struct who w = {0};
    struct token t;

    if (!text)
        return refuse(err);
    if (*cfg->root_token && secret_equal(text, cfg->root_token)) {
        set_root(cfg, &w);
    } else if (parse_token(text, &t) < 0) {
        return refuse(err);
    } else if (check_parsed(cfg, tx, &t, &w, err) < 0 ||
               (*t.container && strcmp(t.container, w.container_uuid) != 0 &&
                refuse(err) < 0)) {
        who_fini(&w);
        return -1;
    }
    *ret = w;
    return 0;
}

/* -------------------------------------------------------------- scopes -- */

static bool scope_covers(const char *scope, const char *method,
                         const char *path)
{
    size_t n = strlen(method), len;

    if (strcmp(scope, "all") == 0)
        return true;
    if (strncmp(scope, method, n) != 0 || scope[n] != ' ')
        return false;
    scope += n + 1;
    len = strlen(scope);
    if (len > 0 && scope[len - 1] == '/')
        return strncmp(path, scope, len) == 0;
    return strcmp(path, scope) == 0;
}

bool who_allows(const struct who *w, const char *method, const char *path)
{
    static const char always[] =
        "/arvados/v1/api_client_authorizations/current";
    CLEANUP(jsn_cleanup) struct jsn *j = NULL;
    const char *scope;

    if (strcmp(w->scopes, "[\"all\"]") == 0)
        return true;
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    if (strcmp(method, "GET") == 0 && strcmp(path, always) == 0)
        return true;
    j = jsn_parse(w->scopes, strlen(w->scopes), NULL);
    for (size_t i = 0; i < jsn_count(j); i++)
        if (jsn_as_str(jsn_at(j, i), &scope, NULL) == 0 &&
            scope_covers(scope, method, path))
            return true;
    return false;
}

const char *who_reader(const struct who *w)
{
    return w->kind == WHO_ADMIN ? NULL : w->user_uuid;
}
