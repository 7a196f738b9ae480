/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocking driver calls behind an asynchronous port.
 *
 * The life of an op, all transitions but two on the loop thread:
 *
 *      QUEUED --worker takes it--> RUNNING --callback returned--> ENDED
 *        |                            |                             |
 *        | deadline or cancel         | deadline                    | done()
 *        v                            v                             v
 *       DEAD                      written off                    reported
 *     (never enters             (reported as timed out;
 *      the driver)               what it still says is dropped)
 *
 * QUEUED -> RUNNING and RUNNING -> ENDED happen on the worker; since DEAD and
 * RUNNING compete, `state` is changed by compare-and-swap only.
 *
 * An op is reported exactly once (`settled`), always from a turn of the loop
 * of its own: refusals are deferred. It is freed when both the worker's job
 * and the pending report have let go of it (`refs`).
 *
 * The driver is given a deadline somewhat before the op's: a driver that
 * keeps its deadline (the host's sleeping and process functions do) delivers
 * the true outcome, and its thread is not written off.
 *
 * What is refused here without asking the driver has had no effect:
 * OP_REFUSED. Only a thread that is inside the driver can make an outcome
 * unknown.
 */

#include "core/plugin/iset.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/io/loop.h"
#include "core/plugin/drvset.h"
#include "core/plugin/registry.h"
#include "core/port/cloud.h"

enum { THREADS_DEFAULT = 4, MARGIN_MAX_MS = 1000 };

enum state { QUEUED, RUNNING, ENDED, DEAD };

struct iset {
    struct cloud_port port;
    struct drvset set;
    struct loop *loop;
    struct loop_pool *pool;
    bool parallel;
    bool opening;
    struct op *ops;          /* all that are not freed */
    unsigned stuck;          /* written-off threads */
    int64_t stuck_since_us;  /* of the latest one */
    const char *stuck_in;    /* the callback it is in */
    unsigned inside;         /* atomic: threads inside the driver */
    bool abandoned;          /* atomic: the loop is, or will be, gone */
};

/* Texts and tags of a request, copied. */
struct args {
    VEC(char *) texts;
    VEC(struct cdc_tag) tags;
    const char *id, *key;
    struct cdc_create_spec spec;
};

typedef void create_cb(void *arg, const struct cloud_create_result *r);
typedef void list_cb(void *arg, const struct cloud_instance *i);
typedef void list_end_cb(void *arg, const struct cloud_list_result *r);

struct op {
    struct iset *s;          /* NULL once the set is destroyed */
    struct op *next, **link;
    enum call_kind kind;
    int state;               /* enum state, atomic */
    unsigned refs;           /* loop thread only */
    bool settled;
    bool written_off;
    bool submitted;          /* the pool has it; done() has not been called */
    bool entered;            /* atomic: work() was called, done() will be */
    struct call *call;       /* NULL when refused at once */
    struct loop_timer *timer;
    int64_t begun_us;
    int64_t deadline_ms;
    struct args args;
    struct cdc_set *opened;
    struct op_result refusal; /* when call has none to tell */
    union {
        cloud_cb *plain;
        create_cb *create;
        list_end_cb *end;
    } cb;
    list_cb *on_data;
    void *arg;
};

/* --- requests, copied ---------------------------------------------------- */

static const char *keep(struct args *a, const char *s)
{
    char *copy = mem_strdup(s ? s : "");

    VEC_PUSH(&a->texts, copy);
    return copy;
}

static void keep_tags(struct args *a, const struct cloud_tag *tags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct cdc_tag t = {keep(a, tags[i].key), keep(a, tags[i].value)};

        VEC_PUSH(&a->tags, t);
    }
}

static void keep_spec(struct args *a, const struct cloud_create_req *req)
{
    keep_tags(a, req->tags, req->n_tags);
    a->spec = (struct cdc_create_spec){
        .size = sizeof a->spec,
        .count = req->count,
        .token = keep(a, req->token),
        .type_name = keep(a, req->type_name),
        .provider_type = keep(a, req->provider_type),
        .vcpus = req->vcpus,
        .ram = req->ram,
        .scratch = req->scratch,
        .price = req->price,
        .preemptible = req->preemptible,
        .n_tags = (uint32_t)a->tags.n,
        .tags = a->tags.v,
        .image = keep(a, req->image),
        .placement = keep(a, req->placement),
        .init_command = keep(a, req->init_command),
        .public_key = keep(a, req->public_key),
    };
}

static void args_fini(struct args *a)
{
    for (size_t i = 0; i < a->texts.n; i++)
        free(a->texts.v[i]);
    VEC_FINI(&a->texts);
    VEC_FINI(&a->tags);
}

/* --- ops ----------------------------------------------------------------- */

static struct op *op_create(struct iset *s, enum call_kind kind,
                            int64_t deadline_ms, void *arg)
{
    struct op *op = MEM_NEW(struct op);

    op->s = s;
    op->kind = kind;
    op->deadline_ms = deadline_ms > 0 ? deadline_ms : 0;
    op->arg = arg;
    op->link = &s->ops;
    op->next = s->ops;
    if (op->next)
        op->next->link = &op->next;
    s->ops = op;
    return op;
}

static void op_unref(struct op *op)
{
    if (--op->refs > 0)
        return;
    *op->link = op->next;
    if (op->next)
        op->next->link = op->link;
    call_unref(op->call);
    args_fini(&op->args);
    free(op);
}

static bool op_move(struct op *op, enum state from, enum state to)
{
    int expected = from;

    return __atomic_compare_exchange_n(&op->state, &expected, to, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* --- reports ------------------------------------------------------------- */

static void report_create(struct op *op, const struct op_result *r)
{
    struct cloud_create_result result = {.r = *r};
    struct cloud_instance *copies = NULL;
    size_t n = r->outcome == OP_DONE ? op->call->instances.n : 0;

    if (n) {
        copies = mem_calloc(n, sizeof *copies);
        for (size_t i = 0; i < n; i++)
            copies[i] = *op->call->instances.v[i];
    }
    result.v = copies;
    result.n = n;
    op->cb.create(op->arg, &result);
    free(copies);
}

static void report_list(struct op *op, const struct op_result *r)
{
    struct cloud_list_result result = {.r = *r, .unknown = ""};
    const struct call *c = op->call;

    if (r->outcome == OP_DONE) {
        for (size_t i = 0; i < c->instances.n; i++)
            op->on_data(op->arg, c->instances.v[i]);
        result.complete = !c->has_unknown;
        result.unknown = c->unknown.data;
    }
    op->cb.end(op->arg, &result);
}

static void report(struct op *op, const struct op_result *r)
{
    if (op->kind == CALL_CREATE)
        report_create(op, r);
    else if (op->kind == CALL_LIST)
        report_list(op, r);
    else
        op->cb.plain(op->arg, r);
}

/* From now on the op is spoken for. */
static void settle(struct op *op)
{
    op->settled = true;
    if (op->kind == CALL_OPEN && op->submitted)
        op->s->opening = false;
    loop_timer_cancel(op->timer);
    op->timer = NULL;
}

static void report_refusal(void *arg)
{
    struct op *op = arg;

    if (op->s)
        report(op, &op->refusal);
    op_unref(op);
}

static void settle_with_refusal(struct op *op, enum op_outcome outcome)
{
    settle(op);
    op->refusal.outcome = outcome;
    op->refs++;
    loop_defer(op->s->loop, report_refusal, op);
}

/* --- the worker ---------------------------------------------------------- */

static void enter_driver(struct op *op)
{
    const struct drvset *set = &op->s->set;
    const struct args *a = &op->args;
    uint32_t n_tags = (uint32_t)a->tags.n;

    switch (op->kind) {
    case CALL_OPEN:
        op->opened = drvset_open(set, op->call);
        break;
    case CALL_CREATE:
        drvset_create(set, op->call, &a->spec);
        break;
    case CALL_LIST:
        drvset_list(set, op->call, a->tags.v, n_tags);
        break;
    case CALL_SET_TAGS:
        drvset_set_tags(set, op->call, a->id, a->tags.v, n_tags);
        break;
    case CALL_DESTROY:
        drvset_destroy(set, op->call, a->id);
        break;
    case CALL_VERIFY_HOST_KEY:
        drvset_verify_host_key(set, op->call, a->id, a->key);
        break;
    case CALL_PRICE_HISTORY:
    case CALL_DESCRIBE:
        break; /* the port does not have them yet */
    }
}

static void work(void *arg)
{
    struct op *op = arg;
    struct iset *s = op->s;

    __atomic_store_n(&op->entered, true, __ATOMIC_RELEASE);
    /* Counted before the state changes: iset_destroy looks at both. */
    __atomic_add_fetch(&s->inside, 1, __ATOMIC_ACQ_REL);
    if (op_move(op, QUEUED, RUNNING)) {
        enter_driver(op);
        op_move(op, RUNNING, ENDED);
    }
    while (__atomic_load_n(&s->abandoned, __ATOMIC_ACQUIRE))
        pause(); /* there is nobody to report to; the process will end */
    __atomic_sub_fetch(&s->inside, 1, __ATOMIC_ACQ_REL);
}

/* --- back on the loop ---------------------------------------------------- */

static uint32_t caps_of(uint32_t caps)
{
    static const uint32_t bits[][2] = {
        {CDC_CAP_BATCH, CLOUD_CAP_BATCH},
        {CDC_CAP_SET_TAGS, CLOUD_CAP_SET_TAGS},
        {CDC_CAP_VERIFY_KEY, CLOUD_CAP_VERIFY_KEY},
        {CDC_CAP_PRICES, CLOUD_CAP_PRICES},
        {CDC_CAP_SINGLE, CLOUD_CAP_SINGLE},
        {CDC_CAP_NO_SUDO, CLOUD_CAP_NO_SUDO},
    };
    uint32_t ret = 0;

    for (size_t i = 0; i < MEM_COUNT(bits); i++)
        if (caps & bits[i][0])
            ret |= bits[i][1];
    return ret;
}

static void came_back(struct op *op)
{
    struct iset *s = op->s;

    s->stuck--;
    log_printf(s->set.origin.log, LOG_WARN,
               "driver %s, backend %s: %s came back after %lld ms; its "
               "result is dropped", s->set.origin.driver, s->port.backend,
               call_label(op->kind),
               (long long)((clock_mono_us() - op->begun_us) / 1000));
    if (op->opened) /* nobody waits for this set any more */
        s->set.entry.set_close(op->opened);
}

static void report_outcome(struct op *op)
{
    struct op_result r = {.outcome = op->call->outcome};

    r.err = op->call->err;
    if (r.outcome == OP_REFUSED && !call_has_effect(op->kind) &&
        __atomic_load_n(&op->call->cancelled, __ATOMIC_ACQUIRE)) {
        r.outcome = OP_CANCELLED;
        r.err.class = ERR_CANCELLED;
    }
    if (op->opened) {
        drvset_adopt(&op->s->set, op->opened, op->call);
        op->s->port.caps = caps_of(op->s->set.caps);
    }
    settle(op);
    report(op, &r);
}

static void done(void *arg)
{
    struct op *op = arg;

    if (op->s && op->written_off)
        came_back(op);
    else if (op->s && !op->settled)
        report_outcome(op);
    op->submitted = false;
    op_unref(op);
}

static void write_off(struct op *op)
{
    struct iset *s = op->s;
    bool effect = call_has_effect(op->kind);

    call_cancel(op->call);
    op->written_off = true;
    s->stuck++;
    s->stuck_since_us = clock_mono_us();
    s->stuck_in = call_label(op->kind);
    if (s->parallel)
        loop_pool_replace_stuck(s->pool);
    err_set(&op->refusal.err, ERR_TIMEOUT,
            "%s did not return within %lld ms", call_label(op->kind),
            (long long)op->deadline_ms);
    settle_with_refusal(op, effect ? OP_UNKNOWN : OP_REFUSED);
}

static void deadline(void *arg)
{
    struct op *op = arg;

    op->timer = NULL;
    if (op_move(op, QUEUED, DEAD)) {
        err_set(&op->refusal.err, ERR_TIMEOUT,
                "%s waited %lld ms for a free thread", call_label(op->kind),
                (long long)op->deadline_ms);
        settle_with_refusal(op, OP_REFUSED);
    } else if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) == RUNNING) {
        write_off(op);
    } /* else it has ended, and done() is on its way */
}

static void op_cancel(struct cloud_port *port, struct op *op)
{
    (void)port;
    if (op->settled)
        return;
    if (op_move(op, QUEUED, DEAD)) {
        err_set(&op->refusal.err, ERR_CANCELLED, "%s was cancelled",
                call_label(op->kind));
        settle_with_refusal(op, OP_CANCELLED);
    } else {
        call_cancel(op->call);
    }
}

/* --- starting an op ------------------------------------------------------ */

static int check_stuck(const struct iset *s, struct err *err)
{
    if (s->stuck < (s->parallel ? ISET_STUCK_MAX : 1))
        return 0;
    return err_set(err, ERR_TRANSIENT,
                   "the driver has been stuck in %s for %lld s", s->stuck_in,
                   (long long)((clock_mono_us() - s->stuck_since_us) /
                               1000000));
}

static int check_open(const struct iset *s, const struct op *op,
                      struct err *err)
{
    if (op->kind == CALL_OPEN && (s->opening || s->set.set))
        return err_set(err, ERR_INTERNAL, "the set is open already");
    if (op->kind != CALL_OPEN && !s->set.set)
        return err_set(err, ERR_INTERNAL, "the set is not open");
    return 0;
}

/* When the driver has to be done: before the op's deadline. */
static int64_t driver_deadline_us(const struct op *op)
{
    int64_t margin_ms = op->deadline_ms / 10;

    if (margin_ms > MARGIN_MAX_MS)
        margin_ms = MARGIN_MAX_MS;
    return clock_mono_us() + (op->deadline_ms - margin_ms) * 1000;
}

static int submit(struct op *op, struct err *err)
{
    struct iset *s = op->s;

    if (check_open(s, op, err) || check_stuck(s, err))
        return -1;
    op->call = call_create(&s->set.origin, op->kind, driver_deadline_us(op),
                           err);
    if (!op->call || loop_pool_submit(s->pool, work, done, op, err))
        return -1;
    op->submitted = true;
    op->refs++;
    return 0;
}

static struct op *start(struct op *op)
{
    struct iset *s = op->s;

    op->begun_us = clock_mono_us();
    if (submit(op, &op->refusal.err)) {
        settle_with_refusal(op, OP_REFUSED);
        return op;
    }
    if (op->kind == CALL_OPEN)
        s->opening = true;
    op->timer = loop_timer_arm(s->loop, op->deadline_ms * 1000, deadline, op);
    return op;
}

/* --- the port ------------------------------------------------------------ */

static struct iset *iset_of(struct cloud_port *port)
{
    return MEM_CONTAINER(port, struct iset, port);
}

static struct op *port_open(struct cloud_port *port, int64_t deadline_ms,
                            cloud_cb *cb, void *arg)
{
    struct op *op = op_create(iset_of(port), CALL_OPEN, deadline_ms, arg);

    op->cb.plain = cb;
    return start(op);
}

static struct op *port_create(struct cloud_port *port,
                              const struct cloud_create_req *req,
                              create_cb *cb, void *arg)
{
    struct op *op = op_create(iset_of(port), CALL_CREATE, req->deadline_ms,
                              arg);

    keep_spec(&op->args, req);
    op->cb.create = cb;
    return start(op);
}

static struct op *port_list(struct cloud_port *port,
                            const struct cloud_tag *filter, size_t n_filter,
                            int64_t deadline_ms, list_cb *on_data,
                            list_end_cb *end, void *arg)
{
    struct op *op = op_create(iset_of(port), CALL_LIST, deadline_ms, arg);

    keep_tags(&op->args, filter, n_filter);
    op->on_data = on_data;
    op->cb.end = end;
    return start(op);
}

static struct op *port_set_tags(struct cloud_port *port, const char *id,
                                const struct cloud_tag *tags, size_t n_tags,
                                int64_t deadline_ms, cloud_cb *cb, void *arg)
{
    struct op *op = op_create(iset_of(port), CALL_SET_TAGS, deadline_ms, arg);

    op->args.id = keep(&op->args, id);
    keep_tags(&op->args, tags, n_tags);
    op->cb.plain = cb;
    return start(op);
}

static struct op *port_destroy(struct cloud_port *port, const char *id,
                               int64_t deadline_ms, cloud_cb *cb, void *arg)
{
    struct op *op = op_create(iset_of(port), CALL_DESTROY, deadline_ms, arg);

    op->args.id = keep(&op->args, id);
    op->cb.plain = cb;
    return start(op);
}

static struct op *port_verify_host_key(struct cloud_port *port,
                                       const char *id, const char *key,
                                       int64_t deadline_ms, cloud_cb *cb,
                                       void *arg)
{
    struct op *op = op_create(iset_of(port), CALL_VERIFY_HOST_KEY,
                              deadline_ms, arg);

    op->args.id = keep(&op->args, id);
    op->args.key = keep(&op->args, key);
    op->cb.plain = cb;
    return start(op);
}

static void port_quota_group(struct cloud_port *port,
                             const char *provider_type, bool preemptible,
                             char *out, size_t size)
{
    drvset_quota_group(&iset_of(port)->set, provider_type, preemptible, out,
                       size);
}

/* --- life ---------------------------------------------------------------- */

struct iset *iset_create(const struct driver *driver,
                         const struct iset_options *o, struct err *err)
{
    struct iset *s = MEM_NEW(struct iset);
    unsigned threads = o->threads ? o->threads : THREADS_DEFAULT;

    s->loop = o->loop;
    s->parallel = driver->descriptor->threads == CDC_THREADS_PARALLEL;
    s->port = (struct cloud_port){
        .driver = driver->descriptor->name,
        .open = port_open,
        .create = port_create,
        .list = port_list,
        .set_tags = port_set_tags,
        .destroy = port_destroy,
        .verify_host_key = port_verify_host_key,
        .quota_group = port_quota_group,
        .op_cancel = op_cancel,
        .impl = s,
    };
    if (drvset_init(&s->set, driver, o->backend, o->set_id, o->state_dir,
                    o->params, o->log, err))
        goto error;
    s->port.backend = s->set.backend;
    s->pool = loop_pool_create(s->loop, s->parallel ? threads : 1,
                               ISET_QUEUE_MAX);
    return s;
error:
    iset_destroy(s, 0);
    return NULL;
}

struct cloud_port *iset_port(struct iset *s)
{
    return &s->port;
}

/* Nothing of them is reported any more. */
static void drop_ops(struct iset *s)
{
    for (struct op *op = s->ops; op; op = op->next) {
        settle(op);
        if (op->call && !op_move(op, QUEUED, DEAD))
            call_cancel(op->call);
    }
}

static bool wait_until_outside(struct iset *s, int wait_ms)
{
    int64_t end_us = clock_mono_us() + wait_ms * INT64_C(1000);

    while (__atomic_load_n(&s->inside, __ATOMIC_ACQUIRE) > 0) {
        if (clock_mono_us() >= end_us)
            return false;
        usleep(2000);
    }
    return true;
}

/* Threads in the driver can be neither waited for nor ended. They must not
 * come back to us: their ops are dead, and when they leave the driver they
 * stop for good. */
static void abandon(struct iset *s)
{
    __atomic_store_n(&s->abandoned, true, __ATOMIC_RELEASE);
    for (struct op *op = s->ops; op; op = op->next)
        if (op->call)
            call_retire(op->call);
}

/* The pool is gone. Ops live on until what the loop still holds of them (a
 * posted done, a deferred report) has been called. */
static void orphan_ops(struct iset *s)
{
    struct op *next;

    for (struct op *op = s->ops; op; op = next) {
        next = op->next;
        op->s = NULL;
        op->link = &op->next; /* out of the list; op_unref does no harm */
        op->next = NULL;
        if (op->submitted && !__atomic_load_n(&op->entered, __ATOMIC_ACQUIRE))
            op_unref(op); /* the pool dropped it */
    }
    s->ops = NULL;
}

int iset_destroy(struct iset *s, int wait_ms)
{
    if (!s)
        return 0;
    drop_ops(s);
    if (!wait_until_outside(s, wait_ms)) {
        abandon(s);
        return -1;
    }
    loop_pool_destroy(s->pool);
    orphan_ops(s);
    drvset_fini(&s->set);
    free(s);
    return 0;
}
