/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_JANITOR_H
#define CORE_APISERVER_JANITOR_H

/*
 * Removes what has expired: tokens, idempotency keys. Now and then, a bounded
 * number at a time. Loop thread.
 */

#include <stdbool.h>

struct app;
struct janitor;

struct janitor *janitor_create(struct app *app);
/* Start no more; is one under way? */
bool janitor_stop(struct janitor *j);
/* Only when none is under way. NULL is fine. */
void janitor_destroy(struct janitor *j);

#endif
