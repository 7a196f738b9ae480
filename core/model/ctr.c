/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names and rules of container and container request states.
 *
 * Everything here is read off the tables of ctr_states.h, so that a state or
 * a legal move is written down once. Source: Arvados API, "containers" and
 * "container_requests" resources.
 *
 * Called by the wire parsers of both sides (API client and API server), by
 * the server's rules, and by core/dispatch. Pure; any thread.
 */

#include "core/model/ctr.h"

#include <stddef.h>
#include <string.h>

static const char *const ctr_names[] = {
#define X(name, wire, final) wire,
    CTR_STATES(X)
#undef X
};

static const bool ctr_final[] = {
#define X(name, wire, final) final,
    CTR_STATES(X)
#undef X
};

static const char *const cr_names[] = {
#define X(name, wire) wire,
    CR_STATES(X)
#undef X
};

static const bool ctr_moves[CTR_STATE_COUNT][CTR_STATE_COUNT] = {
#define X(from, to) [CTR_##from][CTR_##to] = true,
    CTR_MOVES(X)
#undef X
};

static int index_of(const char *const *names, int n, const char *wire)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], wire) == 0)
            return i;
    return -1;
}

const char *ctr_state_name(enum ctr_state state)
{
    return (unsigned) state < CTR_STATE_COUNT ? ctr_names[state] : "?";
}

int ctr_state_of(const char *wire, enum ctr_state *ret)
{
    int i = index_of(ctr_names, CTR_STATE_COUNT, wire);

    if (i < 0)
        return -1;
    *ret = (enum ctr_state) i;
    return 0;
}

bool ctr_state_final(enum ctr_state state)
{
    return (unsigned) state < CTR_STATE_COUNT && ctr_final[state];
}

bool ctr_move_allowed(enum ctr_state from, enum ctr_state to)
{
    return (unsigned) from < CTR_STATE_COUNT &&
           (unsigned) to < CTR_STATE_COUNT && ctr_moves[from][to];
}

const char *cr_state_name(enum cr_state state)
{
    return (unsigned) state < CR_STATE_COUNT ? cr_names[state] : "?";
}

int cr_state_of(const char *wire, enum cr_state *ret)
{
    int i = index_of(cr_names, CR_STATE_COUNT, wire);

    if (i < 0)
        return -1;
    *ret = (enum cr_state) i;
    return 0;
}
