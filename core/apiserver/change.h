/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_CHANGE_H
#define CORE_APISERVER_CHANGE_H

/*
 * What happens to containers and requests inside the writer's transaction.
 * Nothing here knows HTTP; the handlers in containers.c and requests.c do.
 *
 *   change.c   shared pieces
 *   life.c     states of a container: lock, unlock, run, end
 *   finish.c   what the end of a container means for its requests
 *   assign.c   from a request to a container, new or equal
 *   prio.c     priorities follow requests and parents
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/apiserver/ident.h"
#include "core/base/vec.h"
#include "core/model/ctr_states.h"
#include "core/store/store.h"

struct app_cfg;
struct err;
struct publish;

struct change {
    const struct app_cfg *cfg;
    struct store_tx *tx;
    int64_t now;             /* microseconds */
    const char *user_uuid;   /* who does it */
    const char *token_uuid;
    const struct publish *pub; /* files of the attempt that ends, or NULL */
};

/* Rows that a query found, copied: they may be changed while one walks. */
struct change_rows {
    VEC(struct store_row) rows;
};
void change_rows_fini(struct change_rows *r);

/* Rows of t whose column has that text, and, if state is not NULL, that
 * state. */
int change_find(struct change *ch, enum store_table t, unsigned col,
                const char *text, const char *state, struct change_rows *ret,
                struct err *err);

/* Write changes to a record: modified_at and modified_by_user_uuid with
 * them; `row` (the whole record) follows. */
int change_update(struct change *ch, enum store_table t,
                  struct store_row *row, struct store_row *changes,
                  struct err *err);
/* A new record: uuid, times and owner are set here if they are not. */
int change_insert(struct change *ch, enum store_table t, const char *infix,
                  struct store_row *row, struct err *err);

enum ctr_state change_state(const struct store_row *ctr);
void change_set_state(struct store_row *changes, enum ctr_state state);

/* --- life.c: ctr is the whole record, and follows --------------------------*/

/* 1: the end of an attempt whose files must be hashed first: see pub. */
enum { LIFE_NEEDS_FILES = 1 };

int life_lock(struct change *ch, struct store_row *ctr, struct err *err);
/* 0, -1 or LIFE_NEEDS_FILES (the unlock would end it). */
int life_unlock(struct change *ch, struct store_row *ctr, struct err *err);
/* To Running, or staying where it is, with these changes. */
int life_update(struct change *ch, struct store_row *ctr,
                struct store_row *changes, enum ctr_state to,
                struct err *err);
/* To Complete or Cancelled. 0, -1 or LIFE_NEEDS_FILES. */
int life_end(struct change *ch, struct store_row *ctr,
             struct store_row *changes, enum ctr_state to, struct err *err);
/* A new attempt of a Locked container; token: "v2/..." for the runner. */
int life_attempt(struct change *ch, struct store_row *ctr,
                 char token[IDENT_TOKEN], struct err *err);
int life_revoke(struct change *ch, struct store_row *ctr, struct err *err);

/* --- finish.c --------------------------------------------------------------*/

/* ctr has just become final. */
int finish_requests(struct change *ch, const struct store_row *ctr,
                    struct err *err);
/* Make one request Final; ctr: its container, or NULL (no results). */
int finish_request(struct change *ch, struct store_row *req,
                   const struct store_row *ctr, struct err *err);
/* Does nobody want this container any more, all having cancelled? */
int finish_all_cancelled(struct change *ch, const char *ctr_uuid, bool *ret,
                         struct err *err);

/* --- assign.c --------------------------------------------------------------*/

/* A request that has just been committed (stored already) gets a container. */
int assign_container(struct change *ch, struct store_row *req,
                     struct err *err);

/* --- prio.c ----------------------------------------------------------------*/

/* Recompute the priority of a container, and of what hangs on it. */
int prio_update(struct change *ch, const char *ctr_uuid, struct err *err);

#endif
