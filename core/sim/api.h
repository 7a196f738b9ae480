/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_API_H
#define CORE_SIM_API_H

/*
 * The API server of the world, and the api port on it: containers with the
 * state machine of core/model/ctr_states.h, locks, attempts, retry of
 * cancelled containers, a change feed.
 *
 * Commits are in the order in which requests arrive; a stalled server
 * (SIM_FAULT_API_SLOW) delays all later commits too, so that a definite answer
 * to a later request settles every earlier one. The truth about each
 * container (was its payload started, where could a start command still
 * linger) is kept beside the record, for the checkers.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/model/ctr.h"
#include "core/port/api.h"
#include "core/sim/world.h"

struct map;
struct sim_machine;

/* What a container asks for, and what its payload does. */
struct sim_job {
    int64_t vcpus, ram, scratch; /* 0 = 1 VCPU, 1 GiB, none */
    int64_t priority;            /* 0 = 500 */
    int64_t run_us;
    int32_t exit_code;
    int64_t ignore_term_us; /* lives on so long after TERM (at most 10 s) */
    bool preemptible;
    const char *invalid; /* the record cannot be decoded: why; static */
};

/* A start command that reached the world: "may a payload still come of it?" */
enum sim_start_state {
    SIM_START_SENT, /* on its way, or accepted and not executed yet */
    SIM_START_RUNS, /* a process of it exists (runner or payload) */
    SIM_START_OVER  /* never executed and never will, or ended */
};

struct sim_start {
    struct sim_machine *machine;
    int64_t attempt;
    enum sim_start_state state;
};

struct sim_ctr {
    struct ctr rec;
    struct sim_job job;
    int tries; /* containers of its request so far, this included */
    int64_t submitted_us;
    int64_t final_us; /* 0 = not final */
    bool no_retry;
    char error[256];       /* runtime_status.error */
    struct sim_ctr *retry; /* the container that replaced it, or NULL */

    char token[64];        /* of attempt rec.attempt; "" before the first */
    bool revoked;          /* that token */
    char runner_token[64]; /* of the attempt that moved it to Running */
    bool locked_started;   /* a start command was sent since the last lock */
    int64_t zero_us;       /* last moment at which its priority was 0, by
                            * sim_heard_us; or -1 */
    bool user_gone;        /* its user cancelled it */
    bool operator_kill;    /* an operator asked for its end */

    VEC(struct sim_start) starts;
    uint64_t told_gen; /* incarnation that was told of its process */
    unsigned payload_starts;
    unsigned live; /* payload trees alive right now */
    bool exited;   /* its payload ended by itself */
    int32_t exit_code;

    uint64_t shown_gen; /* incarnation that was told of it, and since when */
    int64_t shown_us;
    int64_t hold_until_us; /* user hold ends then; 0 = none */
};

struct sim_feed_op;

struct sim_api {
    struct api_port port;
    struct sim *w;
    struct sim_rng rng;
    const char *token_uuid; /* of the dispatcher */
    uint32_t features;
    int max_dispatch_attempts; /* 10 */
    int max_tries;             /* container_count_max: 3 */
    int64_t latency_lo_us, latency_hi_us;

    VEC(struct sim_ctr *) ctrs; /* in order of creation */
    struct map *by_uuid;
    struct map *by_token;      /* attempt token -> struct sim_ctr */
    size_t open;               /* not final */
    size_t wanted;             /* not final, priority > 0 */
    int64_t unwanted_since_us; /* since when `wanted` is 0 (sim_heard_us) */
    int64_t down_until_us;
    int64_t stalled_until_us;
    unsigned next_token;

    int64_t epoch, cursor; /* cursor = number of changes so far */
    VEC(struct sim_ctr *) changes;
    VEC(struct sim_feed_op *) waiting;
    unsigned locks, unlocks, cancels;
};

struct sim_api *sim_api_create(struct sim *w);
void sim_api_destroy(struct sim_api *a);

/* --- users ----------------------------------------------------------- */

struct sim_ctr *sim_api_submit(struct sim_api *a, const struct sim_job *job);
/* Priority 0 for good. The user's cancel route: a Queued one becomes
 * Cancelled at once. */
void sim_api_user_cancel(struct sim_api *a, struct sim_ctr *c);
/* Priority 0 now, as before again after for_us. */
void sim_api_user_hold(struct sim_api *a, struct sim_ctr *c, int64_t for_us);
struct sim_ctr *sim_api_find(const struct sim_api *a, const char *uuid);
/* The last container of the request that c belongs to. */
struct sim_ctr *sim_api_last(struct sim_ctr *c);
void sim_api_down(struct sim_api *a, int64_t for_us);

/* --- runners (called by vm.c at the moment of the commit) ------------ */

enum sim_verdict {
    SIM_ACCEPTED,
    SIM_REFUSED,    /* for good: the token or the state is past */
    SIM_UNREACHABLE /* try again */
};

/* Whose token is it; NULL when nobody's. */
struct sim_ctr *sim_api_token(const struct sim_api *a, const char *token,
                              int64_t *ret_attempt);
enum sim_verdict sim_api_running(struct sim_api *a, const char *token);
/* Any write that changes no state: is the token still good? */
enum sim_verdict sim_api_beat(struct sim_api *a, const char *token);
enum sim_verdict sim_api_final(struct sim_api *a, const char *token,
                               enum ctr_state state, int32_t exit_code);

#endif
