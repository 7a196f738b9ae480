/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world: events, trace, faults, death.
 *
 * The heap is binary, ordered by (time, sequence), so that events of the same
 * microsecond run in the order in which they were made; each event knows its
 * place, which makes cancelling O(log n). A turn = one event. The hash covers
 * time and text of every trace line; every part traces each request, effect
 * and completion, so that two runs with equal hashes did the same.
 *
 * A crash is two calls around the destruction of the dispatcher: a dead
 * process sends nothing, so in between the ports take calls and drop them.
 * Events are never removed at a crash; those that belong to a dispatcher find
 * that its incarnation (gen) has passed.
 */

#include "core/sim/world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/base/buf.h"
#include "core/sim/api.h"
#include "core/sim/clock.h"
#include "core/sim/cloud.h"
#include "core/sim/journal.h"
#include "core/sim/net.h"
#include "core/sim/op.h"

struct sim_event {
    int64_t at_us;
    uint64_t seq;
    size_t place; /* in the heap */
    sim_fn *fn;
    void *arg;
    bool owned; /* arg is freed with the world */
};

const char *sim_fault_label(enum sim_fault f)
{
    static const char *const labels[] = {
#define X(name, label, rate, help) label,
        SIM_FAULTS(X)
#undef X
    };

    return (unsigned) f < SIM_FAULT_COUNT ? labels[f] : "?";
}

const char *sim_point_label(enum sim_point p)
{
    static const char *const labels[] = {
#define X(name, label) label,
        SIM_POINTS(X)
#undef X
    };

    return (unsigned) p < SIM_POINT_COUNT ? labels[p] : "?";
}

/* --- the heap -------------------------------------------------------- */

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

static void heap_put(struct sim *w, size_t i, struct sim_event *e)
{
    w->heap.v[i] = e;
    e->place = i;
}

static void heap_up(struct sim *w, size_t i, struct sim_event *e)
{
    while (i > 0 && event_before(e, w->heap.v[(i - 1) / 2])) {
        heap_put(w, i, w->heap.v[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_put(w, i, e);
}

static void heap_down(struct sim *w, size_t i, struct sim_event *e)
{
    for (;;) {
        size_t c = 2 * i + 1;

        if (c + 1 < w->heap.n && event_before(w->heap.v[c + 1], w->heap.v[c]))
            c++;
        if (c >= w->heap.n || event_before(e, w->heap.v[c]))
            break;
        heap_put(w, i, w->heap.v[c]);
        i = c;
    }
    heap_put(w, i, e);
}

static void heap_remove(struct sim *w, struct sim_event *e)
{
    size_t i = e->place;
    struct sim_event *last = w->heap.v[--w->heap.n];

    if (last == e)
        return;
    if (i > 0 && event_before(last, w->heap.v[(i - 1) / 2]))
        heap_up(w, i, last);
    else
        heap_down(w, i, last);
}

struct sim_event *sim_at(struct sim *w, int64_t delay_us, sim_fn *fn, void *arg)
{
    struct sim_event *e = MEM_NEW(struct sim_event);

    assert(delay_us >= 0);
    e->at_us = w->now_us + delay_us;
    e->seq = w->next_seq++;
    e->fn = fn;
    e->arg = arg;
    VEC_PUSH(&w->heap, e);
    heap_up(w, w->heap.n - 1, e);
    return e;
}

struct sim_event *sim_at_owned(struct sim *w, int64_t delay_us, sim_fn *fn,
                               void *arg)
{
    struct sim_event *e = sim_at(w, delay_us, fn, arg);

    e->owned = true;
    return e;
}

void sim_cancel(struct sim *w, struct sim_event *e)
{
    if (!e)
        return;
    heap_remove(w, e);
    free(e);
}

int64_t sim_next_us(const struct sim *w)
{
    return w->heap.n > 0 ? w->heap.v[0]->at_us : INT64_MAX;
}

bool sim_step(struct sim *w)
{
    struct sim_event *e;
    sim_fn *fn;
    void *arg;

    if (w->heap.n == 0)
        return false;
    e = w->heap.v[0];
    heap_remove(w, e);
    assert(e->at_us >= w->now_us);
    w->crowd = e->at_us > w->now_us ? 0 : w->crowd + 1;
    if (w->crowd > SIM_CROWD)
        sim_fail(w, "time stands still: %d turns at one moment", SIM_CROWD);
    w->now_us = e->at_us;
    w->turns++;
    fn = e->fn;
    arg = e->arg;
    free(e);
    fn(arg);
    return true;
}

/* --- trace ----------------------------------------------------------- */

static void hash_bytes(struct sim *w, const void *p, size_t n)
{
    const unsigned char *c = p;

    for (size_t i = 0; i < n; i++)
        w->hash = (w->hash ^ c[i]) * UINT64_C(0x100000001b3);
}

void sim_trace(struct sim *w, const char *fmt, ...)
{
    char *line = w->ring[w->ring_next];
    int n = snprintf(line, SIM_LINE, "%" PRId64 ".%06d ", w->now_us / SIM_S,
                     (int) (w->now_us % SIM_S));
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line + n, SIM_LINE - (size_t) n, fmt, ap);
    va_end(ap);
    w->ring_next = (w->ring_next + 1) % SIM_RING;
    hash_bytes(w, line, strlen(line) + 1);
    if (w->trace)
        w->trace(w->trace_arg, w->now_us, line);
}

void sim_fail(struct sim *w, const char *fmt, ...)
{
    struct buf b;
    va_list ap;

    if (w->failure)
        return;
    buf_init(&b, SIM_RING * SIM_LINE + 4096);
    buf_printf(&b, "seed %" PRIu64 " at %" PRId64 ".%06d s: ", w->seed,
               w->now_us / SIM_S, (int) (w->now_us % SIM_S));
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    buf_puts(&b, "\nlast events:\n");
    for (unsigned i = 0; i < SIM_RING; i++) {
        const char *line = w->ring[(w->ring_next + i) % SIM_RING];

        if (*line)
            buf_printf(&b, "    %s\n", line);
    }
    w->failure = buf_take(&b, NULL);
    if (!w->fail_quiet)
        fprintf(stderr, "%s", w->failure);
}

/* --- faults ---------------------------------------------------------- */

bool sim_fault(struct sim *w, enum sim_fault f)
{
    struct sim_fault_state *s = &w->faults[f];
    bool hit = s->rate > 0 && sim_rng_chance(&w->fault_rng, s->rate);

    if (s->forced > 0) {
        hit = s->skip == 0;
        if (hit)
            s->forced--;
        else
            s->skip--;
    }
    if (hit)
        sim_fault_note(w, f);
    return hit;
}

void sim_fault_note(struct sim *w, enum sim_fault f)
{
    w->faults[f].count++;
    sim_trace(w, "FAULT %s", sim_fault_label(f));
}

void sim_fault_force(struct sim *w, enum sim_fault f, unsigned n, unsigned skip)
{
    w->faults[f].forced = n;
    w->faults[f].skip = skip;
}

void sim_calm(struct sim *w)
{
    for (unsigned f = 0; f < SIM_FAULT_COUNT; f++)
        w->faults[f].rate = 0;
    sim_trace(w, "calm: no more faults by chance");
}

/* --- life and death -------------------------------------------------- */

void sim_point(struct sim *w, enum sim_point p)
{
    w->point_count[p]++;
    if (w->point_armed[p] == 0 || --w->point_armed[p] > 0)
        return;
    sim_trace(w, "POINT %s", sim_point_label(p));
    w->crash_wanted = true;
}

void sim_point_arm(struct sim *w, enum sim_point p, unsigned nth)
{
    w->point_armed[p] = nth;
}

int64_t sim_heard_us(const struct sim *w)
{
    return (sim_awake(w) ? w->now_us : w->frozen_from_us) - w->frozen_us;
}

void sim_born(struct sim *w)
{
    w->core_since_us = w->now_us;
    w->core_heard_us = sim_heard_us(w);
}

/* It goes on, or has died. */
static void thaw(struct sim *w)
{
    if (w->frozen_until_us == 0)
        return;
    w->frozen_us += w->now_us - w->frozen_from_us;
    w->frozen_until_us = 0;
}

static void on_wake(void *arg)
{
    struct sim *w = arg;

    if (w->now_us != w->frozen_until_us)
        return; /* died meanwhile, or is stopped for longer */
    thaw(w);
    sim_trace(w, "the dispatcher goes on");
}

void sim_freeze(struct sim *w, int64_t for_us)
{
    sim_fault_note(w, SIM_FAULT_FREEZE);
    sim_trace(w, "the dispatcher is stopped for %d s", (int) (for_us / SIM_S));
    thaw(w);
    w->frozen_from_us = w->now_us;
    w->frozen_until_us = w->now_us + for_us;
    sim_at(w, for_us, on_wake, w);
}

bool sim_awake(const struct sim *w)
{
    return w->now_us >= w->frozen_until_us;
}

int64_t sim_wake_in(const struct sim *w)
{
    return sim_awake(w) ? 0 : w->frozen_until_us - w->now_us;
}

void sim_crash_begin(struct sim *w)
{
    sim_fault_note(w, SIM_FAULT_CRASH);
    w->crashing = true;
    w->crash_wanted = false;
    thaw(w);
}

void sim_crash_end(struct sim *w)
{
    w->gen++;
    w->crashing = false;
    sim_clock_crash(w);
    sim_journal_crash(w->journal);
    sim_net_crash(w->net);
}

struct sim *sim_create(uint64_t seed)
{
    struct sim *w = MEM_NEW(struct sim);

    w->seed = seed;
    w->hash = UINT64_C(0xcbf29ce484222325);
    w->gen = 1;
    w->silence_us = 540 * (int64_t) SIM_S;
    w->wall_base_us = INT64_C(1767225600) * SIM_S; /* 2026-01-01 */
    sim_rng_init(&w->fault_rng, seed, "faults");
    sim_rng_init(&w->crash_rng, seed, "crash");
    sim_clock_init(w);
    w->journal = sim_journal_create(w);
    w->api = sim_api_create(w);
    w->net = sim_net_create(w);
    return w;
}

void sim_destroy(struct sim *w)
{
    if (!w)
        return;
    w->gen++;
    op_free_all(w);
    sim_clock_crash(w);
    while (w->heap.n > 0) {
        struct sim_event *e = w->heap.v[--w->heap.n];

        if (e->owned)
            free(e->arg);
        free(e);
    }
    VEC_FINI(&w->heap);
    for (unsigned i = 0; i < w->n_clouds; i++)
        sim_cloud_destroy(w->clouds[i]);
    sim_net_destroy(w->net);
    sim_api_destroy(w->api);
    sim_journal_destroy(w->journal);
    free(w->failure);
    free(w);
}
