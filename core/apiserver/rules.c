/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of containers and requests.
 *
 * Legal moves between states are core/model's table. Beside it stands one more
 * table here: for each caller and each move, the columns that may change with
 * it. Everything that is not in a table is refused; a caller with no right at
 * all is told 403, one whose wish does not fit the state 422.
 *
 * A final record is final: the only thing left is that an administrator
 * invalidates a result (Complete to Cancelled). Repeating what is already so
 * changes no column and passes, so that a client whose answer was lost may
 * simply ask again.
 *
 * Pure; any thread.
 */
#include "core/apiserver/rules.h"

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/model/ctr.h"
#include "core/store/store.h"

#define B(name) STORE_BIT(C_##name)
#define PROGRESS                                                              \
    (B(progress) | B(runtime_status) | B(subrequests_cost) | B(cost) |        \
     B(output_properties) | B(exit_code))
#define RUN (PROGRESS | B(gateway_address) | B(interactive_session_started))
#define ATTEMPT_RUN (B(progress) | B(runtime_status) | B(cost) | B(exit_code))

struct rule {
    enum rules_who who;
    enum ctr_state from;
    enum ctr_state to;
    uint64_t columns;
};

/* First row that fits wins. ADMIN rows serve OWNER too. */
static const struct rule table[] = {
    {RULES_OWNER, CTR_QUEUED, CTR_LOCKED, 0},
    {RULES_OWNER, CTR_LOCKED, CTR_LOCKED, B(priority) | B(runtime_status)},
    {RULES_OWNER, CTR_LOCKED, CTR_QUEUED, B(priority)},
    {RULES_OWNER, CTR_LOCKED, CTR_RUNNING,
     RUN | B(priority) | B(started_at) | B(published_ports)},
    {RULES_OWNER, CTR_LOCKED, CTR_CANCELLED,
     B(finished_at) | B(runtime_status) | B(cost)},
    {RULES_OWNER, CTR_RUNNING, CTR_RUNNING, RUN | B(priority)},
    {RULES_OWNER, CTR_RUNNING, CTR_COMPLETE, PROGRESS | B(finished_at)},
    {RULES_OWNER, CTR_RUNNING, CTR_CANCELLED, PROGRESS | B(finished_at)},
    {RULES_OWNER, CTR_QUEUED, CTR_CANCELLED,
     B(finished_at) | B(runtime_status) | B(cost)},

    {RULES_ADMIN, CTR_QUEUED, CTR_QUEUED, B(priority)},
    {RULES_ADMIN, CTR_LOCKED, CTR_LOCKED, B(priority)},
    {RULES_ADMIN, CTR_RUNNING, CTR_RUNNING, B(priority)},
    {RULES_ADMIN, CTR_QUEUED, CTR_CANCELLED, 0},
    {RULES_ADMIN, CTR_LOCKED, CTR_CANCELLED, 0},
    {RULES_ADMIN, CTR_RUNNING, CTR_CANCELLED, 0},
    {RULES_ADMIN, CTR_COMPLETE, CTR_CANCELLED, 0},

    {RULES_ATTEMPT, CTR_LOCKED, CTR_LOCKED, B(runtime_status)},
    {RULES_ATTEMPT, CTR_LOCKED, CTR_RUNNING, ATTEMPT_RUN},
    {RULES_ATTEMPT, CTR_LOCKED, CTR_CANCELLED, B(runtime_status) | B(cost)},
    {RULES_ATTEMPT, CTR_RUNNING, CTR_RUNNING, ATTEMPT_RUN},
    {RULES_ATTEMPT, CTR_RUNNING, CTR_COMPLETE, ATTEMPT_RUN},
    {RULES_ATTEMPT, CTR_RUNNING, CTR_CANCELLED, ATTEMPT_RUN},

    {RULES_PAYLOAD, CTR_RUNNING, CTR_RUNNING,
     PROGRESS | B(gateway_address)},
};

static const struct rule *find_rule(enum rules_who who, enum ctr_state from,
                                    enum ctr_state to)
{
    for (size_t i = 0; i < MEM_COUNT(table); i++) {
        const struct rule *r = &table[i];
        bool mine = r->who == who ||
                    (who == RULES_OWNER && r->who == RULES_ADMIN);
        if (mine && r->from == from && r->to == to)
            return r;
    }
    return NULL;
}

static int refuse_column(enum store_table t, uint64_t columns,
                         const char *state, struct err *err)
{
    unsigned col = 0;

    while (!(columns & STORE_BIT(col)))
        col++;
    return err_set(err, ERR_CONFLICT, "%s cannot be modified in state '%s'",
                   store_col(t, col)->name, state);
}

static int refuse_move(enum rules_who who, enum ctr_state from,
                       enum ctr_state to, struct err *err)
{
    if (from != to && !ctr_move_allowed(from, to))
        return err_set(err, ERR_CONFLICT,
                       "state cannot change from %s to %s",
                       ctr_state_name(from), ctr_state_name(to));
    if (from == to && ctr_state_final(from))
        return err_set(err, ERR_CONFLICT, "a container in state %s is final",
                       ctr_state_name(from));
    if (from == CTR_LOCKED && to == CTR_QUEUED && who == RULES_ADMIN)
        return err_set(err, ERR_AUTH,
                       "only the token that holds the lock may unlock");
    if (who == RULES_ADMIN)
        return err_set(err, ERR_CONFLICT,
                       "only the token that holds the lock may change state "
                       "to %s", ctr_state_name(to));
    return err_set(err, ERR_AUTH, "this token may not change a container in "
                   "state %s to %s", ctr_state_name(from),
                   ctr_state_name(to));
}

int rules_update(enum rules_who who, enum ctr_state from, enum ctr_state to,
                 uint64_t changed, struct err *err)
{
    const struct rule *r;

    if (who == RULES_USER)
        return err_set(err, ERR_AUTH, "only an administrator may change "
                       "containers");
    if (from == to && changed == 0)
        return 0;
    if (!(r = find_rule(who, from, to)))
        return refuse_move(who, from, to, err);
    if (changed & ~r->columns)
        return refuse_column(STORE_CONTAINERS, changed & ~r->columns,
                             ctr_state_name(to), err);
    return 0;
}

int rules_lock(enum ctr_state state, int64_t priority, struct err *err)
{
    if (state != CTR_QUEUED)
        return err_set(err, ERR_CONFLICT, "cannot lock when %s",
                       ctr_state_name(state));
    if (priority <= 0)
        return err_set(err, ERR_CONFLICT, "cannot lock when priority<=0");
    return 0;
}

enum ctr_state rules_unlocked(int64_t lock_count, int64_t max_attempts)
{
    return lock_count >= max_attempts ? CTR_CANCELLED : CTR_QUEUED;
}

int64_t rules_priority(int64_t requested, int64_t created_us,
                       bool has_parent, int64_t parent_priority)
{
    if (requested <= 0)
        return 0;
    if (has_parent)
        return parent_priority;
    return (requested << 50) - created_us / 1000;
}

int rules_request_state(enum cr_state from, enum cr_state to, struct err *err)
{
    if (from == to || (from == CR_UNCOMMITTED && to == CR_COMMITTED) ||
        (from == CR_COMMITTED && to == CR_FINAL))
        return 0;
    return err_set(err, ERR_CONFLICT, "state cannot change from %s to %s",
                   cr_state_name(from), cr_state_name(to));
}

int rules_request_columns(enum cr_state from, enum cr_state to,
                          uint64_t changed, struct err *err)
{
    uint64_t always = STORE_BIT(R_name) | STORE_BIT(R_description) |
                      STORE_BIT(R_properties);
    uint64_t committed = STORE_BIT(R_priority) |
                         STORE_BIT(R_container_count_max);
    uint64_t allowed = STORE_ALL;

    if (from == CR_COMMITTED)
        allowed = always | committed;
    else if (from == CR_FINAL)
        allowed = always;
    if (changed & ~allowed)
        return refuse_column(STORE_REQUESTS, changed & ~allowed,
                             cr_state_name(to), err);
    return 0;
}
