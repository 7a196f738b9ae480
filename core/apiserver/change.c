/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared pieces of the changes to containers and requests.
 *
 * Each record that is written gets modified_at and modified_by_user_uuid here
 * and nowhere else. Times of one transaction are equal: it happens at once.
 *
 * WRITE lane.
 */
#include "core/apiserver/change.h"

#include <assert.h>
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/ident.h"
#include "core/base/err.h"
#include "core/model/ctr.h"

enum { ROWS_MAX = 100000 };

void change_rows_fini(struct change_rows *r)
{
    for (size_t i = 0; i < r->rows.n; i++)
        store_row_fini(&r->rows.v[i]);
    VEC_FINI(&r->rows);
}

static bool copy_row(void *arg, const struct store_row *row)
{
    struct change_rows *r = arg;
    struct store_row copy = {0};

    store_row_merge(&copy, row);
    VEC_PUSH(&r->rows, copy);
    return true;
}

int change_find(struct change *ch, enum store_table t, unsigned col,
                const char *text, const char *state, struct change_rows *ret,
                struct err *err)
{
    struct store_value v[2] = {
        {.kind = STORE_TEXT, .s = text, .n = strlen(text)},
        {.kind = STORE_TEXT, .s = state, .n = state ? strlen(state) : 0}};
    struct store_cond c[2] = {
        {.table = t, .col = col, .op = STORE_OP_EQ, .other = -1, .v = &v[0],
         .n = 1},
        {.table = t, .op = STORE_OP_EQ, .other = -1, .v = &v[1], .n = 1}};
    struct store_query q = {.table = t, .cols = STORE_ALL, .conds = c,
                            .n_conds = state ? 2 : 1, .limit = ROWS_MAX};

    if (state)
        c[1].col = (unsigned) store_col_of(t, "state");
    return store_find(ch->tx, &q, copy_row, ret, err);
}

static unsigned col_of(enum store_table t, const char *name)
{
    int col = store_col_of(t, name);

    assert(col >= 0);
    return (unsigned) col;
}

int change_update(struct change *ch, enum store_table t,
                  struct store_row *row, struct store_row *changes,
                  struct err *err)
{
    store_set_i64(changes, col_of(t, "modified_at"), ch->now);
    store_set_str(changes, col_of(t, "modified_by_user_uuid"),
                  ch->user_uuid);
    if (store_update(ch->tx, t, store_str(row, 0), changes, err) < 0)
        return -1;
    store_row_merge(row, changes);
    return 0;
}

int change_insert(struct change *ch, enum store_table t, const char *infix,
                  struct store_row *row, struct err *err)
{
    char uuid[IDENT_UUID], system[IDENT_UUID];

    if (!store_has(row, 0)) {
        ident_uuid(ch->cfg->cluster_id, infix, uuid);
        store_set_str(row, 0, uuid);
    }
    if (!store_has(row, col_of(t, "owner_uuid"))) {
        ident_system(ch->cfg->cluster_id, "tpzed", system);
        store_set_str(row, col_of(t, "owner_uuid"), system);
    }
    store_set_i64(row, col_of(t, "created_at"), ch->now);
    store_set_i64(row, col_of(t, "modified_at"), ch->now);
    store_set_str(row, col_of(t, "modified_by_user_uuid"), ch->user_uuid);
    return store_insert(ch->tx, t, row, err);
}

enum ctr_state change_state(const struct store_row *ctr)
{
    enum ctr_state state = CTR_QUEUED;

    ctr_state_of(store_str(ctr, C_state), &state);
    return state;
}

void change_set_state(struct store_row *changes, enum ctr_state state)
{
    store_set_str(changes, C_state, ctr_state_name(state));
}
