/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_CLIENT_H
#define CORE_CTL_CLIENT_H

/*
 * One request, one answer, waiting in between: what a command line tool needs
 * of core/io/httpc. SIGINT ends a wait when client_interrupt() is armed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct client;
struct cred;
struct err;
struct jsn;

enum client_server { CLIENT_API, CLIENT_DISPATCH };

/* Takes what is in cred. */
struct client *client_create(struct cred *cred, struct err *err);
void client_destroy(struct client *c); /* NULL is fine */
bool client_has_dispatch(const struct client *c);

/* path begins with '/' and is encoded; json NULL = no body. On 2xx returns the
 * parsed body (NULL body -> an empty object), for the caller to free; else
 * NULL and err: ERR_NOT_FOUND 404, ERR_AUTH 401/403, ERR_INVALID 400/422,
 * TRANSIENT for no answer and other codes. */
struct jsn *client_call(struct client *c, enum client_server server,
                        const char *method, const char *path,
                        const char *json, struct err *err);
/* With one more header "Name: value". */
struct jsn *client_call_with(struct client *c, enum client_server server,
                             const char *method, const char *path,
                             const char *json, const char *header,
                             struct err *err);
/* Raw bytes from `offset` on, at most what one answer carries. An offset at
 * the end gives no bytes and 0. */
int client_fetch(struct client *c, const char *path, int64_t offset,
                 struct buf *out, struct err *err);

/* Sleep; false when SIGINT came (then and ever after). */
bool client_sleep(struct client *c, int64_t ms);
/* From now on SIGINT does not end the program but a client_sleep(). */
int client_catch_interrupt(struct client *c, struct err *err);

#endif
