/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_OP_H
#define CORE_SIM_OP_H

/*
 * An operation of a simulated port (core/port/op.h), as three possible
 * events: the request takes effect in the world; the reply arrives; the
 * deadline passes. The callback fires at whichever of reply, deadline and
 * cancel comes first; the effect may come after it.
 *
 * Each port embeds struct op as the first member of its own record and
 * allocates that with op_new(). The op is freed when it has ended and no event
 * refers to it any more.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/op.h"
#include "core/sim/world.h"

struct op {
    struct sim *w;
    uint64_t gen; /* the dispatcher that asked */
    struct op *prev, *next;
    unsigned events;     /* events that refer to it, and op_hold()s */
    bool ended;          /* the callback has fired or never will */
    bool effected;       /* the world has acted on it */
    bool withdrawn;      /* cancelled in time: no effect any more */
    bool writes;         /* past the deadline: unknown; else just refused */
    bool cancel_unknown; /* a cancelled one is unknown, not cancelled */
    struct sim_event *deadline;
    const char *what; /* for the trace */
    void (*effect)(struct op *op);
    void (*dropped)(struct op *op); /* there will be no effect; or NULL */
    void (*fire)(struct op *op, const struct op_result *r); /* the callback */
    void (*fini)(struct op *op); /* frees what the record points to; or NULL */
};

/* size: of the embedding record. */
void *op_new(struct sim *w, size_t size, const char *what);
/* Let effect() run delay_us from now, unless withdrawn or lost in a crash. */
void op_effect_in(struct op *op, int64_t delay_us);
/* Let the callback fire with r, delay_us from now, if it has not yet. */
void op_reply_in(struct op *op, int64_t delay_us, const struct op_result *r);
void op_done_in(struct op *op, int64_t delay_us);
void op_fail_in(struct op *op, int64_t delay_us, enum op_outcome outcome,
                enum err_class class, int64_t retry_ms, const char *text);
/* After deadline_ms (if > 0): OP_UNKNOWN/TIMEOUT, or OP_REFUSED/TIMEOUT when
 * it writes nothing. */
void op_deadline(struct op *op, int64_t deadline_ms);
/* End it now, in this turn: for streams and broken sessions. */
void op_end(struct op *op, const struct op_result *r);
/* The hint of the ports. */
void op_cancel(struct op *op);
/* May its owner still be told something? */
bool op_alive(const struct op *op);
/* Keep the record while it waits somewhere without an event. */
void op_hold(struct op *op);
void op_drop(struct op *op);

/* All ops of a world that is going away. */
void op_free_all(struct sim *w);

#endif
