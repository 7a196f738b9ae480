/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tags: what an instance says about itself to whoever finds it.
 *
 * Ours are written at the create and kept true afterwards: what we hold in
 * memory is authoritative (idle behaviour, type, token), what the cloud lists
 * may lag behind or may have been edited away. Tags that we do not know are
 * kept. Set-tags replaces everything, so the whole set is sent.
 *
 * Loop thread only.
 */

#include <string.h>

#include "core/base/logger.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/stats.h"
#include "core/dispatch/tags.h"
#include "core/dispatch/worker.h"
#include "core/model/dispatch_cfg.h"
#include "core/port/cloud.h"

static const char *behavior_label(enum dispatch_behavior b)
{
    static const char *const labels[] = {"run", "hold", "drain"};

    return labels[b];
}

void tags_put(struct tags *t, const char *key, const char *value)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->v[i].key, key) == 0) {
            t->v[i].value = value;
            return;
        }
    if (t->n < TAGS_MAX)
        t->v[t->n++] = (struct cloud_tag) {key, value};
}

void tags_ours(struct tags *t, const struct dispatch *d,
               const struct tags_values *v)
{
    const struct {
        const char *name, *value;
    } own[TAGS_OWN] = {
        {"InstanceSetID", d->cfg->instance_set_id},
        {"InstanceType", v->type_name},
        {"IdleBehavior", behavior_label(v->behavior)},
        {"InstanceSecret", v->secret},
        {"CreateToken", v->token},
        {"Backend", v->backend},
    };

    for (unsigned i = 0; i < d->cfg->n_tags; i++)
        tags_put(t, d->cfg->tags[i].key, d->cfg->tags[i].value);
    for (unsigned i = 0; i < TAGS_OWN; i++)
        if (own[i].value[0] != '\0')
            tags_put(t, pool_tag_name(d, own[i].name, t->key[i]),
                     own[i].value);
}

static void wanted_tags(struct tags *t, const struct worker *w)
{
    struct tags_values v = {
        .type_name = w->type_name,
        .behavior = w->behavior,
        .secret = w->secret,
        .token = w->token,
        .backend = w->b->cfg->name,
    };

    t->n = 0;
    for (size_t i = 0; i < w->tags.n; i++)
        tags_put(t, w->tags.v[i].key, w->tags.v[i].value);
    tags_ours(t, w->d, &v);
}

static bool same(const struct tags *t, const struct worker *w)
{
    if (t->n != w->tags.n)
        return false;
    /* The listed ones come first in t, in their order. */
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->v[i].value, w->tags.v[i].value) != 0)
            return false;
    return true;
}

static void on_timer(void *arg)
{
    pool_fix_tags(arg);
}

static void on_tagged(void *arg, const struct op_result *r)
{
    struct worker *w = arg;
    struct dispatch *d = w->d;
    int64_t now = core_now(d);

    core_op_end(d);
    stats_cloud_op(d, "SetTags", r->outcome != OP_DONE);
    w->tags_in_flight = false;
    if (worker_unref(w))
        return;
    if (r->outcome == OP_DONE) {
        /* Lists may lag behind: give them time before writing again. */
        holdoff_clear(&w->tags_hold);
        w->tags_hold.until_us = now + 2 * d->cfg->sync_ms * 1000;
        pool_list_soon(w->b);
    } else {
        log_failure(d->lg, LOG_WARN, &r->err, "cannot tag instance",
                    "Instance", w->id, NULL);
        holdoff_hit(&w->tags_hold, &r->err, now, core_random(d));
    }
    deadline_set(d->deadlines, &w->tags_timer, w->tags_hold.until_us,
                 on_timer, w);
}

void pool_fix_tags(struct worker *w)
{
    struct dispatch *d = w->d;
    struct cloud_port *c = w->b->cloud;
    int64_t now = core_now(d), next = 0;
    struct tags t;

    if (w->dead || w->tags_in_flight || !w->listed || !core_acts(d) ||
        w->state >= WORKER_SHUTDOWN || !(c->caps & CLOUD_CAP_SET_TAGS))
        return;
    wanted_tags(&t, w);
    if (same(&t, w)) {
        w->tags_hold.until_us = 0;
        deadline_stop(d->deadlines, &w->tags_timer);
        return;
    }
    /* A change of ours is written at once; a lagging list is borne with. */
    if (w->tags_behavior != w->behavior)
        w->tags_hold.until_us = 0;
    if (now < w->tags_hold.until_us || !pace_take(&w->b->pace, now, &next)) {
        deadline_set(d->deadlines, &w->tags_timer,
                     next > 0 ? next : w->tags_hold.until_us, on_timer, w);
        return;
    }
    w->tags_behavior = w->behavior;
    w->tags_in_flight = true;
    worker_ref(w);
    core_op_begin(d);
    c->set_tags(c, w->id, t.v, t.n, d->cfg->cloud_deadline_ms, on_tagged, w);
}
