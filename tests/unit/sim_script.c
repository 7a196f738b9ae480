/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script in the place of the dispatcher, for unit tests of the simulated
 * world. It keeps the rules (intents before effects) unless a test breaks them
 * on purpose.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/text.h"
#include "core/sim/journal.h"
#include "tests/unit/sim_script.h"

int script_set_up(void **state)
{
    struct sim *w = sim_create(7);

    sim_cloud_create(w, "default");
    w->fail_quiet = true;
    *state = w;
    return 0;
}

int script_tear_down(void **state)
{
    sim_destroy(*state);
    return 0;
}

void run_for(struct sim *w, int64_t us)
{
    int64_t end = w->now_us + us;

    while (sim_next_us(w) <= end)
        sim_step(w);
    w->now_us = end;
}

struct sim_ctr *submit(struct sim *w, int64_t run_us)
{
    struct sim_job job = {.run_us = run_us};

    return sim_api_submit(w->api, &job);
}

/* --- answers --------------------------------------------------------- */

void on_plain(void *arg, const struct op_result *r)
{
    struct seen *s = arg;

    s->calls++;
    s->r = *r;
}

void on_ctr(void *arg, const struct api_ctr_result *r)
{
    struct seen *s = arg;

    s->calls++;
    s->turn = s->w->turns;
    s->r = r->r;
    s->ctr = *r;
}

void on_page(void *arg, const struct api_list_result *r)
{
    struct seen *s = arg;

    s->calls++;
    s->r = r->r;
    s->n = r->n;
    if (r->n > 0)
        s->ctr.c = r->v[r->n - 1];
}

void on_feed(void *arg, const struct api_feed_result *r)
{
    struct seen *s = arg;

    s->calls++;
    s->r = r->r;
    s->n = r->n;
    s->flag = r->resync;
    s->cursor = r->cursor;
    text_copy(s->epoch, r->epoch, sizeof s->epoch);
}

void on_attempt(void *arg, const struct api_attempt_result *r)
{
    struct seen *s = arg;

    s->calls++;
    s->r = r->r;
    snprintf(s->text, sizeof s->text,
             "{\"Env\":{\"ARVADOS_API_TOKEN\":\"%s\"}}", r->api_token);
}

void on_created(void *arg, const struct cloud_create_result *r)
{
    struct seen *s = arg;

    s->calls++;
    s->r = r->r;
    s->n = r->n;
    if (r->n > 0)
        text_copy(s->text, r->v[0].id, sizeof s->text);
}

void on_exec(void *arg, const struct exec_result *r)
{
    struct seen *s = arg;

    s->calls++;
    s->r = r->r;
    s->n = (size_t) r->code;
    text_copy(s->text, r->out, sizeof s->text);
}

void on_line(void *arg, const char *line, size_t n)
{
    struct seen *s = arg;

    assert_int_equal(strlen(line), n);
    strncat(s->text, strstr(line, ":\"") + 2, 3);
}

/* --- the API server -------------------------------------------------- */

void lock_now(struct sim *w, struct sim_ctr *c, struct seen *s)
{
    w->api->port.lock(&w->api->port, c->rec.uuid, 1000, on_ctr, s);
    run_for(w, SIM_S);
}

void unlock_now(struct sim *w, struct sim_ctr *c, struct seen *s)
{
    w->api->port.unlock(&w->api->port, c->rec.uuid, 1000, on_ctr, s);
    run_for(w, SIM_S);
}

void attempt_now(struct sim *w, struct sim_ctr *c, struct seen *s)
{
    w->api->port.attempt(&w->api->port, c->rec.uuid, 1000, on_attempt, s);
    run_for(w, SIM_S);
}

void revoke_now(struct sim *w, struct sim_ctr *c, struct seen *s)
{
    w->api->port.revoke(&w->api->port, c->rec.uuid, 1000, on_plain, s);
    run_for(w, SIM_S);
}

void cancel_now(struct sim *w, struct sim_ctr *c, const char *error,
                struct seen *s)
{
    struct api_update_req req = {.uuid = c->rec.uuid,
                                 .set_cancelled = true,
                                 .error = error,
                                 .no_retry = error != NULL,
                                 .deadline_ms = 1000};

    w->api->port.update(&w->api->port, &req, on_ctr, s);
    run_for(w, SIM_S);
}

void put_now(struct sim *w, const struct journal_rec *rec)
{
    struct seen s = {.w = w};

    w->journal->port.append(&w->journal->port, rec, 1, on_plain, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.r.outcome, OP_DONE);
}

/* --- the cloud ------------------------------------------------------- */

void create_now(struct sim *w, const char *token, struct seen *s)
{
    struct cloud_port *p = &w->clouds[0]->port;
    struct journal_rec rec = {.kind = JOURNAL_CREATE, .count = 1};
    struct cloud_tag tag = {"CDCInstanceSetID", "set-1"};
    struct cloud_create_req req = {
        .token = token,
        .count = 1,
        .type_name = "small",
        .provider_type = "s1",
        .placement = "",
        .vcpus = 2,
        .ram = INT64_C(4) << 30,
        .tags = &tag,
        .n_tags = 1,
        .deadline_ms = 10000,
    };

    p->open(p, 1000, on_plain, s);
    text_copy(rec.key, token, sizeof rec.key);
    text_copy(rec.backend, "default", sizeof rec.backend);
    put_now(w, &rec);
    p->create(p, &req, on_created, s);
    run_for(w, 11 * SIM_S);
}

struct sim_vm *make_vm(struct sim *w, const char *token)
{
    struct seen s = {.w = w};

    create_now(w, token, &s);
    assert_int_equal(s.r.outcome, OP_DONE);
    run_for(w, 60 * (int64_t) SIM_S);
    return w->clouds[0]->vms.v[w->clouds[0]->vms.n - 1];
}

void destroy_now(struct sim *w, const struct sim_vm *vm, struct seen *s)
{
    struct cloud_port *p = &w->clouds[0]->port;

    p->destroy(p, vm->id, 5000, on_plain, s);
    run_for(w, SIM_S);
}

static void on_listed(void *arg, const struct cloud_instance *i)
{
    struct seen *s = arg;

    s->n++;
    text_copy(s->text, i->id, sizeof s->text);
}

static void on_list_end(void *arg, const struct cloud_list_result *r)
{
    struct seen *s = arg;

    s->calls++;
    s->r = r->r;
    s->flag = r->complete;
}

void list_now(struct sim *w, struct seen *s)
{
    struct cloud_port *p = &w->clouds[0]->port;
    struct cloud_tag filter = {"CDCInstanceSetID", "set-1"};

    s->n = 0;
    p->list(p, &filter, 1, 5000, on_listed, on_list_end, s);
    run_for(w, 6 * SIM_S);
}

/* --- instances ------------------------------------------------------- */

static void on_connected(void *arg, const struct exec_connect_result *r)
{
    struct seen *s = arg;
    struct exec_port *x = &s->w->net->port;

    s->r = r->r;
    s->session = r->session;
    if (r->session && !s->flag)
        x->approve(x, r->session, r->host_key, NULL);
}

static void on_broken(void *arg, const struct err *why)
{
    struct seen *s = arg;

    (void) why;
    s->broken++;
}

/* With s->flag the key is not approved. */
void log_in(struct sim *w, const struct sim_vm *vm, struct seen *s)
{
    struct exec_port *x = &w->net->port;
    struct exec_target t = {.label = vm->id,
                            .address = vm->address,
                            .port = 22,
                            .user = "root",
                            .deadline_ms = 5000};

    x->connect(x, &t, on_connected, on_broken, s);
    run_for(w, SIM_S);
}

void run_command(struct sim *w, struct seen *s, const char *command,
                 const char *input)
{
    struct exec_port *x = &w->net->port;
    struct exec_req req = {.command = command,
                           .input = input,
                           .input_len = input ? strlen(input) : 0,
                           .deadline_ms = 5000};

    x->exec(x, s->session, &req, on_exec, s);
}

void start(struct sim *w, struct sim_ctr *c, const struct sim_vm *vm,
           struct seen *s)
{
    struct journal_rec rec = {.kind = JOURNAL_START};
    char command[128];
    struct seen a = {.w = w};

    if (c->rec.state == CTR_QUEUED)
        lock_now(w, c, &a);
    attempt_now(w, c, &a);
    snprintf(rec.key, sizeof rec.key, "%s/%d", c->rec.uuid,
             (int) c->rec.attempt);
    text_copy(rec.instance, vm->id, sizeof rec.instance);
    put_now(w, &rec);
    snprintf(command, sizeof command, "crunch-run --detach --stdin-config '%s'",
             c->rec.uuid);
    run_command(w, s, command, a.text);
}
