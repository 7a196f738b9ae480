/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of the management API. Field names are those of Arvados'
 * dispatcher (doc.arvados.org, "Cloud dispatcher management API"; its code
 * sends instance_types as a list, so do we, and instance_type = the first of
 * them for older scripts). Fields of ours come after: backend, reason,
 * created_at; process and instance of a container.
 *
 * Called on the loop thread with a buffer of bounded size; only reads.
 */
#include "core/dispatcher/view.h"

#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/dispatch/dispatch.h"
#include "core/model/ctr.h"

static void put_time(struct jsn_w *w, const char *key, int64_t us)
{
    /* The zero time of Arvados' own dispatcher, which clients compare with. */
    if (us)
        jsn_w_time(w, key, us);
    else
        jsn_w_str(w, key, "0001-01-01T00:00:00Z");
}

/* --- instances --------------------------------------------------------------- */

static void put_instance(void *arg, const struct dispatch_instance *i)
{
    struct jsn_w *w = arg;

    jsn_w_obj(w, NULL);
    jsn_w_str(w, "instance", i->id);
    jsn_w_str(w, "address", i->address);
    jsn_w_f64(w, "price", i->price);
    jsn_w_str(w, "arvados_instance_type", i->itype);
    jsn_w_str(w, "provider_instance_type", i->provider_type);
    jsn_w_str(w, "last_container_uuid", i->last_uuid);
    put_time(w, "last_busy", i->last_busy_us);
    jsn_w_arr(w, "running_container_uuids");
    for (size_t j = 0; j < i->n_running; j++)
        jsn_w_str(w, NULL, i->running[j]);
    jsn_w_end_arr(w);
    jsn_w_str(w, "worker_state", i->state);
    jsn_w_str(w, "idle_behavior", i->idle_behavior);
    jsn_w_str(w, "backend", i->backend);
    jsn_w_str(w, "name", i->name);
    jsn_w_str(w, "reason", i->reason);
    put_time(w, "created_at", i->created_us);
    jsn_w_end_obj(w);
}

int view_instances(struct dispatch *d, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_arr(&w, "items");
    dispatch_each_instance(d, put_instance, &w);
    jsn_w_end_arr(&w);
    jsn_w_end_obj(&w);
    return out->over ? -1 : 0;
}

/* --- containers -------------------------------------------------------------- */

static void put_record(struct jsn_w *w, const char *key, const struct ctr *c)
{
    jsn_w_obj(w, key);
    jsn_w_str(w, "uuid", c->uuid);
    jsn_w_str(w, "state", ctr_state_name(c->state));
    jsn_w_i64(w, "priority", c->priority);
    jsn_w_str(w, "locked_by_uuid", *c->locked_by ? c->locked_by : NULL);
    jsn_w_i64(w, "lock_count", c->lock_count);
    jsn_w_i64(w, "attempt", c->attempt);
    put_time(w, "created_at", c->created_us);
    jsn_w_str(w, "container_image", c->image);
    jsn_w_obj(w, "runtime_constraints");
    jsn_w_i64(w, "vcpus", c->vcpus);
    jsn_w_i64(w, "ram", c->ram);
    jsn_w_i64(w, "keep_cache_ram", c->keep_cache_ram);
    jsn_w_i64(w, "keep_cache_disk", c->keep_cache_disk);
    jsn_w_bool(w, "API", c->api);
    jsn_w_end_obj(w);
    jsn_w_obj(w, "scheduling_parameters");
    jsn_w_bool(w, "preemptible", c->preemptible);
    jsn_w_bool(w, "supervisor", c->supervisor);
    jsn_w_i64(w, "max_run_time", c->max_run_time_s);
    jsn_w_end_obj(w);
    jsn_w_end_obj(w);
}

static void put_need(struct jsn_w *w, const struct need *n)
{
    jsn_w_obj(w, "instance_resources");
    jsn_w_i64(w, "VCPUs", n->vcpus);
    jsn_w_i64(w, "RAM", n->ram);
    jsn_w_i64(w, "Scratch", n->scratch);
    jsn_w_i64(w, "GPUs", n->gpus);
    jsn_w_i64(w, "GPUVRAM", n->vram);
    jsn_w_end_obj(w);
}

static void put_type(struct jsn_w *w, const char *key, const struct itype *t)
{
    jsn_w_obj(w, key);
    jsn_w_str(w, "Name", t->name);
    jsn_w_str(w, "ProviderType", t->provider_type);
    jsn_w_i64(w, "VCPUs", t->vcpus);
    jsn_w_i64(w, "RAM", t->ram);
    jsn_w_i64(w, "IncludedScratch", t->included_scratch);
    jsn_w_i64(w, "AddedScratch", t->added_scratch);
    jsn_w_f64(w, "Price", t->price);
    jsn_w_bool(w, "Preemptible", t->preemptible);
    jsn_w_end_obj(w);
}

static void put_types(struct jsn_w *w, const struct dispatch_container *c)
{
    jsn_w_arr(w, "instance_types");
    for (size_t i = 0; i < c->n_types; i++)
        put_type(w, NULL, c->types[i]);
    jsn_w_end_arr(w);
    if (c->n_types)
        put_type(w, "instance_type", c->types[0]);
}

static void put_container(void *arg, const struct dispatch_container *c)
{
    struct jsn_w *w = arg;

    jsn_w_obj(w, NULL);
    put_record(w, "container", c->c);
    put_need(w, c->need);
    put_types(w, c);
    put_time(w, "first_seen_at", c->first_seen_us);
    jsn_w_str(w, "scheduling_status", c->status);
    jsn_w_str(w, "process", c->process);
    jsn_w_str(w, "instance", c->instance);
    jsn_w_end_obj(w);
}

int view_containers(struct dispatch *d, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_arr(&w, "items");
    dispatch_each_container(d, put_container, &w);
    jsn_w_end_arr(&w);
    jsn_w_end_obj(&w);
    return out->over ? -1 : 0;
}

int view_container(struct dispatch *d, const char *uuid, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    return dispatch_find_container(d, uuid, put_container, &w) ? 0 : -1;
}

static void put_explanation(void *arg, const struct dispatch_container *c)
{
    struct jsn_w *w = arg;

    jsn_w_obj(w, NULL);
    jsn_w_str(w, "container_uuid", c->c->uuid);
    jsn_w_str(w, "state", ctr_state_name(c->c->state));
    jsn_w_i64(w, "priority", c->c->priority);
    jsn_w_str(w, "process", c->process);
    jsn_w_str(w, "instance", c->instance);
    jsn_w_str(w, "scheduling_status", c->status);
    put_time(w, "first_seen_at", c->first_seen_us);
    jsn_w_i64(w, "lock_count", c->c->lock_count);
    jsn_w_i64(w, "attempt", c->c->attempt);
    put_need(w, c->need);
    put_types(w, c);
    jsn_w_end_obj(w);
}

int view_explain(struct dispatch *d, const char *uuid, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    return dispatch_find_container(d, uuid, put_explanation, &w) ? 0 : -1;
}

/* --- health ------------------------------------------------------------------ */

static void put_age(struct jsn_w *w, const char *key, int64_t ms)
{
    if (ms < 0)
        jsn_w_null(w, key);
    else
        jsn_w_f64(w, key, (double) ms / 1000.0);
}

void view_health(struct dispatch *d, const char *problem, struct buf *out)
{
    struct dispatch_health h = { -1, -1, -1, false, false, problem };
    struct jsn_w w;

    if (d)
        dispatch_get_health(d, &h);
    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_str(&w, "health", *h.problem ? "ERROR" : "OK");
    if (*h.problem)
        jsn_w_str(&w, "error", h.problem);
    put_age(&w, "poll_age_seconds", h.poll_age_ms);
    put_age(&w, "list_age_seconds", h.list_age_ms);
    put_age(&w, "probe_age_seconds", h.probe_age_ms);
    jsn_w_bool(&w, "journal_ok", h.journal_ok);
    jsn_w_bool(&w, "api_ok", h.api_ok);
    jsn_w_end_obj(&w);
}
