/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a container: what each change of state brings with it. Who may
 * ask for one is decided before, in rules.c.
 *
 *   lock      Queued -> Locked: the token that locked it, a count, an identity
 *             for the payload
 *   unlock    Locked -> Queued, or Cancelled when it was locked too often or
 *             when everybody who wanted it has cancelled; the attempt ends
 *   update    -> Running, and changes without a change of state
 *   end       -> Complete, Cancelled: lock and identity are gone, secrets are
 *             wiped, the files of the last attempt become its log and output,
 *             its requests are retried or finished
 *
 * Files are hashed outside the transaction. An end whose files are not at hand
 * (ch->pub of that very attempt) changes nothing and says LIFE_NEEDS_FILES;
 * the caller has them hashed and comes again.
 *
 * WRITE lane.
 */
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/change.h"
#include "core/apiserver/ident.h"
#include "core/apiserver/publish.h"
#include "core/apiserver/rules.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/io/crypt.h"

static const int64_t token_rest_us = 86400 * INT64_C(1000000);

int life_lock(struct change *ch, struct store_row *ctr, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row ch_row = {0};
    char uuid[IDENT_UUID];

    if (rules_lock(change_state(ctr), store_i64(ctr, C_priority), err) < 0)
        return -1;
    change_set_state(&ch_row, CTR_LOCKED);
    store_set_i64(&ch_row, C_lock_count, store_i64(ctr, C_lock_count) + 1);
    store_set_str(&ch_row, C_locked_by_uuid, ch->token_uuid);
    if (!store_has(ctr, C_runtime_token)) {
        ident_uuid(ch->cfg->cluster_id, "gj3su", uuid);
        store_set_str(&ch_row, C_auth_uuid, uuid);
    }
    return change_update(ch, STORE_CONTAINERS, ctr, &ch_row, err);
}

/* Leaving Locked or Running. */
static void drop_lock(struct store_row *changes)
{
    store_set_null(changes, C_locked_by_uuid);
    store_set_null(changes, C_auth_uuid);
}

static int forget_token(struct change *ch, const struct store_row *ctr,
                        struct err *err)
{
    struct err e = {0};

    if (!store_has(ctr, C_attempt_uuid) ||
        store_delete(ch->tx, STORE_TOKENS, store_str(ctr, C_attempt_uuid),
                     &e) == 0 ||
        e.class == ERR_NOT_FOUND)
        return 0;
    *err = e;
    return -1;
}

int life_unlock(struct change *ch, struct store_row *ctr, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row changes = {0};
    int64_t max = ch->cfg->max_dispatch_attempts;
    bool given_up = false;

    if (rules_unlocked(store_i64(ctr, C_lock_count), max) == CTR_CANCELLED) {
        store_set_str(&changes, C_runtime_status,
                      "{\"error\":\"Failed to start: the limit of dispatch "
                      "attempts (MaxDispatchAttempts) was exceeded\"}");
        return life_end(ch, ctr, &changes, CTR_CANCELLED, err);
    }
    if (store_i64(ctr, C_priority) <= 0 &&
        finish_all_cancelled(ch, store_str(ctr, C_uuid), &given_up, err) < 0)
        return -1;
    if (given_up)
        return life_end(ch, ctr, &changes, CTR_CANCELLED, err);
    if (forget_token(ch, ctr, err) < 0)
        return -1;
    change_set_state(&changes, CTR_QUEUED);
    drop_lock(&changes);
    store_set_null(&changes, C_attempt_uuid);
    store_set_str(&changes, C_runtime_status, "{}");
    return change_update(ch, STORE_CONTAINERS, ctr, &changes, err);
}

int life_update(struct change *ch, struct store_row *ctr,
                struct store_row *changes, enum ctr_state to,
                struct err *err)
{
    if (to == CTR_RUNNING && change_state(ctr) != to) {
        change_set_state(changes, to);
        if (!store_has(changes, C_started_at))
            store_set_i64(changes, C_started_at, ch->now);
    }
    return change_update(ch, STORE_CONTAINERS, ctr, changes, err);
}

/* --------------------------------------------------------------- files -- */

static bool has_files(const struct change *ch, const struct store_row *ctr)
{
    return ch->pub &&
           publish_is_of(ch->pub, store_str(ctr, C_uuid),
                         store_i64(ctr, C_attempt));
}

static int insert_collection(struct change *ch, const struct store_row *ctr,
                             const char *content, const struct manifest *m,
                             struct err *err)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    CLEANUP(mem_free) char *name =
        mem_printf("%s of container %s", content, store_str(ctr, C_uuid));

    store_set_str(&row, L_portable_data_hash, m->pdh);
    store_set_str(&row, L_manifest_text, m->text.data);
    store_set_i64(&row, L_file_count, m->files);
    store_set_i64(&row, L_file_size_total, m->bytes);
    store_set_str(&row, L_name, name);
    store_set_str(&row, L_container_uuid, store_str(ctr, C_uuid));
    store_set_i64(&row, L_attempt, store_i64(ctr, C_attempt));
    store_set_str(&row, L_content, content);
    store_set_str(&row, L_properties,
                  strcmp(content, "output") == 0
                      ? store_str(ctr, C_output_properties)
                      : "{}");
    return change_insert(ch, STORE_COLLECTIONS, "4zz18", &row, err);
}

static int publish_files(struct change *ch, const struct store_row *ctr,
                         struct store_row *changes, enum ctr_state to,
                         struct err *err)
{
    const struct manifest *log = publish_log(ch->pub);
    const struct manifest *output = publish_output(ch->pub);

    if (insert_collection(ch, ctr, "log", log, err) < 0)
        return -1;
    store_set_str(changes, C_log, log->pdh);
    if (to != CTR_COMPLETE)
        return 0;
    if (insert_collection(ch, ctr, "output", output, err) < 0)
        return -1;
    store_set_str(changes, C_output, output->pdh);
    return 0;
}

/* ----------------------------------------------------------------- end -- */

/* The runner may repeat its last write for a while, then its token goes. */
static int retire_token(struct change *ch, const struct store_row *ctr,
                        struct err *err)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err e = {0};

    if (!store_has(ctr, C_attempt_uuid))
        return 0;
    store_set_i64(&row, T_expires_at, ch->now + token_rest_us);
    if (store_update(ch->tx, STORE_TOKENS, store_str(ctr, C_attempt_uuid),
                     &row, &e) == 0 ||
        e.class == ERR_NOT_FOUND)
        return 0;
    *err = e;
    return -1;
}

int life_end(struct change *ch, struct store_row *ctr,
             struct store_row *changes, enum ctr_state to, struct err *err)
{
    bool ran = store_i64(ctr, C_attempt) > 0;
    bool was_final = change_state(ctr) == CTR_COMPLETE;

    if (ran && !was_final && !has_files(ch, ctr))
        return LIFE_NEEDS_FILES;
    if (ran && !was_final && publish_files(ch, ctr, changes, to, err) < 0)
        return -1;
    change_set_state(changes, to);
    drop_lock(changes);
    if (!store_has(changes, C_finished_at) && !was_final)
        store_set_i64(changes, C_finished_at, ch->now);
    if (retire_token(ch, ctr, err) < 0)
        return -1;
    if (was_final)
        return change_update(ch, STORE_CONTAINERS, ctr, changes, err);
    if (change_update(ch, STORE_CONTAINERS, ctr, changes, err) < 0 ||
        finish_requests(ch, ctr, err) < 0)
        return -1;
    CLEANUP(store_row_fini) struct store_row wiped = {0};
    store_set_str(&wiped, C_secret_mounts, "{}");
    store_set_null(&wiped, C_runtime_token);
    return change_update(ch, STORE_CONTAINERS, ctr, &wiped, err);
}

/* ------------------------------------------------------------ attempts -- */

static int insert_token(struct change *ch, const struct store_row *ctr,
                        int64_t attempt, char *uuid, char *token,
                        struct err *err)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    char secret[IDENT_SECRET], hash[2 * CRYPT_SHA256_LEN + 1];

    ident_uuid(ch->cfg->cluster_id, "gj3su", uuid);
    ident_secret(secret);
    crypt_sha256_hex(secret, strlen(secret), hash);
    ident_token(uuid, secret, token);
    store_set_str(&row, T_uuid, uuid);
    store_set_str(&row, T_user_name, "");
    store_set_i64(&row, T_is_admin, 0);
    store_set_str(&row, T_secret_hash, hash);
    store_set_str(&row, T_scopes, "[\"all\"]");
    store_set_str(&row, T_container_uuid, store_str(ctr, C_uuid));
    store_set_i64(&row, T_attempt, attempt);
    return change_insert(ch, STORE_TOKENS, "gj3su", &row, err);
}

int life_attempt(struct change *ch, struct store_row *ctr,
                 char token[IDENT_TOKEN], struct err *err)
{
    CLEANUP(store_row_fini) struct store_row changes = {0};
    int64_t attempt = store_i64(ctr, C_attempt) + 1;
    char uuid[IDENT_UUID];

    if (change_state(ctr) != CTR_LOCKED)
        return err_set(err, ERR_CONFLICT,
                       "an attempt needs a Locked container, not one in "
                       "state %s", store_str(ctr, C_state));
    if (forget_token(ch, ctr, err) < 0 ||
        insert_token(ch, ctr, attempt, uuid, token, err) < 0)
        return -1;
    store_set_i64(&changes, C_attempt, attempt);
    store_set_str(&changes, C_attempt_uuid, uuid);
    return change_update(ch, STORE_CONTAINERS, ctr, &changes, err);
}

int life_revoke(struct change *ch, struct store_row *ctr, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row changes = {0};

    if (!store_has(ctr, C_attempt_uuid))
        return 0;
    if (forget_token(ch, ctr, err) < 0)
        return -1;
    store_set_null(&changes, C_attempt_uuid);
    return change_update(ch, STORE_CONTAINERS, ctr, &changes, err);
}
