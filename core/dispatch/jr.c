/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Batches for the journal.
 *
 * One batch is in flight at a time; what is asked for meanwhile goes into the
 * next. So the order of records is the order of the calls, and a disk that
 * takes 5 ms per sync serves any number of records each 5 ms.
 *
 * When an append fails, the batch is kept and appended again after a pause,
 * whole and in order (puts and deletes are idempotent), and jr_ok() is false
 * until it worked: nobody begins anything that a crash must not forget.
 *
 * Loop thread only.
 */

#include "core/dispatch/jr.h"

#include <stdlib.h>

#include "core/base/logger.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/dispatch/core.h"
#include "core/dispatch/sched.h"

enum { RETRY_US = 1000000 };

struct batch {
    VEC(struct journal_rec) recs;
    struct jr_wait *first, **last;
};

struct jr {
    struct dispatch *d;
    struct batch next, flying;
    bool in_flight;
    bool broken;
    struct deadline retry;
    void (*on_rec)(void *arg, const struct journal_rec *rec);
    void (*end)(void *arg, const struct op_result *r);
    void *arg;
};

static void batch_init(struct batch *b)
{
    *b = (struct batch) {0};
    b->last = &b->first;
}

struct jr *jr_create(struct dispatch *d)
{
    struct jr *jr = MEM_NEW(struct jr);

    jr->d = d;
    batch_init(&jr->next);
    batch_init(&jr->flying);
    return jr;
}

void jr_destroy(struct jr *jr)
{
    if (!jr)
        return;
    deadline_stop(jr->d->deadlines, &jr->retry);
    VEC_FINI(&jr->next.recs);
    VEC_FINI(&jr->flying.recs);
    free(jr);
}

static void on_replay_rec(void *arg, const struct journal_rec *rec)
{
    struct jr *jr = arg;

    jr->on_rec(jr->arg, rec);
}

static void on_replay_end(void *arg, const struct op_result *r)
{
    struct jr *jr = arg;

    core_op_end(jr->d);
    jr->end(jr->arg, r);
}

void jr_replay(struct jr *jr,
               void (*on_rec)(void *arg, const struct journal_rec *rec),
               void (*end)(void *arg, const struct op_result *r), void *arg)
{
    struct journal_port *port = jr->d->port.journal;

    jr->on_rec = on_rec;
    jr->end = end;
    jr->arg = arg;
    core_op_begin(jr->d);
    port->replay(port, on_replay_rec, on_replay_end, jr);
}

static void add(struct jr *jr, const struct journal_rec *rec)
{
    VEC_PUSH(&jr->next.recs, *rec);
    deadlines_soon(jr->d->deadlines);
}

void jr_put(struct jr *jr, const struct journal_rec *rec, struct jr_wait *w,
            void (*done)(void *arg), void *arg)
{
    add(jr, rec);
    if (!w)
        return;
    *w = (struct jr_wait) {.done = done, .arg = arg, .pending = true};
    *jr->next.last = w;
    jr->next.last = &w->next;
}

void jr_delete(struct jr *jr, enum journal_kind kind, const char *key)
{
    struct journal_rec rec = {.kind = kind, .deleted = true};

    text_copy(rec.key, key, sizeof rec.key);
    add(jr, &rec);
}

static void unlink_from(struct batch *b, struct jr_wait *w)
{
    for (struct jr_wait **p = &b->first; *p; p = &(*p)->next) {
        if (*p != w)
            continue;
        *p = w->next;
        if (b->last == &w->next)
            b->last = p;
        return;
    }
}

void jr_forget(struct jr *jr, struct jr_wait *w)
{
    if (!w->pending)
        return;
    unlink_from(&jr->next, w);
    unlink_from(&jr->flying, w);
    w->pending = false;
}

static void append(struct jr *jr);

static void on_retry(void *arg)
{
    append(arg);
}

static void on_appended(void *arg, const struct op_result *r)
{
    struct jr *jr = arg;
    bool was_broken = jr->broken;

    core_op_end(jr->d);
    jr->in_flight = false;
    jr->broken = r->outcome != OP_DONE;
    if (jr->broken) {
        if (!was_broken)
            log_failure(jr->d->lg, LOG_ERROR, &r->err,
                        "journal failed: nothing new is begun", NULL);
        if (jr->d->phase < CORE_STOPPING)
            deadline_set(jr->d->deadlines, &jr->retry,
                         core_now(jr->d) + RETRY_US, on_retry, jr);
        return;
    }
    if (was_broken) {
        log_event(jr->d->lg, LOG_INFO, "journal works again", NULL);
        sched_mark(jr->d);
    }
    VEC_CLEAR(&jr->flying.recs);
    while (jr->flying.first) {
        struct jr_wait *w = jr->flying.first;

        jr->flying.first = w->next;
        w->pending = false;
        w->done(w->arg);
    }
    jr->flying.last = &jr->flying.first;
    jr_flush(jr);
}

static void append(struct jr *jr)
{
    struct journal_port *port = jr->d->port.journal;

    jr->in_flight = true;
    core_op_begin(jr->d);
    port->append(port, jr->flying.recs.v, jr->flying.recs.n, on_appended, jr);
}

void jr_flush(struct jr *jr)
{
    if (jr->in_flight || jr->broken || jr->next.recs.n == 0)
        return;
    struct batch empty = jr->flying; /* its memory is used again */

    jr->flying = jr->next;
    if (!jr->flying.first)
        jr->flying.last = &jr->flying.first;
    jr->next = empty;
    jr->next.first = NULL;
    jr->next.last = &jr->next.first;
    append(jr);
}

bool jr_ok(const struct jr *jr)
{
    return !jr->broken;
}
