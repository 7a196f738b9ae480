/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The api port of the world: requests on their way to api.c, and replies.
 *
 * Each call draws its mishap when it is made: refused by an overloaded server,
 * lost on the way there, lost on the way back, or stalled beyond its deadline.
 * The commit is the effect of the op; the reply, with a copy of the record as
 * it was at the commit, comes later. The feed is a long poll: its op waits in
 * a list until something changes.
 */

#include <inttypes.h>
#include <stdio.h>

#include "core/base/map.h"
#include "core/base/text.h"
#include "core/sim/api_impl.h"
#include "core/sim/check.h"
#include "core/sim/op.h"

enum { PAGE_MAX = 40, FEED_RING = 256, FEED_ITEMS = 50 };

enum call { WHOAMI, LIST, GET, LOCK, UNLOCK, ATTEMPT, REVOKE, UPDATE };

static const char *const call_names[] = {
    "api whoami", "api list",    "api get",    "api lock",
    "api unlock", "api attempt", "api revoke", "api update",
};

enum mishap { NO_MISHAP, BUSY, LOST_REQUEST, LOST_REPLY };

struct call_op {
    struct op op;
    struct sim_api *a;
    enum call call;
    enum mishap mishap;
    char uuid[CTR_UUID_SIZE];
    union {
        void (*whoami)(void *, const struct api_whoami_result *);
        void (*list)(void *, const struct api_list_result *);
        void (*ctr)(void *, const struct api_ctr_result *);
        void (*attempt)(void *, const struct api_attempt_result *);
        void (*plain)(void *, const struct op_result *);
    } cb;
    void *arg;
    /* request */
    struct api_list_req list;
    struct ctr after;
    VEC(char *) uuids;
    struct api_update_req update;
    char *error;
    /* answer */
    VEC(struct ctr) page;
    struct ctr rec;
    bool partial;
    char token[64];
};

struct sim_feed_op {
    struct op op;
    struct sim_api *a;
    char epoch[24];
    int64_t since;
    int64_t wait_us;
    bool waits;
    bool resync;
    void (*cb)(void *, const struct api_feed_result *);
    void *arg;
};

static int64_t latency(struct sim_api *a)
{
    return sim_rng_range(&a->rng, a->latency_lo_us, a->latency_hi_us);
}

/* --- replies --------------------------------------------------------- */

static void shown(struct sim_api *a, const struct ctr *rec)
{
    struct sim_ctr *c = sim_api_find(a, rec->uuid);

    if (c && c->shown_gen != a->w->gen) {
        c->shown_gen = a->w->gen;
        c->shown_us = a->w->now_us;
    }
}

static void fire_list(struct call_op *o, const struct op_result *r)
{
    struct api_list_result res = {.r = *r, .v = o->page.v, .n = o->page.n};

    if (r->outcome != OP_DONE)
        res.n = 0;
    for (size_t i = 0; i < res.n; i++)
        shown(o->a, &res.v[i]);
    o->cb.list(o->arg, &res);
}

static void fire_ctr(struct call_op *o, const struct op_result *r)
{
    struct api_ctr_result res = {.r = *r, .partial = o->partial, .c = o->rec};

    if (r->outcome == OP_DONE)
        shown(o->a, &o->rec);
    o->cb.ctr(o->arg, &res);
    if (o->call == LOCK && r->outcome == OP_DONE)
        sim_point(o->op.w, SIM_POINT_LOCK_HEARD);
}

static void fire_attempt(struct call_op *o, const struct op_result *r)
{
    struct api_attempt_result res = {
        .r = *r, .attempt = o->rec.attempt, .api_token = o->token};

    o->cb.attempt(o->arg, &res);
    if (r->outcome == OP_DONE)
        sim_point(o->op.w, SIM_POINT_ATTEMPT_HEARD);
}

static void call_fire(struct op *op, const struct op_result *r)
{
    struct call_op *o = (struct call_op *) op;

    sim_trace(op->w, "%s %s => %s%s", op->what, o->uuid,
              r->outcome == OP_DONE ? "done" : "not done: ",
              r->outcome == OP_DONE ? "" : r->err.text);
    switch (o->call) {
    case WHOAMI:
        o->cb.whoami(o->arg,
                     &(struct api_whoami_result){.r = *r,
                                                 .token_uuid = o->a->token_uuid,
                                                 .features = o->a->features});
        break;
    case LIST:
        fire_list(o, r);
        break;
    case ATTEMPT:
        fire_attempt(o, r);
        break;
    case REVOKE:
        o->cb.plain(o->arg, r);
        if (r->outcome == OP_DONE)
            sim_point(op->w, SIM_POINT_REVOKE_HEARD);
        break;
    default:
        fire_ctr(o, r);
        break;
    }
}

/* --- commits --------------------------------------------------------- */

/* Most urgent first, then oldest, then by uuid. */
static int queue_cmp(const struct ctr *x, const struct ctr *y)
{
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    if (x->created_us != y->created_us)
        return x->created_us < y->created_us ? -1 : 1;
    return strcmp(x->uuid, y->uuid);
}

static int queue_cmp_v(const void *x, const void *y)
{
    return queue_cmp(x, y);
}

static bool list_matches(const struct call_op *o, const struct ctr *rec)
{
    bool queued = o->list.which == API_LIST_QUEUED;

    if (queued && (rec->state != CTR_QUEUED || rec->priority <= 0))
        return false;
    if (!queued && strcmp(rec->locked_by, o->a->token_uuid) != 0)
        return false;
    if (!o->list.after)
        return true;
    return queued ? queue_cmp(rec, &o->after) > 0
                  : strcmp(rec->uuid, o->after.uuid) > 0;
}

/* As on the wire: lists do not select the mounts. */
static void leave_out_mounts(struct call_op *o)
{
    for (size_t i = 0; i < o->page.n; i++) {
        o->page.v[i].mounts_known = false;
        o->page.v[i].tmp_capacity = 0;
    }
}

static void commit_list(struct call_op *o)
{
    struct sim_api *a = o->a;
    size_t limit = PAGE_MAX;

    if (o->list.limit > 0 && o->list.limit < PAGE_MAX)
        limit = (size_t) o->list.limit;
    if (o->list.which == API_LIST_UUIDS) {
        for (size_t i = 0; i < o->uuids.n; i++) {
            struct sim_ctr *c = sim_api_find(a, o->uuids.v[i]);

            if (c)
                VEC_PUSH(&o->page, c->rec);
        }
        leave_out_mounts(o);
        return;
    }
    for (size_t i = 0; i < a->ctrs.n; i++)
        if (list_matches(o, &a->ctrs.v[i]->rec))
            VEC_PUSH(&o->page, a->ctrs.v[i]->rec);
    if (o->list.which == API_LIST_QUEUED && o->page.n > 1)
        qsort(o->page.v, o->page.n, sizeof *o->page.v, queue_cmp_v);
    if (o->page.n > limit)
        o->page.n = limit;
    leave_out_mounts(o);
}

static void answer_ctr(struct call_op *o, const struct sim_ctr *c)
{
    o->rec = c->rec;
    if (o->call != LOCK && o->call != UNLOCK)
        return;
    o->partial = true;
    o->rec = (struct ctr){.state = c->rec.state, .priority = c->rec.priority};
    text_copy(o->rec.uuid, c->rec.uuid, sizeof o->rec.uuid);
    text_copy(o->rec.locked_by, c->rec.locked_by, sizeof o->rec.locked_by);
}

static int commit_ctr(struct call_op *o, struct err *err)
{
    struct sim_api *a = o->a;
    struct sim_ctr *c = sim_api_find(a, o->uuid);
    int rc = 0;

    if (!c)
        return err_set(err, ERR_NOT_FOUND, "no container %s", o->uuid);
    switch (o->call) {
    case LOCK:
        rc = sim_api_lock(a, c, err);
        break;
    case UNLOCK:
        rc = sim_api_unlock(a, c, err);
        break;
    case ATTEMPT:
        rc = sim_api_attempt(a, c, err);
        break;
    case REVOKE:
        rc = sim_api_revoke(a, c, err);
        break;
    case UPDATE:
        rc = sim_api_update(a, c, &o->update, err);
        break;
    default:
        break;
    }
    answer_ctr(o, c);
    text_copy(o->token, c->token, sizeof o->token);
    return rc;
}

static void call_effect(struct op *op)
{
    struct call_op *o = (struct call_op *) op;
    struct sim_api *a = o->a;
    struct op_result r = {.outcome = OP_DONE};

    if (op->w->now_us < a->down_until_us) {
        op_fail_in(op, 1, OP_REFUSED, ERR_TRANSIENT, 0, "connection refused");
        return;
    }
    if (o->mishap == BUSY) {
        op_fail_in(op, latency(a), OP_REFUSED, ERR_RATE_LIMITED,
                   sim_rng_range(&a->rng, 500, 4000), "503");
        return;
    }
    if (o->mishap != LOST_REQUEST) {
        if (o->call == LIST)
            commit_list(o);
        else if (o->call != WHOAMI && commit_ctr(o, &r.err) != 0)
            r.outcome = OP_REFUSED;
        sim_trace(op->w, "%s %s committed%s%s", op->what, o->uuid,
                  r.outcome == OP_DONE ? "" : " not: ",
                  r.outcome == OP_DONE ? "" : r.err.text);
    }
    if (o->mishap == LOST_REQUEST || o->mishap == LOST_REPLY)
        op_fail_in(op, latency(a), OP_UNKNOWN, ERR_TRANSIENT, 0,
                   "connection lost");
    else
        op_reply_in(op, latency(a), &r);
}

/* --- requests -------------------------------------------------------- */

static void call_fini(struct op *op)
{
    struct call_op *o = (struct call_op *) op;

    for (size_t i = 0; i < o->uuids.n; i++)
        free(o->uuids.v[i]);
    VEC_FINI(&o->uuids);
    VEC_FINI(&o->page);
    free(o->error);
}

static struct call_op *call_new(struct api_port *port, enum call call,
                                const char *uuid, void *arg)
{
    struct sim_api *a = port->impl;
    struct call_op *o = op_new(a->w, sizeof *o, call_names[call]);

    o->a = a;
    o->call = call;
    o->arg = arg;
    if (uuid)
        text_copy(o->uuid, uuid, sizeof o->uuid);
    o->op.writes = call >= LOCK;
    o->op.effect = call_effect;
    o->op.fire = call_fire;
    o->op.fini = call_fini;
    return o;
}

static enum mishap draw_mishap(struct sim *w)
{
    if (sim_fault(w, SIM_FAULT_API_BUSY))
        return BUSY;
    if (sim_fault(w, SIM_FAULT_API_LOST_REQUEST))
        return LOST_REQUEST;
    if (sim_fault(w, SIM_FAULT_API_LOST_REPLY))
        return LOST_REPLY;
    return NO_MISHAP;
}

/* Put the request on its way. */
static struct op *call_send(struct call_op *o, int64_t deadline_ms)
{
    struct sim_api *a = o->a;
    struct sim *w = a->w;
    int64_t delay = latency(a);

    if (w->crashing) {
        op_effect_in(&o->op, 0);
        return &o->op;
    }
    o->mishap = draw_mishap(w);
    if (deadline_ms > 0 && sim_fault(w, SIM_FAULT_API_SLOW)) {
        delay = deadline_ms * SIM_MS + sim_rng_range(&a->rng, 0, 5 * SIM_S);
        if (a->stalled_until_us < w->now_us + delay)
            a->stalled_until_us = w->now_us + delay;
    }
    if (w->now_us + delay < a->stalled_until_us)
        delay = a->stalled_until_us - w->now_us;
    sim_trace(w, "%s %s sent", o->op.what, o->uuid);
    op_effect_in(&o->op, delay);
    op_deadline(&o->op, deadline_ms);
    return &o->op;
}

static struct op *whoami(struct api_port *port, int64_t deadline_ms,
                         void (*cb)(void *, const struct api_whoami_result *),
                         void *arg)
{
    struct call_op *o = call_new(port, WHOAMI, NULL, arg);

    o->cb.whoami = cb;
    return call_send(o, deadline_ms);
}

static struct op *list(struct api_port *port, const struct api_list_req *req,
                       void (*cb)(void *, const struct api_list_result *),
                       void *arg)
{
    struct call_op *o = call_new(port, LIST, NULL, arg);

    o->cb.list = cb;
    o->list = *req;
    if (req->after)
        o->after = *req->after;
    if (req->which == API_LIST_UUIDS)
        for (size_t i = 0; i < req->n_uuids; i++)
            VEC_PUSH(&o->uuids, mem_strdup(req->uuids[i]));
    return call_send(o, req->deadline_ms);
}

static struct op *ctr_call(struct api_port *port, enum call call,
                           const char *uuid, int64_t deadline_ms,
                           void (*cb)(void *, const struct api_ctr_result *),
                           void *arg)
{
    struct call_op *o = call_new(port, call, uuid, arg);

    o->cb.ctr = cb;
    return call_send(o, deadline_ms);
}

static struct op *get(struct api_port *port, const char *uuid,
                      int64_t deadline_ms,
                      void (*cb)(void *, const struct api_ctr_result *),
                      void *arg)
{
    return ctr_call(port, GET, uuid, deadline_ms, cb, arg);
}

static struct op *lock(struct api_port *port, const char *uuid,
                       int64_t deadline_ms,
                       void (*cb)(void *, const struct api_ctr_result *),
                       void *arg)
{
    return ctr_call(port, LOCK, uuid, deadline_ms, cb, arg);
}

static struct op *unlock(struct api_port *port, const char *uuid,
                         int64_t deadline_ms,
                         void (*cb)(void *, const struct api_ctr_result *),
                         void *arg)
{
    return ctr_call(port, UNLOCK, uuid, deadline_ms, cb, arg);
}

static struct op *attempt(struct api_port *port, const char *uuid,
                          int64_t deadline_ms,
                          void (*cb)(void *, const struct api_attempt_result *),
                          void *arg)
{
    struct call_op *o = call_new(port, ATTEMPT, uuid, arg);

    o->cb.attempt = cb;
    return call_send(o, deadline_ms);
}

static struct op *revoke(struct api_port *port, const char *uuid,
                         int64_t deadline_ms,
                         void (*cb)(void *, const struct op_result *),
                         void *arg)
{
    struct call_op *o = call_new(port, REVOKE, uuid, arg);
    struct sim_ctr *c = sim_api_find(o->a, uuid);

    if (c && !o->op.w->crashing)
        check_revoke_call(o->op.w, c);
    o->cb.plain = cb;
    return call_send(o, deadline_ms);
}

static struct op *update(struct api_port *port,
                         const struct api_update_req *req,
                         void (*cb)(void *, const struct api_ctr_result *),
                         void *arg)
{
    struct call_op *o = call_new(port, UPDATE, req->uuid, arg);

    o->cb.ctr = cb;
    o->update = *req;
    o->error = mem_strdup(req->error);
    o->update.error = o->error;
    o->update.uuid = o->uuid;
    return call_send(o, req->deadline_ms);
}

/* --- the feed -------------------------------------------------------- */

static void feed_fire(struct op *op, const struct op_result *r)
{
    struct sim_feed_op *f = (struct sim_feed_op *) op;
    struct sim_api *a = f->a;
    const char *uuids[FEED_ITEMS];
    char epoch[24];
    struct api_feed_result res = {.r = *r, .uuids = uuids, .resync = f->resync};

    if (a->cursor - f->since > FEED_RING)
        res.resync = true;
    res.cursor = res.resync ? a->cursor : f->since;
    while (res.cursor < a->cursor && res.n < FEED_ITEMS)
        uuids[res.n++] = a->changes.v[res.cursor++]->rec.uuid;
    res.more = res.cursor < a->cursor;
    snprintf(epoch, sizeof epoch, "e%" PRId64, a->epoch);
    res.epoch = epoch;
    sim_trace(op->w, "api feed => %s, %zu items%s",
              r->outcome == OP_DONE ? "done" : "not done", res.n,
              res.resync ? ", resync" : "");
    f->cb(f->arg, &res);
}

static void feed_flush(struct sim_api *a)
{
    for (size_t i = 0; i < a->waiting.n; i++) {
        struct sim_feed_op *f = a->waiting.v[i];

        f->waits = false;
        op_done_in(&f->op, latency(a));
        op_drop(&f->op);
    }
    VEC_CLEAR(&a->waiting);
}

void sim_api_changed(struct sim_api *a, struct sim_ctr *c)
{
    VEC_PUSH(&a->changes, c);
    a->cursor++;
    feed_flush(a);
}

static void feed_remove(struct sim_feed_op *f)
{
    struct sim_api *a = f->a;

    for (size_t i = 0; f->waits && i < a->waiting.n; i++) {
        if (a->waiting.v[i] == f) {
            VEC_REMOVE(&a->waiting, i);
            f->waits = false;
            op_drop(&f->op);
        }
    }
}

static void feed_expire(void *arg)
{
    struct sim_feed_op *f = arg;

    if (f->waits) {
        op_done_in(&f->op, latency(f->a));
        feed_remove(f);
    }
    op_drop(&f->op);
}

static void feed_effect(struct op *op)
{
    struct sim_feed_op *f = (struct sim_feed_op *) op;
    struct sim_api *a = f->a;
    char epoch[24];

    if (op->gen != op->w->gen)
        return;
    if (op->w->now_us < a->down_until_us) {
        op_fail_in(op, 1, OP_REFUSED, ERR_TRANSIENT, 0, "connection refused");
        return;
    }
    if (sim_fault(op->w, SIM_FAULT_FEED_RESYNC))
        a->epoch++;
    snprintf(epoch, sizeof epoch, "e%" PRId64, a->epoch);
    if (!*f->epoch)
        f->since = a->cursor;
    else if (strcmp(f->epoch, epoch) != 0)
        f->resync = true;
    if (f->since < 0 || f->since > a->cursor) {
        f->since = a->cursor;
        f->resync = true;
    }
    if (f->resync || f->since < a->cursor) {
        op_done_in(op, latency(a));
        return;
    }
    f->waits = true;
    op->effected = false; /* a cancel ends it as long as it waits */
    op_hold(op);
    VEC_PUSH(&a->waiting, f);
    op_hold(op);
    sim_at(op->w, f->wait_us, feed_expire, f);
}

static struct op *feed(struct api_port *port, const char *epoch, int64_t cursor,
                       int64_t wait_ms,
                       void (*cb)(void *, const struct api_feed_result *),
                       void *arg)
{
    struct sim_api *a = port->impl;
    struct sim_feed_op *f = op_new(a->w, sizeof *f, "api feed");

    f->a = a;
    f->since = cursor;
    f->wait_us = wait_ms * SIM_MS;
    f->cb = cb;
    f->arg = arg;
    text_copy(f->epoch, epoch, sizeof f->epoch);
    f->op.effect = feed_effect;
    f->op.fire = feed_fire;
    op_effect_in(&f->op, a->w->crashing ? 0 : latency(a));
    return &f->op;
}

void sim_api_down(struct sim_api *a, int64_t for_us)
{
    sim_fault_note(a->w, SIM_FAULT_API_DOWN);
    a->down_until_us = a->w->now_us + for_us;
    while (a->waiting.n > 0) {
        struct sim_feed_op *f = a->waiting.v[0];

        op_fail_in(&f->op, 1, OP_UNKNOWN, ERR_TRANSIENT, 0, "connection reset");
        feed_remove(f);
    }
}

static void port_cancel(struct api_port *port, struct op *op)
{
    (void) port;
    op_cancel(op);
}

void sim_api_port_init(struct sim_api *a)
{
    a->port = (struct api_port){
        .whoami = whoami,
        .list = list,
        .get = get,
        .lock = lock,
        .unlock = unlock,
        .attempt = attempt,
        .revoke = revoke,
        .update = update,
        .feed = feed,
        .op_cancel = port_cancel,
        .impl = a,
    };
}
