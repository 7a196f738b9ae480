/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handles, life and judgement of calls.
 *
 * The table of slots is the one piece of global state: a handle must be
 * judged without touching memory that may be gone, so it cannot be found
 * through the call itself. A handle packs (generation, slot); a slot's
 * generation grows each time it is released, so that a stale handle misses
 * even when the slot is in use again. 54 bits of generation do not wrap; on a
 * 32-bit machine 22 bits could, after four million calls in one slot.
 *
 * A call has three kinds of users at once: the thread in the driver, the loop
 * (deadline, cancel), and perhaps a thread that a misbehaving driver left
 * behind. References are counted; `lock` guards the results until call_end
 * has moved the generation on, after which only the owner reads them. The
 * lock of a call is taken before that of the table, never the other way round.
 *
 * call_judge is where "unknown" is born: whenever the driver's word about an
 * effect cannot be trusted (it gave no reason, it emitted garbage, it claims
 * success without a result) the outcome is OP_UNKNOWN, and the dispatcher
 * will look instead of repeating.
 */

#include "core/plugin/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"

enum { SLOT_BITS = 10, UNKNOWN_MAX = 4096, FACTS_MAX = 16384 };

_Static_assert(CALLS_MAX == 1 << SLOT_BITS, "a slot number has SLOT_BITS");

static struct {
    pthread_mutex_t lock;
    unsigned next;
    struct slot {
        uintptr_t generation; /* of the current or next user; from 1 */
        struct call *call;    /* NULL = free */
    } slots[CALLS_MAX];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    const char *label;
    bool effect;
} kinds[] = {
#define X(name, label, effect) [CALL_##name] = {label, effect},
    CALL_KINDS(X)
#undef X
};

const char *call_label(enum call_kind kind)
{
    return kinds[kind].label;
}

bool call_has_effect(enum call_kind kind)
{
    return kinds[kind].effect;
}

/* --- life ---------------------------------------------------------------- */

struct call *call_create(const struct call_origin *origin,
                         enum call_kind kind, int64_t deadline_us,
                         struct err *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct call *c;

    if (fd < 0) {
        err_set_errno(err, errno, "eventfd");
        return NULL;
    }
    c = MEM_NEW(struct call);
    c->origin = origin;
    c->kind = kind;
    c->deadline_us = deadline_us;
    c->wake_fd = fd;
    c->refs = 1;
    c->count = 1;
    pthread_mutex_init(&c->lock, NULL);
    buf_init(&c->unknown, UNKNOWN_MAX);
    buf_init(&c->facts, FACTS_MAX);
    return c;
}

void call_ref(struct call *c)
{
    __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
}

static void call_free(struct call *c)
{
    for (size_t i = 0; i < c->instances.n; i++)
        free(c->instances.v[i]);
    for (size_t i = 0; i < c->scratch.n; i++)
        free(c->scratch.v[i]);
    for (size_t i = 0; i < c->values.n; i++)
        jsn_free(c->values.v[i]);
    VEC_FINI(&c->instances);
    VEC_FINI(&c->scratch);
    VEC_FINI(&c->values);
    VEC_FINI(&c->prices);
    buf_fini(&c->unknown);
    buf_fini(&c->facts);
    pthread_mutex_destroy(&c->lock);
    close(c->wake_fd);
    free(c);
}

void call_unref(struct call *c)
{
    if (c && __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) == 0)
        call_free(c);
}

void call_cancel(struct call *c)
{
    uint64_t one = 1;

    __atomic_store_n(&c->cancelled, true, __ATOMIC_RELEASE);
    /* Cannot fail but when the counter is full, and then it is readable. */
    if (write(c->wake_fd, &one, sizeof one) < 0)
        return;
}

int64_t call_left_ms(const struct call *c)
{
    int64_t left = (c->deadline_us - clock_mono_us() + 999) / 1000;

    return left > 0 ? left : 0;
}

bool call_is_cancelled(const struct call *c)
{
    return __atomic_load_n(&c->cancelled, __ATOMIC_ACQUIRE) ||
           call_left_ms(c) == 0;
}

/* --- handles ------------------------------------------------------------- */

/* A number dressed as a pointer; nobody ever follows it. */
static struct cdc_op *to_op(uintptr_t handle)
{
    return (struct cdc_op *)handle;
}

struct cdc_op *call_begin(struct call *c)
{
    struct slot *s;
    uintptr_t handle = 0;

    pthread_mutex_lock(&c->lock);
    pthread_mutex_lock(&table.lock);
    for (unsigned i = 0; i < CALLS_MAX && !handle; i++) {
        table.next = (table.next + 1) % CALLS_MAX;
        s = &table.slots[table.next];
        if (s->call)
            continue;
        s->generation += s->generation == 0;
        s->call = c;
        handle = s->generation << SLOT_BITS | table.next;
    }
    pthread_mutex_unlock(&table.lock);
    c->handle = handle;
    pthread_mutex_unlock(&c->lock);
    return to_op(handle);
}

void call_retire(struct call *c)
{
    struct slot *s;

    pthread_mutex_lock(&c->lock);
    if (c->handle) {
        s = &table.slots[c->handle % CALLS_MAX];
        pthread_mutex_lock(&table.lock);
        s->call = NULL;
        s->generation++;
        pthread_mutex_unlock(&table.lock);
        c->handle = 0;
    }
    pthread_mutex_unlock(&c->lock);
}

struct call *call_find(struct cdc_op *op)
{
    uintptr_t handle = (uintptr_t)op;
    struct slot *s = &table.slots[handle % CALLS_MAX];
    struct call *c = NULL;

    pthread_mutex_lock(&table.lock);
    if (handle && s->call && s->generation == handle >> SLOT_BITS) {
        c = s->call;
        call_ref(c);
    }
    pthread_mutex_unlock(&table.lock);
    return c;
}

struct call *call_get(struct cdc_op *op)
{
    struct call *c = call_find(op);

    if (!c)
        return NULL;
    pthread_mutex_lock(&c->lock);
    if (c->handle == (uintptr_t)op)
        return c;
    call_put(c); /* it ended between the two locks */
    return NULL;
}

void call_put(struct call *c)
{
    pthread_mutex_unlock(&c->lock);
    call_unref(c);
}

void call_end(struct call *c, int32_t rc)
{
    call_retire(c);
    call_judge(c, rc);
}

/* --- judgement ----------------------------------------------------------- */

/* Something broke, and what the driver says about effects counts no more. */
static void judge_broken(struct call *c, const struct err *why)
{
    c->outcome = call_has_effect(c->kind) ? OP_UNKNOWN : OP_REFUSED;
    c->err = *why;
}

static void judge_success(struct call *c)
{
    struct err why;

    c->outcome = OP_DONE;
    err_clear(&c->err);
    if (c->kind != CALL_CREATE)
        return;
    if (c->instances.n > 0 && c->instances.n <= (size_t)c->count)
        return;
    err_set(&why, ERR_INTERNAL,
            "the driver accepted to create %d and emitted %zu instances",
            c->count, c->instances.n);
    judge_broken(c, &why);
}

static void judge_failure(struct call *c)
{
    bool effect = call_has_effect(c->kind);
    struct err why;

    if (!c->failed || c->err.class == ERR_NONE) {
        err_set(&why, ERR_INTERNAL, "the driver failed without a reason");
        judge_broken(c, &why);
        return;
    }
    c->outcome = OP_REFUSED;
    if (effect && (c->err.class == ERR_UNKNOWN || c->instances.n > 0))
        c->outcome = OP_UNKNOWN;
    if (!effect && c->err.class == ERR_UNKNOWN)
        c->err.class = ERR_TRANSIENT; /* there was nothing to happen */
}

void call_judge(struct call *c, int32_t rc)
{
    if (c->malformed) {
        err_prefix(&c->bad, "the driver emitted garbage");
        judge_broken(c, &c->bad);
    } else if (rc == 0) {
        judge_success(c);
    } else {
        judge_failure(c);
    }
}
