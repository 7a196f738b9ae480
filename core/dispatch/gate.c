/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Load on the API server: a window of requests in flight, and a limit on
 * processes.
 *
 * Additive increase, multiplicative decrease. The window opens by one for
 * each window's worth of good answers, up to MaxConcurrentRequests of ours; a
 * 503 or 429 halves it and opens a quiet time in which nothing is sent, as
 * long as the server asks for, at least a second. Refusals of requests that
 * were under way together count once.
 *
 * Each container that runs costs the server requests of its own (the
 * runner's), which no window of ours limits. So a refusal also freezes the
 * number of processes at one less than there are; it grows again by a tenth
 * per minute without a refusal. This limit never ends anything: the plan only
 * starts nothing new above it.
 *
 * Loop thread only.
 */

#include "core/dispatch/gate.h"

#include <stdlib.h>

#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/dispatch/core.h"
#include "core/dispatch/sched.h"
#include "core/port/op.h"

enum { QUIET_US = 1000000, GROW_US = 60000000 };

struct gate {
    struct dispatch *d;
    struct gate_item *first[GATE_RANKS], *last[GATE_RANKS];
    int64_t in_flight;
    int64_t window, max;
    int64_t good;         /* answers since the window last opened */
    int64_t quiet_us;     /* until then nothing is sent */
    struct deadline wake;
    int64_t last_503_us;  /* monotonic, 0 = never */
    int64_t last_503_wall_us;
    int64_t processes;    /* the limit; 0 = none */
    int64_t grown_us;     /* when it was last raised or set */
    int64_t now_processes;
};

struct gate *gate_create(struct dispatch *d)
{
    struct gate *g = MEM_NEW(struct gate);

    g->d = d;
    g->max = d->cfg->max_api_ops > 0 ? d->cfg->max_api_ops : 16;
    g->window = g->max;
    return g;
}

void gate_destroy(struct gate *g)
{
    if (!g)
        return;
    deadline_stop(g->d->deadlines, &g->wake);
    free(g);
}

static void unlink_item(struct gate *g, struct gate_item *it)
{
    if (it->prev)
        it->prev->next = it->next;
    else
        g->first[it->rank] = it->next;
    if (it->next)
        it->next->prev = it->prev;
    else
        g->last[it->rank] = it->prev;
    it->prev = it->next = NULL;
    it->waits = false;
}

static void pump(struct gate *g);

static void on_wake(void *arg)
{
    struct gate *g = arg;

    pump(g);
    sched_mark(g->d);
}

static struct gate_item *first_of(struct gate *g)
{
    for (int i = 0; i < GATE_RANKS; i++)
        if (g->first[i])
            return g->first[i];
    return NULL;
}

static void pump(struct gate *g)
{
    struct gate_item *it;

    while (core_acts(g->d) && g->in_flight < g->window &&
           (it = first_of(g))) {
        if (core_now(g->d) < g->quiet_us) {
            deadline_set(g->d->deadlines, &g->wake, g->quiet_us, on_wake, g);
            return;
        }
        unlink_item(g, it);
        g->in_flight++;
        it->go(it->arg);
    }
}

void gate_enter(struct gate *g, struct gate_item *it, enum gate_rank rank,
                void (*go)(void *arg), void *arg)
{
    it->go = go;
    it->arg = arg;
    it->rank = rank;
    it->waits = true;
    it->next = NULL;
    it->prev = g->last[rank];
    if (it->prev)
        it->prev->next = it;
    else
        g->first[rank] = it;
    g->last[rank] = it;
    pump(g);
}

bool gate_withdraw(struct gate *g, struct gate_item *it)
{
    if (!it->waits)
        return false;
    unlink_item(g, it);
    return true;
}

static void refused(struct gate *g, const struct err *err)
{
    int64_t now = core_now(g->d);
    int64_t quiet = err->retry_ms * 1000;

    if (quiet < QUIET_US)
        quiet = QUIET_US;
    if (now + quiet > g->quiet_us) {
        if (now >= g->quiet_us && g->window > 1)
            g->window /= 2;
        g->quiet_us = now + quiet;
        g->good = 0;
        log_event(g->d->lg, LOG_WARN, "API server is overloaded: pausing",
                  "error", err->text, NULL);
    }
    g->last_503_us = now;
    g->last_503_wall_us = core_wall(g->d);
    g->processes = g->now_processes > 1 ? g->now_processes - 1 : 1;
    g->grown_us = now;
    sched_mark(g->d);
}

/* A refusal is an answer, unless nobody was there to give it. */
static bool answered(const struct op_result *r)
{
    return r->outcome == OP_DONE ||
           (r->outcome == OP_REFUSED && r->err.class != ERR_TRANSIENT &&
            r->err.class != ERR_TIMEOUT);
}

void gate_leave(struct gate *g, const struct op_result *r)
{
    g->in_flight--;
    if (r->outcome != OP_CANCELLED)
        g->d->api_ok = answered(r);
    if (r->outcome != OP_DONE && r->err.class == ERR_RATE_LIMITED) {
        refused(g, &r->err);
    } else if (r->outcome == OP_DONE && ++g->good >= g->window) {
        g->good = 0;
        if (g->window < g->max)
            g->window++;
    }
    pump(g);
}

int64_t gate_room(const struct gate *g)
{
    int64_t room = g->window - g->in_flight;

    if (core_now(g->d) < g->quiet_us || room < 0 || g->first[GATE_LOCK])
        return 0;
    return room;
}

int64_t gate_processes(struct gate *g, int64_t processes)
{
    int64_t now = core_now(g->d);

    g->now_processes = processes;
    while (g->processes > 0 && now - g->grown_us >= GROW_US) {
        int64_t more = processes * 11 / 10 + 1;

        g->grown_us += GROW_US;
        if (more > g->processes)
            g->processes = more;
        if (now - g->last_503_us > 30 * (int64_t) GROW_US)
            g->processes = 0; /* long forgotten */
    }
    return g->processes;
}

int64_t gate_last_503_us(const struct gate *g)
{
    return g->last_503_wall_us;
}
