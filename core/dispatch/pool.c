/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The books: every instance and every create under way.
 *
 * An instance enters when a cloud tells of it (adopt.c), or when the journal
 * does after a restart; it leaves when it is confirmed gone, and takes what
 * ran on it along. Its record in the journal lives exactly as long, so that a
 * restart knows where processes may be even before a cloud has answered.
 *
 * Lists, and what an absence means, are in lists.c; creates in creates.c;
 * ending in destroy.c; tags in tags.c. Loop thread only.
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
#include "core/dispatch/qent.h"
#include "core/dispatch/reconcile.h"
#include "core/dispatch/run.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/worker.h"
#include "core/model/itypes.h"
#include "core/port/cloud.h"

enum { SECOND_US = 1000000 };

/* Take the n-th token from now on; only the first may be there. */
static bool take(struct pace *p, int n, int64_t now_us, int64_t *ret_next_us)
{
    if (p->per_s <= 0)
        return true;
    int64_t cost = SECOND_US / p->per_s;

    p->credit_us += p->last_us ? now_us - p->last_us : SECOND_US;
    if (p->credit_us > SECOND_US)
        p->credit_us = SECOND_US;
    p->last_us = now_us;
    if (p->credit_us < n * cost) {
        *ret_next_us = now_us + n * cost - p->credit_us;
        return false;
    }
    p->credit_us -= cost;
    return true;
}

bool pace_take(struct pace *p, int64_t now_us, int64_t *ret_next_us)
{
    return take(p, p->claimed ? 2 : 1, now_us, ret_next_us);
}

bool pace_take_first(struct pace *p, int64_t now_us, int64_t *ret_next_us)
{
    p->claimed = !take(p, 1, now_us, ret_next_us);
    return !p->claimed;
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

/* --- the record ---------------------------------------------------------- */

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

struct worker *pool_add(struct backend *b, const char *id)
{
    struct pool *p = b->d->pool;
    struct worker *w = worker_create(b, id);

    w->serial = p->next_serial++;
    map_set(p->workers, w->key, w);
    VEC_PUSH(&p->list, w);
    b->instances++;
    sched_mark(b->d);
    return w;
}

void pool_set_type(struct worker *w, const char *name)
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
    struct worker *w = pool_add(b, rec->instance);

    pool_set_type(w, rec->itype);
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

/* --- the end ------------------------------------------------------------- */

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
