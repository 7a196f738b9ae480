/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asking a cloud for an instance, so that none is ever paid for twice.
 *
 *   guard -> durable intent (CREATE record) -> call -> done | refused | unknown
 *
 * The token is the identity of the wish. Done: its instances enter the books,
 * the record goes. Refused: the scope that the error names is held off, the
 * record goes. Unknown (a time-out, a crash of ours): never a new token.
 * First look: a complete list that began after the doubt either shows the
 * token, or the same call is made again under it, if the instance is still
 * wanted; else it is dropped after enough lists and time. A create is
 * idempotent by its token, so asking again can only find or make the one
 * instance that was meant.
 *
 * While a create is open it counts as an instance, and containers are mapped
 * onto it. Loop thread only.
 */

#include "core/dispatch/creates.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/fault.h"
#include "core/base/logger.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/dispatch/runner_cmd.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/stats.h"
#include "core/dispatch/tags.h"
#include "core/dispatch/worker.h"
#include "core/model/itypes.h"
#include "core/port/cloud.h"
#include "core/port/entropy.h"

enum { INIT_MAX = 8192 };

static void create_free(struct create *c)
{
    deadline_stop(c->d->deadlines, &c->timer);
    jr_forget(c->d->jr, &c->wait);
    free(c);
}

void creates_free_all(struct pool *p)
{
    const char *key = NULL;
    struct create *c;

    while ((c = map_next(p->creates, &key)))
        create_free(c);
}

/* From when its instance is in the books, it does not count itself. */
static void uncount(struct create *c)
{
    c->b->instances -= c->counted;
    c->counted = false;
}

/* Settled. The record goes; batches keep their order, so a crash can only
 * bring it back together with what was true then. */
static void settle(struct create *c)
{
    jr_delete(c->d->jr, JOURNAL_CREATE, c->token);
    map_delete(c->d->pool->creates, c->token);
    uncount(c);
    sched_mark(c->d);
    create_free(c);
}

static struct create *add(struct backend *b, const char *token)
{
    struct dispatch *d = b->d;
    struct create *c = MEM_NEW(struct create);
    uint8_t secret[20];

    c->d = d;
    c->b = b;
    c->serial = d->pool->next_serial++;
    c->count = 1;
    c->begun_us = core_now(d);
    text_copy(c->token, token, sizeof c->token);
    d->port.entropy->bytes(d->port.entropy, secret, sizeof secret);
    text_hex(secret, sizeof secret, c->secret);
    map_set(d->pool->creates, c->token, c);
    b->instances++;
    c->counted = true;
    return c;
}

static void call(struct create *c);

static void on_intent(void *arg)
{
    struct create *c = arg;

    fault_hit(FAULT_AFTER_INTENT);
    if (core_acts(c->d))
        call(c);
}

void create_begin(struct backend *b, const struct itype *it,
                  const char *placement)
{
    struct dispatch *d = b->d;
    struct journal_rec rec = {.kind = JOURNAL_CREATE, .count = 1};
    uint8_t random[26];
    char token[28] = "c";

    d->port.entropy->bytes(d->port.entropy, random, sizeof random);
    text_base32(random, sizeof random, token + 1);
    struct create *c = add(b, token);

    c->type = it;
    text_copy(c->placement, placement, sizeof c->placement);
    d->pool->creates_in_flight++;
    c->in_flight = true;
    text_copy(rec.key, token, sizeof rec.key);
    text_copy(rec.token, token, sizeof rec.token);
    text_copy(rec.backend, b->cfg->name, sizeof rec.backend);
    text_copy(rec.itype, it->name, sizeof rec.itype);
    text_copy(rec.placement, placement, sizeof rec.placement);
    rec.at_us = core_wall(d);
    log_event(d->lg, LOG_INFO, "creating new instance", "InstanceType",
              it->name, "Backend", b->cfg->name, "CreateToken", token, NULL);
    jr_put(d->jr, &rec, &c->wait, on_intent, c);
}

void create_replay(struct backend *b, const struct journal_rec *rec)
{
    struct create *c = add(b, rec->key);

    c->type = itypes_find(&b->d->cfg->itypes, rec->itype);
    text_copy(c->placement, rec->placement, sizeof c->placement);
    c->count = rec->count > 0 ? rec->count : 1;
    c->state = CREATE_UNKNOWN;
    c->unknown_us = core_now(b->d);
}

/* --- the outcome --------------------------------------------------------- */

static void landed(struct create *c)
{
    if (!c->in_flight)
        return;
    c->in_flight = false;
    c->d->pool->creates_in_flight--;
}

static const int scopes[] = {ERR_SCOPE_TYPE, ERR_SCOPE_ZONE, ERR_SCOPE_GROUP,
                             ERR_SCOPE_MARKET, ERR_SCOPE_ACCOUNT};

static void accepted(struct create *c, const struct cloud_create_result *r)
{
    struct backend *b = c->b;
    char key[GUARD_KEY_MAX];

    for (size_t i = 0; i < MEM_COUNT(scopes); i++)
        holdoffs_clear(b->holds, guard_key(b->cloud, c->type, c->placement,
                                           scopes[i], key));
    for (size_t i = 0; i < r->n; i++) {
        struct cloud_instance one = r->v[i];

        if (one.create_token[0] == '\0')
            one.create_token = c->token;
        pool_saw(b, &one, c->called_us);
    }
    settle(c);
}

static void hold_off(struct backend *b, const struct itype *it,
                     const char *placement, const struct err *why)
{
    char key[GUARD_KEY_MAX];

    holdoffs_hit(b->holds, guard_key(b->cloud, it, placement, why->scope,
                                     key), why, core_now(b->d),
                 core_random(b->d));
    sched_wake_at(b->d, holdoffs_get(b->holds, key, core_now(b->d)));
}

static void refused(struct create *c, const struct err *why)
{
    log_failure(c->d->lg, LOG_WARN, why, "create was refused",
                "InstanceType", c->type->name, "Backend", c->b->cfg->name,
                "Scope", err_scope_label(why->scope), NULL);
    hold_off(c->b, c->type, c->placement, why);
    settle(c);
}

static void on_timer(void *arg)
{
    struct create *c = arg;

    pool_list_soon(c->b);
}

static void doubtful(struct create *c, const struct err *why)
{
    struct dispatch *d = c->d;

    log_failure(d->lg, LOG_WARN, why, "outcome of a create is unknown: "
                "looking", "CreateToken", c->token, NULL);
    c->state = CREATE_UNKNOWN;
    c->unknown_us = core_now(d);
    c->absent = 0;
    holdoff_hit(&c->hold, why, c->unknown_us, core_random(d));
    deadline_set(d->deadlines, &c->timer, c->hold.until_us, on_timer, c);
    pool_list_soon(c->b);
    if (c->seen >= c->count)
        settle(c);
}

static void on_created(void *arg, const struct cloud_create_result *r)
{
    struct create *c = arg;
    struct dispatch *d = c->d;

    core_op_end(d);
    fault_hit(FAULT_AFTER_CREATE);
    landed(c);
    sched_mark(d);
    stats_cloud_op(d, "Create", r->r.outcome != OP_DONE);
    if (!core_acts(d))
        return; /* the record stays: the next start settles it */
    if (r->r.outcome == OP_DONE && r->n > 0) {
        accepted(c, r);
    } else if (r->r.outcome == OP_REFUSED && c->seen == 0) {
        refused(c, &r->r.err);
    } else {
        doubtful(c, &r->r.err);
    }
}

static void call(struct create *c)
{
    struct dispatch *d = c->d;
    struct cloud_port *cloud = c->b->cloud;
    CLEANUP(buf_fini) struct buf init;
    struct tags t = {.n = 0};
    struct tags_values values = {
        .type_name = c->type->name, .secret = c->secret, .token = c->token,
        .backend = c->b->cfg->name, .behavior = DISPATCH_RUN};

    buf_init(&init, INIT_MAX);
    runner_cmd_init(d->cfg, c->secret, &init);
    tags_ours(&t, d, &values);
    struct cloud_create_req req = {
        .token = c->token, .count = (int32_t) c->count,
        .type_name = c->type->name, .provider_type = c->type->provider_type,
        .vcpus = c->type->vcpus, .ram = c->type->ram,
        .scratch = itype_scratch(c->type),
        .preemptible = c->type->preemptible, .price = c->type->price,
        .image = c->b->cfg->image_id, .placement = c->placement,
        .tags = t.v, .n_tags = t.n, .init_command = init.data,
        .public_key = d->cfg->public_key,
        .deadline_ms = d->cfg->cloud_deadline_ms,
    };

    c->state = CREATE_CALLING;
    c->called_us = core_now(d);
    core_op_begin(d);
    cloud->create(cloud, &req, on_created, c);
}

/* --- looking ------------------------------------------------------------- */

bool create_claim(struct worker *w)
{
    struct create *c = map_get(w->d->pool->creates, w->token);

    if (!c || c->b != w->b)
        return false;
    c->seen++;
    uncount(c);
    if (w->state == WORKER_UNKNOWN)
        w->state = WORKER_BOOTING;
    if (c->seen > c->count) {
        worker_event(w, WORKER_EV_KILL, "more than were asked for");
    } else if (c->state == CREATE_UNKNOWN && c->seen == c->count) {
        log_event(w->d->lg, LOG_INFO, "create had happened", "CreateToken",
                  c->token, "Instance", w->id, NULL);
        settle(c);
    }
    return true;
}

void create_failed_later(struct worker *w, const struct err *why)
{
    if (w->state < WORKER_SHUTDOWN && w->type && w->ready_us == 0 &&
        why->class != ERR_NONE)
        hold_off(w->b, w->type, w->placement, why);
}

/* Ask again, under the same token. */
static void repeat(struct create *c)
{
    int64_t next = 0;

    if (!pace_take(&c->b->pace, core_now(c->d), &next)) {
        deadline_set(c->d->deadlines, &c->timer, next, on_timer, c);
        return;
    }
    log_event(c->d->lg, LOG_INFO, "asking again for an instance",
              "CreateToken", c->token, NULL);
    c->d->pool->creates_in_flight++;
    c->in_flight = true;
    call(c);
}

/* The list does not show it (a shown one is settled by create_claim). */
static void not_listed(struct create *c)
{
    const struct dispatch_cfg *cfg = c->d->cfg;
    int64_t now = core_now(c->d);

    c->absent++;
    if (c->wanted && c->type && now >= c->hold.until_us &&
        core_acts_durably(c->d)) {
        repeat(c);
    } else if (!c->wanted && c->absent >= cfg->absent_lists &&
               now - c->unknown_us >= cfg->absent_grace_ms * 1000) {
        log_event(c->d->lg, LOG_INFO, "create had not happened",
                  "CreateToken", c->token, NULL);
        settle(c);
    }
}

void creates_listed(struct backend *b)
{
    const char *key = NULL;
    char last[28] = "";
    struct create *c;

    while ((c = map_next(b->d->pool->creates, &key))) {
        text_copy(last, c->token, sizeof last);
        key = last; /* c may be settled */
        if (c->b == b && c->state == CREATE_UNKNOWN &&
            b->list_us >= c->unknown_us)
            not_listed(c);
    }
}

bool creates_unsettled(const struct backend *b)
{
    const char *key = NULL;
    const struct create *c;

    while ((c = map_next(b->d->pool->creates, &key)))
        if (c->b == b && c->state == CREATE_UNKNOWN)
            return true;
    return false;
}
