/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_LIMIT_H
#define CORE_APISERVER_LIMIT_H

/*
 * Rates: so many requests a second for each token, and so many failed logins
 * for each address. Loop thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct app;
struct limit;

/* rate: requests per second and token, 0 = no limit. */
struct limit *limit_create(int64_t rate);
void limit_destroy(struct limit *l); /* NULL is fine */

/* May a request with that token (NULL = none) pass? false: 429. */
bool limit_pass(struct limit *l, const char *token, const char *peer,
                int64_t now_us);

/* How it ended: a 401 counts against its address, an administrator's token is
 * limited no more. */
void limit_note(struct app *app, const char *token, const char *peer,
                int status, bool admin);
void limit_note_at(struct limit *l, const char *token,
                   const char *peer, int status, bool admin, int64_t now_us);

#endif
