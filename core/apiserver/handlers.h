/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_HANDLERS_H
#define CORE_APISERVER_HANDLERS_H

/*
 * The handlers that routes.c names: what each route does, in its lane. See
 * doc/protocol-api.md for what they promise.
 */

#include "core/apiserver/call.h"

struct change;

/* containers.c */
enum store_next containers_create(struct call *c, struct store_tx *tx);
enum store_next containers_update(struct call *c, struct store_tx *tx);
enum store_next containers_prepare(struct call *c, struct store_tx *tx);
enum store_next containers_delete(struct call *c, struct store_tx *tx);
enum store_next containers_update_priority(struct call *c,
                                           struct store_tx *tx);
enum store_next containers_current(struct call *c, struct store_tx *tx);
enum store_next containers_secret_mounts(struct call *c, struct store_tx *tx);

/* locks.c */
enum store_next locks_lock(struct call *c, struct store_tx *tx);
enum store_next locks_unlock(struct call *c, struct store_tx *tx);
enum store_next locks_auth(struct call *c, struct store_tx *tx);
enum store_next locks_attempt(struct call *c, struct store_tx *tx);
enum store_next locks_revoke(struct call *c, struct store_tx *tx);

/* requests.c */
enum store_next requests_prepare_create(struct call *c, struct store_tx *tx);
enum store_next requests_create(struct call *c, struct store_tx *tx);
enum store_next requests_prepare_update(struct call *c, struct store_tx *tx);
enum store_next requests_update(struct call *c, struct store_tx *tx);
enum store_next requests_cancel(struct call *c, struct store_tx *tx);
enum store_next requests_status(struct call *c, struct store_tx *tx);

/* tokens.c */
enum store_next tokens_create(struct call *c, struct store_tx *tx);
enum store_next tokens_create_system(struct call *c, struct store_tx *tx);
enum store_next tokens_current(struct call *c, struct store_tx *tx);
enum store_next tokens_delete(struct call *c, struct store_tx *tx);
enum store_next users_current(struct call *c, struct store_tx *tx);
enum store_next users_get(struct call *c, struct store_tx *tx);

/* content.c */
enum store_next content_put_log(struct call *c, struct store_tx *tx);
enum store_next content_put_output(struct call *c, struct store_tx *tx);
enum store_next content_get_log(struct call *c, struct store_tx *tx);
enum store_next content_list_log(struct call *c, struct store_tx *tx);
enum store_next content_get_file(struct call *c, struct store_tx *tx);
enum store_next content_list_files(struct call *c, struct store_tx *tx);
enum store_next content_collection(struct call *c, struct store_tx *tx);

/* feed.c */
enum store_next feed_run(struct call *c, struct store_tx *tx);
void feed_finish(struct call *c);

/* status.c */
void status_finish(struct call *c);

/* Shared: the change that this call makes. */
void call_change(struct call *c, struct store_tx *tx, struct change *ret);
/* The whole record of the container in the path; ERR_NOT_FOUND. */
int call_container(struct call *c, struct store_tx *tx,
                   struct store_row *ret, struct err *err);
/* End of a write that may have to wait for files: rc of life_*(). Has failed
 * or goes to SLOW: true, with *ret. */
bool call_waits(struct call *c, const struct store_row *ctr, int rc,
                const struct err *err, enum store_next *ret);

#endif
