/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a cloud tells about one instance.
 *
 * The first time in this process that a list or the result of a create names
 * it, it is adopted: its tags say what it is for (type, idle behaviour, the
 * token of its create); if a create of ours is waiting for it, it is booting,
 * else it was found and has to be looked at. Every later time its record is
 * brought up to date: an address may have come, its tags may have been edited.
 *
 * An instance with our set id whose type we do not know is drained, never
 * ignored: somebody pays for it.
 *
 * Called by lists.c and creates.c. Loop thread only.
 */

#include <stdlib.h>
#include <string.h>

#include "core/base/logger.h"
#include "core/dispatch/creates.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/worker.h"
#include "core/port/cloud.h"

static const char *own_tag(const struct dispatch *d,
                           const struct cloud_instance *i, const char *name)
{
    char key[128];

    return pool_tag_of(i, pool_tag_name(d, name, key));
}

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
        pool_set_type(w, own_tag(d, i, "InstanceType"));
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
        if (w->state < WORKER_SHUTDOWN) { /* told once */
            log_failure(w->d->lg, LOG_WARN, &i->err, "instance failed",
                        "Instance", w->id, NULL);
            create_failed_later(w, &i->err);
        }
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
        w = pool_add(b, i->id);
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
