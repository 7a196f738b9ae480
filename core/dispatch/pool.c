/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All instances: opening clouds, adopting, forgetting, ending, tagging.
 *
 * An instance enters the books when a cloud tells of it (as the result of a
 * create, or in a list) or when the journal does after a restart; it leaves
 * them when it is confirmed gone. Between the two, what the cloud says
 * updates the record, and our own idea of its tags is written back where the
 * cloud's differs. An instance with our set id whose type we do not know is
 * drained, never ignored: somebody pays for it.
 *
 * Lists, and what an absence means, are in lists.c; creates in creates.c.
 * Loop thread only.
 */

#include "core/dispatch/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/logger.h"
#include "core/base/map.h"
#include "core/base/text.h"
#include "core/dispatch/cqueue.h"
#include "core/dispatch/creates.h"
#include "core/dispatch/lists.h"
#include "core/dispatch/run.h"
#include "core/dispatch/qent.h"
#include "core/dispatch/reconcile.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/stats.h"
#include "core/dispatch/worker.h"
#include "core/model/itypes.h"
#include "core/port/cloud.h"

bool pace_take(struct pace *p, int64_t now_us, int64_t *ret_next_us)
{
    enum { SECOND_US = 1000000 };

    if (p->per_s <= 0)
        return true;
    int64_t cost = SECOND_US / p->per_s;

    p->credit_us += p->last_us ? now_us - p->last_us : SECOND_US;
    if (p->credit_us > SECOND_US)
        p->credit_us = SECOND_US;
    p->last_us = now_us;
    if (p->credit_us < cost) {
        *ret_next_us = now_us + cost - p->credit_us;
        return false;
    }
    p->credit_us -= cost;
    return true;
}

const char *pool_tag_name(const struct dispatch *d, const char *name,
                          char out[128])
{
    snprintf(out, 128, "%s%s", d->cfg->tag_prefix, name);
    return out;
}

const char *pool_tag_of(const struct cloud_instance *i, const char *key)
{
    for (size_t k = 0; k < i->n_tags; k++)
        if (strcmp(i->tags[k].key, key) == 0)
            return i->tags[k].value;
    return "";
}

static const char *own_tag(const struct dispatch *d,
                           const struct cloud_instance *i, const char *name)
{
    char key[128];

    return pool_tag_of(i, pool_tag_name(d, name, key));
}

struct pool *pool_create(struct dispatch *d)
{
    struct pool *p = MEM_NEW(struct pool);

    p->d = d;
    p->n = d->cfg->n_backends;
    p->b = mem_calloc(p->n, sizeof *p->b);
    p->workers = map_create(NULL);
    p->creates = map_create(NULL);
    p->buried = map_create(NULL);
    p->next_serial = 1;
    p->probes.per_s = d->cfg->max_probes_per_s;
    for (size_t i = 0; i < p->n; i++) {
        p->b[i].d = d;
        p->b[i].cloud = d->port.clouds[i];
        p->b[i].cfg = &d->cfg->backends[i];
        p->b[i].holds = holdoffs_create();
        p->b[i].pace.per_s = d->cfg->max_cloud_ops_per_s;
    }
    return p;
}

static void free_runs(struct worker *w)
{
    while (w->runs.n > 0)
        run_free(w->runs.v[--w->runs.n]);
}

void pool_destroy(struct pool *p)
{
    const char *key = NULL;
    struct worker *w;

    if (!p)
        return;
    while ((w = map_next(p->workers, &key))) {
        free_runs(w);
        worker_free(w);
    }
    for (key = NULL; (w = map_next(p->buried, &key));)
        worker_free(w);
    run_free_limbo(p);
    creates_free_all(p);
    VEC_FINI(&p->list);
    map_destroy(p->workers);
    map_destroy(p->buried);
    map_destroy(p->creates);
    for (size_t i = 0; i < p->n; i++) {
        holdoffs_destroy(p->b[i].holds);
        deadline_stop(p->d->deadlines, &p->b[i].timer);
    }
    free(p->b);
    free(p);
}

struct worker *pool_find(struct pool *p, const char *backend, const char *id)
{
    CLEANUP(mem_free) char *key = mem_printf("%s/%s", backend, id);

    return map_get(p->workers, key);
}

/* Where the first instance with a serial not below this one is. */
static size_t index_of(const struct pool *p, uint64_t serial)
{
    size_t lo = 0, hi = p->list.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (p->list.v[mid]->serial < serial)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct worker *pool_by_serial(struct pool *p, uint64_t serial)
{
    size_t i = index_of(p, serial);

    return i < p->list.n && p->list.v[i]->serial == serial ? p->list.v[i]
                                                           : NULL;
}

void pool_guard_view(const struct backend *b, struct guard_backend *ret)
{
    *ret = (struct guard_backend) {
        .cloud = b->cloud,
        .cfg = b->cfg,
        .holds = b->holds,
        .open = b->open,
        .listed = b->listed_us > 0,
        .instances = b->instances,
    };
}

bool pool_all_known(const struct pool *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->b[i].listed_us == 0)
            return false;
    for (size_t i = 0; i < p->list.n; i++)
        if (p->list.v[i]->state == WORKER_UNKNOWN &&
            p->list.v[i]->looked_us == 0)
            return false;
    return true;
}

/* --- the record ------------------------------------------------------------- */

void pool_record(struct worker *w)
{
    struct journal_rec rec = {.kind = JOURNAL_INSTANCE};

    text_copy(rec.key, w->key, sizeof rec.key);
    text_copy(rec.backend, w->b->cfg->name, sizeof rec.backend);
    text_copy(rec.instance, w->id, sizeof rec.instance);
    text_copy(rec.itype, w->type_name, sizeof rec.itype);
    text_copy(rec.token, w->token, sizeof rec.token);
    /* A key that was cut off would never match again. */
    if (strlen(w->pinned) < sizeof rec.hostkey)
        text_copy(rec.hostkey, w->pinned, sizeof rec.hostkey);
    rec.at_us = w->created_wall_us;
    jr_put(w->d->jr, &rec, NULL, NULL, NULL);
}

static struct worker *add(struct backend *b, const char *id,
                          enum worker_state state)
{
    struct pool *p = b->d->pool;
    struct worker *w = worker_create(b, id);

    w->serial = p->next_serial++;
    w->state = state;
    map_set(p->workers, w->key, w);
    VEC_PUSH(&p->list, w);
    b->instances++;
    sched_mark(b->d);
    return w;
}

static void set_type(struct worker *w, const char *name)
{
    mem_set_str(&w->type_name, name);
    w->type = itypes_find(&w->d->cfg->itypes, name);
    if (w->type && w->price < 0)
        w->price = w->type->price;
}

static struct backend *backend_named(struct pool *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->b[i].cfg->name, name) == 0)
            return &p->b[i];
    return NULL;
}

static void replay_instance(struct backend *b, const struct journal_rec *rec)
{
    struct worker *w = add(b, rec->instance, WORKER_UNKNOWN);

    set_type(w, rec->itype);
    mem_set_str(&w->token, rec->token);
    mem_set_str(&w->pinned, rec->hostkey);
    w->created_wall_us = rec->at_us;
    w->instance_rec = true;
    worker_runs_changed(w);
}

/* A start command may have reached, or may still reach, this instance. */
static void replay_start(struct pool *p, const struct journal_rec *rec)
{
    struct worker *w = pool_find(p, rec->backend, rec->instance);

    if (!w) {
        /* Its instance record is deleted only when it is gone. */
        jr_delete(p->d->jr, JOURNAL_START, rec->key);
        return;
    }
    struct run *r = run_create(w, rec->uuid, rec->attempt);

    /* As good as one whose start command was just sent: nobody has looked. */
    r->state = RUN_SENT;
    r->intent = true;
    run_bind(r, cqueue_need(p->d->queue, rec->uuid));
    worker_runs_changed(w);
}

void pool_replay(struct pool *p, const struct journal_rec *rec)
{
    struct backend *b = backend_named(p, rec->backend);

    if (!b) {
        log_event(p->d->lg, LOG_WARN, "journal names a backend that is not "
                  "configured", "Backend", rec->backend, "Instance",
                  rec->instance, NULL);
        return;
    }
    if (rec->kind == JOURNAL_INSTANCE)
        replay_instance(b, rec);
    else if (rec->kind == JOURNAL_START)
        replay_start(p, rec);
    else
        create_replay(b, rec);
}

/* --- what a cloud tells ------------------------------------------------------- */

static void copy_tags(struct worker *w, const struct cloud_instance *i)
{
    for (size_t k = 0; k < w->tags.n; k++) {
        free(w->tags.v[k].key);
        free(w->tags.v[k].value);
    }
    VEC_CLEAR(&w->tags);
    for (size_t k = 0; k < i->n_tags; k++)
        VEC_PUSH(&w->tags, (struct worker_tag) {
            mem_strdup(i->tags[k].key), mem_strdup(i->tags[k].value)});
}

static bool tags_same(const struct worker *w, const struct cloud_instance *i)
{
    if (w->tags.n != i->n_tags)
        return false;
    for (size_t k = 0; k < i->n_tags; k++)
        if (strcmp(w->tags.v[k].key, i->tags[k].key) != 0 ||
            strcmp(w->tags.v[k].value, i->tags[k].value) != 0)
            return false;
    return true;
}

/* Where to reach it; a change ends the present session. */
static void set_address(struct worker *w, const struct cloud_instance *i)
{
    bool same = strcmp(w->address, i->address) == 0 && w->port == i->port;

    if (i->address[0] == '\0' || same)
        return;
    if (w->address[0] != '\0')
        session_close(w, "its address changed");
    mem_set_str(&w->address, i->address);
    w->port = i->port;
    w->link_hold = (struct holdoff) {0};
}

static void set_str(char **slot, const char *s)
{
    if (s[0] != '\0' && strcmp(*slot, s) != 0)
        mem_set_str(slot, s);
}

static void update(struct worker *w, const struct cloud_instance *i)
{
    set_str(&w->name, i->name);
    set_str(&w->user, i->user);
    set_str(&w->placement, i->placement);
    set_str(&w->listed_key, i->host_key ? i->host_key : "");
    set_str(&w->token, i->create_token);
    set_str(&w->secret, own_tag(w->d, i, "InstanceSecret"));
    if (!tags_same(w, i))
        copy_tags(w, i);
    w->member = i->member;
    if (i->price >= 0)
        w->price = i->price;
    set_address(w, i);
}

/* What its tags say about an instance that we did not know. */
static void adopt(struct worker *w, const struct cloud_instance *i)
{
    struct dispatch *d = w->d;
    const char *behavior = own_tag(d, i, "IdleBehavior");

    if (w->type_name[0] == '\0')
        set_type(w, own_tag(d, i, "InstanceType"));
    if (w->token[0] == '\0')
        set_str(&w->token, own_tag(d, i, "CreateToken"));
    if (strcmp(behavior, "hold") == 0)
        w->behavior = DISPATCH_HOLD;
    else if (strcmp(behavior, "drain") == 0)
        w->behavior = DISPATCH_DRAIN;
    else if (!w->type)
        worker_set_behavior(w, DISPATCH_DRAIN,
                            "its instance type is not configured");
    if (w->behavior == DISPATCH_DRAIN && !w->why_down)
        mem_set_str(&w->why_down, "drained before a restart");
}

/* The state that the cloud reports. */
static void obey(struct worker *w, const struct cloud_instance *i)
{
    switch (i->state) {
    case CLOUD_GONE:
        worker_event(w, WORKER_EV_ABSENT, NULL);
        return;
    case CLOUD_FAILED:
        log_failure(w->d->lg, LOG_WARN, &i->err, "instance failed",
                    "Instance", w->id, NULL);
        create_failed_later(w, &i->err);
        worker_event(w, WORKER_EV_FAILED, "it failed to start");
        return;
    case CLOUD_STOPPING:
        worker_event(w, WORKER_EV_FAILED, "the cloud is stopping it");
        return;
    default:
        session_want(w);
        pool_fix_tags(w);
        if (!deadline_armed(&w->destroy_timer))
            pool_destroy_instance(w); /* if that was decided */
    }
}

void pool_saw(struct backend *b, const struct cloud_instance *i,
              int64_t start_us)
{
    struct dispatch *d = b->d;
    struct worker *w = pool_find(d->pool, b->cfg->name, i->id);
    bool fresh = !w || !w->listed;

    if (!w && i->state == CLOUD_GONE)
        return;
    if (!w)
        w = add(b, i->id, WORKER_UNKNOWN);
    update(w, i);
    if (fresh) {
        adopt(w, i);
        bool ours = create_claim(w);

        worker_listed(w);
        worker_log(w, LOG_INFO, ours ? "instance appeared"
                                     : "instance adopted", NULL);
        if (!w->instance_rec) {
            w->instance_rec = true;
            pool_record(w);
        }
        worker_runs_changed(w);
    }
    if (start_us > w->seen_us)
        w->seen_us = start_us;
    w->absent = 0;
    obey(w, i); /* may end w */
}

/* --- the end ------------------------------------------------------------------ */

static void run_instance_gone(struct run *r)
{
    struct qent *q = r->q;
    bool was_sent = r->state != RUN_PREPARING;
    bool superseded = q && r->attempt > 0 && r->attempt < q->c.attempt;

    if (!q || !was_sent || superseded) {
        run_end(r);
        return;
    }
    reconcile_instance_lost(q);
    run_vanished(r, "its instance is gone");
}

void pool_remove(struct worker *w)
{
    struct pool *p = w->d->pool;

    while (w->runs.n > 0)
        run_instance_gone(w->runs.v[w->runs.n - 1]);
    jr_delete(w->d->jr, JOURNAL_INSTANCE, w->key);
    map_delete(p->workers, w->key);
    VEC_REMOVE(&p->list, index_of(p, w->serial));
    w->b->instances--;
    holdoffs_relent(w->b->holds, ERR_QUOTA, core_now(w->d));
    sched_mark(w->d);
    w->dead = true;
    boot_reset(w);
    if (w->refs == 0) {
        worker_free(w);
        return;
    }
    /* Keys may come again (never for one id, but who knows). */
    CLEANUP(mem_free) char *key = mem_printf("%s %020llu", w->key,
                                             (unsigned long long) w->serial);

    map_set(p->buried, key, w);
}

void pool_bury(struct worker *w)
{
    CLEANUP(mem_free) char *key = mem_printf("%s %020llu", w->key,
                                             (unsigned long long) w->serial);

    map_delete(w->d->pool->buried, key);
    worker_free(w);
}

static void on_destroy_timer(void *arg)
{
    pool_destroy_instance(arg);
}

static void on_destroyed(void *arg, const struct op_result *r)
{
    struct worker *w = arg;
    struct dispatch *d = w->d;

    core_op_end(d);
    stats_cloud_op(d, "Destroy", r->outcome != OP_DONE);
    w->destroy_in_flight = false;
    if (worker_unref(w))
        return;
    int64_t now = core_now(d);

    if (r->outcome == OP_DONE) {
        w->destroyed = true;
        w->destroy_us = now;
        w->destroy_hold.until_us = now + d->cfg->timeout_shutdown_ms * 1000;
        w->b->list_fast = 0;
        pool_list_soon(w->b);
    } else {
        log_failure(d->lg, LOG_WARN, &r->err, "cannot destroy instance",
                    "Instance", w->id, NULL);
        holdoff_hit(&w->destroy_hold, &r->err, now, core_random(d));
    }
    deadline_set(d->deadlines, &w->destroy_timer, w->destroy_hold.until_us,
                 on_destroy_timer, w);
}

enum { NOT_OPEN_US = 1000000 };

/* Ask for it now, and again each time it is due, until the instance is
 * confirmed gone. */
void pool_destroy_instance(struct worker *w)
{
    struct dispatch *d = w->d;
    struct cloud_port *c = w->b->cloud;
    int64_t now = core_now(d), next = 0;

    if (w->destroy_in_flight || w->dead || w->state != WORKER_SHUTDOWN ||
        !core_acts(d))
        return;
    if (!w->b->open)
        next = now + NOT_OPEN_US;
    else if (now < w->destroy_hold.until_us)
        next = w->destroy_hold.until_us;
    else if (!pace_take(&w->b->pace, now, &next))
        ; /* next says when */
    else
        next = 0;
    if (next > 0) {
        deadline_set(d->deadlines, &w->destroy_timer, next, on_destroy_timer,
                     w);
        return;
    }
    w->destroy_in_flight = true;
    worker_ref(w);
    core_op_begin(d);
    c->destroy(c, w->id, d->cfg->cloud_deadline_ms, on_destroyed, w);
}

void pool_start(struct pool *p)
{
    for (size_t i = 0; i < p->n; i++)
        lists_open(&p->b[i]);
}

void pool_stop(struct pool *p)
{
    const char *key = NULL;
    struct worker *w;

    while ((w = map_next(p->workers, &key)))
        watch_stop(w);
}
