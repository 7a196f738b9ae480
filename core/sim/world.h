/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_WORLD_H
#define CORE_SIM_WORLD_H

/*
 * The simulated world: a virtual clock, a heap of events ordered by (time,
 * sequence), fault switches, a trace with its hash, and the parts (api.h,
 * cloud.h, vm.h, journal.h) that implement the six ports on top of it.
 *
 * One dispatcher at a time lives in the world. The owner of the world starts
 * it, steps the world, and kills it with sim_crash(). Everything is on one
 * thread; the same seed and the same calls give the same trace hash.
 *
 * A completion is always an event of its own: it never falls into the turn
 * that asked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/vec.h"
#include "core/port/clock.h"
#include "core/port/entropy.h"
#include "core/sim/faults.h"
#include "core/sim/rng.h"

struct op;
struct sim_api;
struct sim_cloud;
struct sim_event;
struct sim_journal;
struct sim_net;

enum {
    SIM_MS = 1000,
    SIM_S = 1000000,
    SIM_RING = 40, /* trace lines kept for a failure report */
    SIM_LINE = 256,
    SIM_CLOUDS = 4,
    SIM_CROWD = 10000, /* turns in the same microsecond: a busy loop */
};

typedef void sim_fn(void *arg);

struct sim_fault_state {
    int64_t rate;    /* chance per opportunity, in 1/10000 */
    unsigned forced; /* the next so many opportunities fire */
    unsigned skip;   /* ... after letting so many pass */
    unsigned count;  /* how often it fired */
};

struct sim {
    uint64_t seed;
    int64_t now_us;       /* virtual time since the start of the world */
    int64_t wall_base_us; /* wall clock = base + now */
    uint64_t next_seq;
    uint64_t turns; /* events executed */
    unsigned crowd; /* ... in this microsecond */
    VEC(struct sim_event *) heap;

    /* The dispatcher's incarnation. Callbacks to an earlier one are dropped.
     * While `crashing`, calls to ports have no effect. */
    uint64_t gen;
    int64_t frozen_from_us;  /* the dispatcher is stopped (SIGSTOP) ... */
    int64_t frozen_until_us; /* ... until then */
    int64_t frozen_us;       /* how long it was, in all */
    int64_t core_heard_us;   /* sim_heard_us when it was started */
    bool crashing;
    bool crash_wanted; /* an armed point was passed: crash after this turn */
    int64_t core_since_us;
    int64_t silence_us; /* TimeoutProbe, less some tolerance: how long a busy
                         * instance must be silent before it may be given up */
    unsigned point_armed[SIM_POINT_COUNT]; /* countdown, 0 = off */
    unsigned point_count[SIM_POINT_COUNT];

    struct sim_fault_state faults[SIM_FAULT_COUNT];
    struct sim_rng fault_rng;
    struct sim_rng crash_rng;

    uint64_t hash;
    char ring[SIM_RING][SIM_LINE];
    unsigned ring_next;
    void (*trace)(void *arg, int64_t us, const char *line);
    void *trace_arg;

    char *failure;   /* first violated invariant, with its context; or NULL */
    bool fail_quiet; /* do not print it */

    struct op *ops; /* all operations that are not freed yet */
    struct clock_timer *timers;
    struct clock_port clock;
    struct entropy_port entropy;
    struct sim_rng entropy_rng;
    struct sim_journal *journal;
    struct sim_api *api;
    struct sim_net *net;
    struct sim_cloud *clouds[SIM_CLOUDS];
    unsigned n_clouds;
};

/* A world with a journal, an API server and a network, without clouds
 * (sim_cloud_create). */
struct sim *sim_create(uint64_t seed);
void sim_destroy(struct sim *w); /* NULL is fine */

/* --- events ---------------------------------------------------------- */

/* Run fn(arg) delay_us (>= 0) from now, in a turn of its own. The event is
 * gone when fn begins. */
struct sim_event *sim_at(struct sim *w, int64_t delay_us, sim_fn *fn,
                         void *arg);
/* The same with an arg from the heap, which fn frees; the world frees it when
 * it goes away first. */
struct sim_event *sim_at_owned(struct sim *w, int64_t delay_us, sim_fn *fn,
                               void *arg);
void sim_cancel(struct sim *w, struct sim_event *e);
/* Execute the next event; false when there is none. */
bool sim_step(struct sim *w);
/* Time of the next event, or INT64_MAX. */
int64_t sim_next_us(const struct sim *w);

/* --- what happened --------------------------------------------------- */

/* One line of trace: goes into the hash, the ring, and `trace`. */
void sim_trace(struct sim *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* An invariant is violated. The first call keeps (and prints) time, seed,
 * text and the last trace lines; later ones do nothing. */
void sim_fail(struct sim *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* --- faults ---------------------------------------------------------- */

/* Does this fault strike at this opportunity? Counts when it does. */
bool sim_fault(struct sim *w, enum sim_fault f);
/* Count a fault that was brought about from outside. */
void sim_fault_note(struct sim *w, enum sim_fault f);
/* The next n opportunities strike, after `skip` that do not. */
void sim_fault_force(struct sim *w, enum sim_fault f, unsigned n,
                     unsigned skip);
/* No faults by chance from now on. */
void sim_calm(struct sim *w);

/* --- life and death of the dispatcher -------------------------------- */

/* Pass a point; when it is armed for this passage, crash_wanted is set. */
void sim_point(struct sim *w, enum sim_point p);
/* Kill the dispatcher at its nth (>= 1) passage through p from now on. */
void sim_point_arm(struct sim *w, enum sim_point p, unsigned nth);

/* The dispatcher is stopped for so long, like by SIGSTOP: nothing reaches it.
 * When it goes on, its overdue timers fire first, as in an event loop, and
 * then it hears what arrived meanwhile. */
void sim_freeze(struct sim *w, int64_t for_us);
/* Not frozen, or: when to try again. */
bool sim_awake(const struct sim *w);
int64_t sim_wake_in(const struct sim *w);
/* Virtual time without the time in which the dispatcher stood still: silence
 * is measured by it. */
int64_t sim_heard_us(const struct sim *w);
/* A new dispatcher is here. */
void sim_born(struct sim *w);

/* The dispatcher dies: its callbacks never fire, what its journal had not
 * acknowledged is lost (or a prefix of it kept), its sessions break, requests
 * on their way arrive or do not. Call sim_crash_begin, then destroy the
 * object (whatever it asks of its ports has no effect), then sim_crash_end. */
void sim_crash_begin(struct sim *w);
void sim_crash_end(struct sim *w);

#endif
