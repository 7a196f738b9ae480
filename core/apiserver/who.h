/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_WHO_H
#define CORE_APISERVER_WHO_H

/*
 * Who is asking: a token, checked.
 *
 * Secrets are at rest as SHA-256 only. A token is looked up and compared in
 * the transaction of the request itself, so that a write cannot slip in behind
 * the revocation of its token.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/apiserver/ident.h"

struct app_cfg;
struct err;
struct store_row;
struct store_tx;

enum who_kind {
    WHO_ADMIN = 1 << 0,   /* root token, dispatchers, administrators */
    WHO_USER = 1 << 1,    /* a person */
    WHO_ATTEMPT = 1 << 2, /* a runner: token of a live attempt */
    WHO_PAYLOAD = 1 << 3  /* a container's own token */
};

struct who {
    enum who_kind kind;
    char token_uuid[IDENT_UUID];
    char user_uuid[IDENT_UUID];
    char user_name[IDENT_USER_NAME];
    char container_uuid[IDENT_UUID]; /* ATTEMPT and PAYLOAD */
    int64_t attempt;                 /* ATTEMPT */
    char *scopes;                    /* JSON array as text */
};

void who_fini(struct who *w);

/*
 * Check an Authorization header (NULL = none). -1 with ERR_AUTH: no valid
 * token, 401; other classes: the database failed.
 */
int who_check(const struct app_cfg *cfg, struct store_tx *tx,
              const char *authorization, struct who *ret, struct err *err);

/* Do the scopes allow this? HEAD counts as GET. */
bool who_allows(const struct who *w, const char *method, const char *path);

/* The user whose records may be read, for store_query.reader; NULL = all. */
const char *who_reader(const struct who *w);

/* The secret of a container's own token, which has no row of its own. */
void who_payload_secret(const struct app_cfg *cfg, const char *auth_uuid,
                        char out[IDENT_SECRET]);

#endif
