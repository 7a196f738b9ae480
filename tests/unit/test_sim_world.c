/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world by itself, driven by a small script in the place of the
 * dispatcher: order of events, ports, crash, checkers.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/text.h"
#include "core/sim/api.h"
#include "core/sim/cloud.h"
#include "core/sim/journal.h"
#include "core/sim/net.h"
#include "core/sim/vm.h"
#include "core/sim/world.h"
#include "tests/unit/sim_script.h"

/* --- events ---------------------------------------------------------- */

static int order[8];
static int ordered;

static void note(void *arg)
{
    order[ordered++] = *(const int *) arg;
}

static void test_events_run_by_time_then_sequence(void **state)
{
    static const int n[] = {0, 1, 2, 3, 4};
    struct sim *w = *state;

    ordered = 0;
    sim_at(w, 20, note, (void *) (uintptr_t) &n[2]);
    sim_at(w, 10, note, (void *) (uintptr_t) &n[0]);
    struct sim_event *e = sim_at(w, 15, note, (void *) (uintptr_t) &n[4]);
    sim_at(w, 20, note, (void *) (uintptr_t) &n[3]);
    sim_at(w, 10, note, (void *) (uintptr_t) &n[1]);
    sim_cancel(w, e);
    run_for(w, 100);
    assert_int_equal(ordered, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(order[i], i);
}

static void test_streams_are_independent(void **state)
{
    struct sim_rng a, b, c;

    (void) state;
    sim_rng_init(&a, 1, "api");
    sim_rng_init(&b, 1, "net");
    sim_rng_init(&c, 1, "api");
    uint64_t first = sim_rng_next(&a);
    assert_int_not_equal(first, sim_rng_next(&b));
    assert_int_equal(first, sim_rng_next(&c));
    for (int i = 0; i < 1000; i++) {
        int64_t x = sim_rng_range(&a, -3, 4);

        assert_in_range(x + 3, 0, 7);
    }
}

/* --- ports ----------------------------------------------------------- */

static void test_completion_has_a_turn_of_its_own(void **state)
{
    struct sim *w = *state;
    struct sim_ctr *c = submit(w, SIM_S);
    struct seen s = {.w = w};
    uint64_t asked = w->turns;

    w->api->port.lock(&w->api->port, c->rec.uuid, 1000, on_ctr, &s);
    assert_int_equal(s.calls, 0);
    run_for(w, SIM_S);
    assert_int_equal(s.calls, 1);
    assert_true(s.turn > asked + 1);
    assert_int_equal(s.r.outcome, OP_DONE);
    assert_true(s.ctr.partial);
    assert_int_equal(s.ctr.c.state, CTR_LOCKED);
    assert_string_equal(s.ctr.c.locked_by, w->api->token_uuid);
    w->api->port.lock(&w->api->port, c->rec.uuid, 1000, on_ctr, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.r.outcome, OP_REFUSED);
    assert_int_equal(s.r.err.class, ERR_CONFLICT);
}

static void test_lost_replies_are_unknown(void **state)
{
    struct sim *w = *state;
    struct sim_ctr *c = submit(w, SIM_S);
    struct seen s = {.w = w};

    sim_fault_force(w, SIM_FAULT_API_LOST_REPLY, 1, 0);
    w->api->port.lock(&w->api->port, c->rec.uuid, 1000, on_ctr, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.r.outcome, OP_UNKNOWN);
    assert_int_equal(c->rec.state, CTR_LOCKED);
    sim_fault_force(w, SIM_FAULT_API_SLOW, 1, 0);
    w->api->port.unlock(&w->api->port, c->rec.uuid, 1000, on_ctr, &s);
    run_for(w, SIM_S + 1);
    assert_int_equal(s.calls, 2);
    assert_int_equal(s.r.outcome, OP_UNKNOWN);
    assert_int_equal(s.r.err.class, ERR_TIMEOUT);
    run_for(w, 6 * SIM_S);
    assert_int_equal(s.calls, 2);
    assert_int_equal(c->rec.state, CTR_QUEUED);
}

static void put(struct sim *w, const char *key, struct seen *s)
{
    struct journal_rec rec = {.kind = JOURNAL_QUEUE};

    text_copy(rec.key, key, sizeof rec.key);
    w->journal->port.append(&w->journal->port, &rec, 1, on_plain, s);
}

static void crash(struct sim *w)
{
    sim_crash_begin(w);
    sim_crash_end(w);
}

static void test_crash_drops_callbacks_and_a_journal_suffix(void **state)
{
    struct sim *w = *state;
    struct seen s = {.w = w};
    bool kept[3] = {false};

    put(w, "acknowledged", &s);
    run_for(w, SIM_S);
    assert_int_equal(s.calls, 1);
    for (int round = 0; round < 30; round++) {
        char key[3][16];

        for (int i = 0; i < 3; i++) {
            snprintf(key[i], sizeof key[i], "r%02d-%d", round, i);
            put(w, key[i], &s);
        }
        crash(w);
        run_for(w, SIM_S);
        assert_int_equal(s.calls, 1);
        bool missing = false;
        for (int i = 0; i < 3; i++) {
            bool there = sim_journal_heard(w->journal, JOURNAL_QUEUE, key[i]);

            assert_false(there && missing);
            missing = missing || !there;
            kept[i] = kept[i] || there;
        }
    }
    assert_non_null(
        sim_journal_heard(w->journal, JOURNAL_QUEUE, "acknowledged"));
    assert_true(kept[0] && kept[1] && kept[2]);
    assert_true(w->faults[SIM_FAULT_CRASH_LOSES].count > 0);
}

/* --- a script that runs one container -------------------------------- */

static void test_a_container_runs(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = make_vm(w, "caaaaaaaaaaaaaaaaaaaaaaaaaa");
    struct sim_ctr *c = submit(w, 20 * SIM_S);
    struct seen s = {.w = w}, watch = {.w = w};
    struct exec_port *x = &w->net->port;

    log_in(w, vm, &s);
    assert_non_null(s.session);
    x->stream(x, s.session, "crunch-run --watch", on_line, on_plain, &watch);
    start(w, c, vm, &s);
    run_for(w, 5 * SIM_S);
    assert_int_equal(c->rec.state, CTR_RUNNING);
    run_command(w, &s, "crunch-run --list", NULL);
    run_for(w, SIM_S);
    assert_memory_equal(s.text, c->rec.uuid, strlen(c->rec.uuid));
    run_for(w, 20 * SIM_S);
    assert_int_equal(c->rec.state, CTR_COMPLETE);
    run_command(w, &s, "crunch-run --list", NULL);
    run_for(w, SIM_S);
    assert_string_equal(s.text, "");
    assert_string_equal(watch.text, "helsynstabeaexi");
    assert_null(w->failure);
}

static void test_an_accepted_start_can_come_late(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = make_vm(w, "caaaaaaaaaaaaaaaaaaaaaaaaaa");
    struct sim_ctr *c = submit(w, 20 * SIM_S);
    struct seen s = {.w = w}, a = {.w = w};

    log_in(w, vm, &s);
    sim_fault_force(w, SIM_FAULT_START_LATE, 1, 0);
    start(w, c, vm, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.broken, 1);
    assert_int_equal(s.r.outcome, OP_UNKNOWN);
    assert_int_equal(c->starts.v[0].state, SIM_START_SENT);
    w->api->port.revoke(&w->api->port, c->rec.uuid, 1000, on_plain, &a);
    run_for(w, SIM_S);
    w->api->port.unlock(&w->api->port, c->rec.uuid, 1000, on_ctr, &a);
    run_for(w, 200 * (int64_t) SIM_S);
    assert_null(w->failure);
    assert_int_equal(c->starts.v[0].state, SIM_START_OVER);
    assert_int_equal(c->payload_starts, 0);
    assert_int_equal(c->rec.state, CTR_QUEUED);
}

static void test_unlock_without_revoke_is_a_violation(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = make_vm(w, "caaaaaaaaaaaaaaaaaaaaaaaaaa");
    struct sim_ctr *c = submit(w, 20 * SIM_S);
    struct seen s = {.w = w}, a = {.w = w};

    log_in(w, vm, &s);
    sim_fault_force(w, SIM_FAULT_START_LATE, 1, 0);
    start(w, c, vm, &s);
    w->api->port.unlock(&w->api->port, c->rec.uuid, 1000, on_ctr, &a);
    run_for(w, SIM_S);
    assert_non_null(w->failure);
    assert_non_null(strstr(w->failure, "may still get a live payload"));
    assert_non_null(strstr(w->failure, "seed 7 at "));
}

static void test_a_hang_delays_what_it_received(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = make_vm(w, "caaaaaaaaaaaaaaaaaaaaaaaaaa");
    struct sim_ctr *c = submit(w, 20 * SIM_S);
    struct seen s = {.w = w};

    log_in(w, vm, &s);
    sim_machine_hang(vm->machine, 30 * SIM_S);
    start(w, c, vm, &s);
    run_for(w, 10 * SIM_S);
    assert_int_equal(s.r.outcome, OP_UNKNOWN);
    assert_int_equal(c->rec.state, CTR_LOCKED);
    run_for(w, 20 * SIM_S);
    assert_int_equal(c->rec.state, CTR_RUNNING);
}

static void test_effects_without_intents_are_violations(void **state)
{
    struct sim *w = *state;
    struct cloud_port *p = &w->clouds[0]->port;
    struct cloud_create_req req = {.token = "c",
                                   .count = 1,
                                   .type_name = "small",
                                   .provider_type = "s1",
                                   .placement = ""};
    struct seen s = {.w = w};

    p->open(p, 1000, on_plain, &s);
    run_for(w, SIM_S);
    p->create(p, &req, on_created, &s);
    assert_non_null(w->failure);
    assert_non_null(strstr(w->failure, "without a durable intent"));
}

static void test_a_dead_vm_ends_its_payload(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = make_vm(w, "caaaaaaaaaaaaaaaaaaaaaaaaaa");
    struct sim_ctr *c = submit(w, 2000 * (int64_t) SIM_S);
    struct seen s = {.w = w};

    log_in(w, vm, &s);
    start(w, c, vm, &s);
    run_for(w, 5 * SIM_S);
    assert_int_equal(c->live, 1);
    sim_vm_die(vm);
    assert_int_equal(c->live, 0);
    run_for(w, 60 * (int64_t) SIM_S);
    assert_int_equal(s.broken, 1);
    assert_int_equal(sim_cloud_count(w->clouds[0]), 0);
    assert_true(sim_cloud_seconds(w->clouds[0]) > 60);
    assert_null(w->failure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, script_set_up, script_tear_down)
        T(test_events_run_by_time_then_sequence),
        T(test_streams_are_independent),
        T(test_completion_has_a_turn_of_its_own),
        T(test_lost_replies_are_unknown),
        T(test_crash_drops_callbacks_and_a_journal_suffix),
        T(test_a_container_runs),
        T(test_an_accepted_start_can_come_late),
        T(test_unlock_without_revoke_is_a_violation),
        T(test_a_hang_delays_what_it_received),
        T(test_effects_without_intents_are_violations),
        T(test_a_dead_vm_ends_its_payload),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
