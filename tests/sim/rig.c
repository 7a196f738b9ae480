/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher in its simulated world.
 *
 * rig_run steps the world event by event. After each turn it looks whether a
 * crash is wanted (a scenario armed a point, or chaos struck), kills the
 * dispatcher at that very moment and lets it come back later as a fresh object
 * with the same settings. Every five virtual seconds it runs the checks over
 * time, and asks the dispatcher why its containers wait.
 */

#include "tests/sim/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/logger.h"
#include "core/base/text.h"

enum {
    TICK_US = 5 * SIM_S,
    SHOWN_US = 15 * SIM_S, /* from then on a reason must be there */
    SILENT_MAX = 4         /* checks in a row without one */
};

static const char runner_bytes[] = "\177ELF: not really";

/* --- settings -------------------------------------------------------- */

static void put_type(struct itype *it, const char *name, int64_t vcpus,
                     double price)
{
    text_copy(it->name, name, sizeof it->name);
    snprintf(it->provider_type, sizeof it->provider_type, "p.%.20s", name);
    it->vcpus = vcpus;
    it->ram = vcpus * (INT64_C(2) << 30);
    it->included_scratch = vcpus * (INT64_C(10) << 30);
    it->price = price;
}

static void put_limits(struct dispatch_cfg *c)
{
    c->max_price_factor = 1.5;
    c->max_instances = 8;
    c->max_create_ops = 3;
    c->max_cloud_ops_per_s = 20;
    c->max_probes_per_s = 50;
    c->max_api_ops = 8;
    c->max_ssh_per_instance = 8;
    c->supervisor_fraction = 0.3;
    c->absent_lists = 3;
    c->absent_grace_ms = 60 * 1000;
}

static void put_times(struct dispatch_cfg *c)
{
    c->poll_ms = 10 * 1000;
    c->probe_ms = 10 * 1000;
    c->sync_ms = 20 * 1000;
    c->timeout_idle_ms = 60 * 1000;
    c->timeout_booting_ms = 120 * 1000;
    c->timeout_probe_ms = 120 * 1000;
    c->timeout_shutdown_ms = 10 * 1000;
    c->timeout_signal_ms = 5 * 1000;
    c->timeout_term_ms = 40 * 1000;
    c->timeout_stale_run_lock_ms = 5 * 1000;
    c->stale_lock_ms = 60 * 1000;
    c->api_deadline_ms = 10 * 1000;
    c->cloud_deadline_ms = 20 * 1000;
    c->exec_deadline_ms = 15 * 1000;
    c->connect_deadline_ms = 10 * 1000;
}

static void put_settings(struct rig *r)
{
    struct dispatch_cfg *c = &r->cfg;

    text_copy(c->cluster_id, "zzzzz", sizeof c->cluster_id);
    text_copy(c->instance_set_id, "set-1", sizeof c->instance_set_id);
    text_copy(c->tag_prefix, "CDC", sizeof c->tag_prefix);
    c->n_backends = 1;
    text_copy(c->backends[0].name, "default", sizeof c->backends[0].name);
    text_copy(c->backends[0].image_id, "img", sizeof c->backends[0].image_id);
    text_copy(c->backends[0].ssh_user, "root", sizeof c->backends[0].ssh_user);
    text_copy(c->runner_command, "crunch-run", sizeof c->runner_command);
    text_copy(c->runner_dir, "/tmp/crunch-run", sizeof c->runner_dir);
    text_copy(c->api_url, "http://127.0.0.1:8000", sizeof c->api_url);
    put_limits(c);
    put_times(c);
    put_type(&r->types[0], "small", 2, 0.1);
    put_type(&r->types[1], "medium", 4, 0.2);
    put_type(&r->types[2], "large", 8, 0.4);
    c->itypes = (struct itypes){.v = r->types, .n = 3};
    itypes_sort(&c->itypes);
}

/* Half of the worlds deploy the runner, half find it in their image; some log
 * in as an ordinary user; some clouds cannot verify host keys; some servers
 * have no feed, some runners no watch. */
static void put_variety(struct rig *r)
{
    struct sim_net *n = r->w->net;

    if (r->w->seed % 3 == 0)
        n->login_user = "crunch";
    if (r->w->seed % 4 < 2)
        r->cloud->port.caps &= ~(uint32_t) CLOUD_CAP_VERIFY_KEY;
    if (r->w->seed % 6 == 0)
        r->w->api->features &= ~(uint32_t) API_FEED;
    n->no_watch = r->w->seed % 7 == 0;
    n->runner = runner_bytes;
    n->runner_size = sizeof runner_bytes;
    n->runner_hash = "0123456789abcdef0123456789abcdef";
    if (r->w->seed % 2 == 0)
        return;
    n->runner_command = NULL;
    r->cfg.runner = n->runner;
    r->cfg.runner_size = n->runner_size;
    text_copy(r->cfg.runner_hash, n->runner_hash, sizeof r->cfg.runner_hash);
}

/* --- life and death -------------------------------------------------- */

static void on_ready(void *arg)
{
    struct rig *r = arg;

    sim_trace(r->w, "dispatcher is ready");
    r->ready = true;
}

static void on_fatal(void *arg, const struct err *err)
{
    struct rig *r = arg;

    sim_fail(r->w, "the dispatcher gave up: %s", err->text);
}

void rig_start(struct rig *r)
{
    struct dispatch_ports ports = {
        .clock = &r->w->clock,
        .entropy = &r->w->entropy,
        .journal = &r->w->journal->port,
        .api = &r->w->api->port,
        .exec = &r->w->net->port,
        .clouds = r->ports,
    };

    sim_trace(r->w, "dispatcher starts");
    r->ready = false;
    sim_born(r->w);
    for (unsigned i = 0; i < r->w->n_clouds; i++)
        r->w->clouds[i]->opened = false;
    r->d = dispatch_create(&r->cfg, &ports, r->logger, NULL);
    dispatch_start(r->d, on_ready, on_fatal, r);
}

static void on_restart(void *arg)
{
    rig_start(arg);
}

void rig_crash(struct rig *r)
{
    struct sim *w = r->w;

    r->crashes++;
    sim_crash_begin(w);
    dispatch_destroy(r->d);
    r->d = NULL;
    r->ready = false;
    sim_crash_end(w);
    if (!r->stays_down)
        sim_at(w, sim_rng_range(&r->rng, r->down_lo_us, r->down_hi_us),
               on_restart, r);
}

/* --- what the dispatcher says ---------------------------------------- */

static void on_container(void *arg, const struct dispatch_container *c)
{
    bool *reason = arg;

    *reason = c->status[0] != '\0' || c->instance[0] != '\0' ||
              strcmp(c->process, "none") != 0;
}

static bool should_be_known(const struct rig *r, const struct sim_ctr *c)
{
    const struct sim *w = r->w;

    return (c->rec.state == CTR_QUEUED || c->rec.state == CTR_LOCKED) &&
           c->rec.priority > 0 && c->shown_gen == w->gen &&
           w->now_us - c->shown_us > SHOWN_US;
}

static void check_reason(struct rig *r, size_t i)
{
    const struct sim_ctr *c = r->w->api->ctrs.v[i];
    bool reason = false;

    while (r->silent.n <= i)
        VEC_PUSH(&r->silent, 0);
    if (!should_be_known(r, c)) {
        r->silent.v[i] = 0;
        return;
    }
    bool known =
        dispatch_find_container(r->d, c->rec.uuid, on_container, &reason);
    r->silent.v[i] = reason ? 0 : r->silent.v[i] + 1;
    if (r->silent.v[i] >= SILENT_MAX)
        sim_fail(r->w, "%s waits (%s), and %s", c->rec.uuid,
                 ctr_state_name(c->rec.state),
                 known ? "no reason is given" : "the dispatcher forgot it");
}

static void on_instance(void *arg, const struct dispatch_instance *i)
{
    struct rig *r = arg;

    if (i->reason[0] == '\0')
        sim_fail(r->w, "no reason is given why %s is up (%s)", i->id, i->state);
}

static void on_tick(void *arg)
{
    struct rig *r = arg;
    struct dispatch_health health;

    sim_at(r->w, TICK_US, on_tick, r);
    check_idle(r->w, 400 * (int64_t) SIM_S);
    if (!r->d || !r->ready || r->reasons_off || !sim_awake(r->w))
        return;
    for (size_t i = 0; i < r->w->api->ctrs.n; i++)
        check_reason(r, i);
    dispatch_each_instance(r->d, on_instance, r);
    dispatch_get_health(r->d, &health);
}

/* --- running --------------------------------------------------------- */

bool rig_run(struct rig *r, int64_t for_us, bool (*done)(struct rig *r))
{
    struct sim *w = r->w;
    int64_t end = w->now_us + for_us;

    while (!w->failure && sim_next_us(w) <= end) {
        sim_step(w);
        if (w->crash_wanted && r->d)
            rig_crash(r);
        w->crash_wanted = false;
        if (done && done(r))
            return true;
    }
    if (!w->failure && w->now_us < end)
        w->now_us = end;
    return false;
}

bool rig_all_final(struct rig *r)
{
    return r->w->api->open == 0;
}

bool rig_quiet(struct rig *r)
{
    size_t n = 0;

    for (unsigned i = 0; i < r->w->n_clouds; i++)
        n += sim_cloud_count(r->w->clouds[i]);
    return r->w->api->open == 0 && n == 0;
}

void rig_finish(struct rig *r, int64_t for_us)
{
    if (!rig_run(r, for_us, rig_quiet) && !r->w->failure)
        check_end(r->w);
    if (!r->w->failure)
        check_end(r->w);
}

struct sim_cloud *rig_add_cloud(struct rig *r, const char *name)
{
    struct sim_cloud *c = sim_cloud_create(r->w, name);
    unsigned i = r->cfg.n_backends++;

    r->ports[i] = &c->port;
    r->cfg.backends[i] = r->cfg.backends[0];
    text_copy(r->cfg.backends[i].name, name, sizeof r->cfg.backends[i].name);
    return c;
}

void rig_offer(struct rig *r, const char *type, const char *backend)
{
    for (size_t i = 0; i < r->cfg.itypes.n; i++)
        if (strcmp(r->types[i].name, type) == 0)
            text_copy(r->types[i].backend, backend, sizeof r->types[i].backend);
}

struct sim_ctr *rig_submit(struct rig *r, int64_t vcpus, int64_t run_s)
{
    struct sim_job job = {.vcpus = vcpus, .run_us = run_s * SIM_S};

    return sim_api_submit(r->w->api, &job);
}

struct rig *rig_create(uint64_t seed)
{
    struct rig *r = MEM_NEW(struct rig);

    r->w = sim_create(seed);
    r->cloud = sim_cloud_create(r->w, "default");
    r->ports[0] = &r->cloud->port;
    r->down_lo_us = 100 * SIM_MS;
    r->down_hi_us = 20 * SIM_S;
    sim_rng_init(&r->rng, seed, "rig");
    put_settings(r);
    put_variety(r);
    r->w->silence_us = r->cfg.timeout_probe_ms * SIM_MS * 9 / 10;
    if (getenv("SIM_LOG"))
        r->logger = logger_create(2, LOG_TEXT, LOG_DEBUG);
    sim_at(r->w, TICK_US, on_tick, r);
    return r;
}

void rig_destroy(struct rig *r)
{
    if (!r)
        return;
    r->w->crashing = true;
    dispatch_destroy(r->d);
    sim_destroy(r->w);
    logger_destroy(r->logger);
    VEC_FINI(&r->silent);
    free(r);
}
