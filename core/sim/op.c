/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of the simulated ports.
 *
 *     asked --> (effect) --> (reply)      at most one callback, at reply,
 *          \--> (deadline)                deadline or cancel, whichever is
 *           \-> (cancel)                  first; never in the asking turn
 *
 * A reply is a copy of its op_result in an event of its own; what the result
 * points to lies in the embedding record. After a crash no callback fires. A
 * request that was still on its way then takes effect or not, by chance: the
 * network does not care about its sender.
 */

#include "core/sim/op.h"

#include <assert.h>

struct reply {
    struct op *op;
    struct op_result r;
};

void *op_new(struct sim *w, size_t size, const char *what)
{
    struct op *op = mem_zalloc(size);

    op->w = w;
    op->gen = w->crashing ? 0 : w->gen;
    op->what = what;
    op->next = w->ops;
    if (w->ops)
        w->ops->prev = op;
    w->ops = op;
    return op;
}

static void op_free(struct op *op)
{
    if (op->prev)
        op->prev->next = op->next;
    else
        op->w->ops = op->next;
    if (op->next)
        op->next->prev = op->prev;
    if (op->fini)
        op->fini(op);
    free(op);
}

static void op_sweep(struct op *op)
{
    if (op->events == 0 && (op->ended || op->gen != op->w->gen))
        op_free(op);
}

void op_hold(struct op *op)
{
    op->events++;
}

void op_drop(struct op *op)
{
    assert(op->events > 0);
    op->events--;
    op_sweep(op);
}

bool op_alive(const struct op *op)
{
    return !op->ended && op->gen == op->w->gen && !op->w->crashing;
}

static void op_disarm(struct op *op)
{
    if (!op->deadline)
        return;
    sim_cancel(op->w, op->deadline);
    op->deadline = NULL;
    op->events--;
}

void op_end(struct op *op, const struct op_result *r)
{
    if (!op_alive(op))
        return;
    op->ended = true;
    op_disarm(op);
    op_hold(op);
    op->fire(op, r);
    op_drop(op);
}

/* A request whose sender has died: does it still arrive? */
static bool op_lost_in_crash(struct op *op)
{
    if (op->gen == op->w->gen)
        return false;
    if (op->gen == 0 || sim_rng_chance(&op->w->crash_rng, 5000))
        return true;
    if (op->writes)
        sim_fault_note(op->w, SIM_FAULT_CRASH_IN_FLIGHT);
    return false;
}

static void on_effect(void *arg)
{
    struct op *op = arg;

    if (!op->withdrawn && !op_lost_in_crash(op)) {
        op->effected = true;
        op->effect(op);
    } else if (op->dropped) {
        op->dropped(op);
    }
    op_drop(op);
}

void op_effect_in(struct op *op, int64_t delay_us)
{
    op_hold(op);
    sim_at(op->w, delay_us, on_effect, op);
}

static void on_reply(void *arg)
{
    struct reply *reply = arg;
    struct op *op = reply->op;

    if (!sim_awake(op->w)) {
        sim_at_owned(op->w, sim_wake_in(op->w) + 1, on_reply, reply);
        return;
    }

    op_end(op, &reply->r);
    op_drop(op);
    free(reply);
}

void op_reply_in(struct op *op, int64_t delay_us, const struct op_result *r)
{
    struct reply *reply;

    if (!op_alive(op))
        return;
    reply = MEM_NEW(struct reply);
    reply->op = op;
    reply->r = *r;
    op_hold(op);
    sim_at_owned(op->w, delay_us, on_reply, reply);
}

void op_done_in(struct op *op, int64_t delay_us)
{
    op_reply_in(op, delay_us, &(struct op_result){.outcome = OP_DONE});
}

void op_fail_in(struct op *op, int64_t delay_us, enum op_outcome outcome,
                enum err_class class, int64_t retry_ms, const char *text)
{
    struct op_result r = {.outcome = outcome};

    err_set(&r.err, class, "%s: %s", op->what, text);
    r.err.retry_ms = retry_ms;
    op_reply_in(op, delay_us, &r);
}

static void on_deadline(void *arg)
{
    struct op *op = arg;
    struct op_result r = {.outcome = op->writes ? OP_UNKNOWN : OP_REFUSED};

    if (!sim_awake(op->w)) {
        op->deadline = sim_at(op->w, sim_wake_in(op->w), on_deadline, op);
        return;
    }
    op->deadline = NULL;
    err_set(&r.err, ERR_TIMEOUT, "%s: no answer by the deadline", op->what);
    if (op_alive(op))
        sim_trace(op->w, "%s -> deadline", op->what);
    op_end(op, &r);
    op_drop(op);
}

void op_deadline(struct op *op, int64_t deadline_ms)
{
    if (deadline_ms <= 0)
        return;
    op_hold(op);
    op->deadline = sim_at(op->w, deadline_ms * SIM_MS, on_deadline, op);
}

static void on_cancel(void *arg)
{
    struct op *op = arg;

    if (op_alive(op) && !op->effected) {
        struct op_result r = {.outcome = OP_CANCELLED};

        if (op->cancel_unknown)
            r.outcome = OP_UNKNOWN;
        else
            op->withdrawn = true;
        err_set(&r.err, ERR_CANCELLED, "%s: cancelled", op->what);
        op_end(op, &r);
    }
    op_drop(op);
}

void op_cancel(struct op *op)
{
    if (!op_alive(op))
        return;
    op_hold(op);
    sim_at(op->w, 0, on_cancel, op);
}

void op_free_all(struct sim *w)
{
    while (w->ops)
        op_free(w->ops);
}
