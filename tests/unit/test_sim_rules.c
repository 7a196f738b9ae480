/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the simulated API server and cloud, and every checker going red
 * once: a checker that cannot fail would prove nothing about the dispatcher.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/sim/check.h"
#include "core/sim/vm_impl.h"
#include "tests/unit/sim_script.h"

#define TOKEN_A "caaaaaaaaaaaaaaaaaaaaaaaaaa"
#define TOKEN_B "cbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const int64_t minute = 60 * (int64_t) SIM_S;

static void assert_violated(const struct sim *w, const char *text)
{
    assert_non_null(w->failure);
    if (!strstr(w->failure, text))
        fail_msg("%.200s", w->failure);
}

/* --- the API server -------------------------------------------------- */

static void test_unlock_gives_up_after_ten_locks(void **state)
{
    struct sim *w = *state;
    struct sim_ctr *c = submit(w, SIM_S);
    struct seen s = {.w = w};

    for (int i = 1; i <= 10; i++) {
        assert_int_equal(c->rec.state, CTR_QUEUED);
        lock_now(w, c, &s);
        c->locked_started = true; /* as if */
        unlock_now(w, c, &s);
        assert_int_equal(s.r.outcome, OP_DONE);
    }
    assert_int_equal(c->rec.state, CTR_CANCELLED);
    assert_int_equal(s.ctr.c.state, CTR_CANCELLED);
    assert_null(w->failure);
}

static void test_cancelled_ones_are_retried_twice(void **state)
{
    struct sim *w = *state;
    struct sim_ctr *c = submit(w, SIM_S);
    struct seen s = {.w = w};

    for (int i = 1; i <= 3; i++) {
        lock_now(w, c, &s);
        c->operator_kill = true;
        cancel_now(w, c, NULL, &s);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
        assert_true((c->retry != NULL) == (i < 3));
        c = sim_api_last(c);
    }
    assert_int_equal(w->api->open, 0);
    c = submit(w, SIM_S);
    lock_now(w, c, &s);
    cancel_now(w, c, "impossible", &s);
    assert_null(c->retry);
    assert_string_equal(c->error, "impossible");
    assert_null(w->failure);
}

static void test_only_the_present_attempt_counts(void **state)
{
    struct sim *w = *state;
    struct sim_ctr *c = submit(w, SIM_S);
    struct seen s = {.w = w};
    char first[64], second[64];

    attempt_now(w, c, &s);
    assert_int_equal(s.r.outcome, OP_REFUSED);
    lock_now(w, c, &s);
    attempt_now(w, c, &s);
    memcpy(first, c->token, sizeof first);
    attempt_now(w, c, &s);
    memcpy(second, c->token, sizeof second);
    assert_int_equal(sim_api_running(w->api, first), SIM_REFUSED);
    assert_int_equal(sim_api_running(w->api, second), SIM_ACCEPTED);
    assert_int_equal(sim_api_running(w->api, second), SIM_ACCEPTED);
    assert_int_equal(sim_api_beat(w->api, first), SIM_REFUSED);
    attempt_now(w, c, &s);
    assert_int_equal(s.r.outcome, OP_REFUSED);
    revoke_now(w, c, &s);
    assert_int_equal(s.r.outcome, OP_DONE);
    assert_int_equal(sim_api_beat(w->api, second), SIM_REFUSED);
    assert_int_equal(sim_api_final(w->api, second, CTR_COMPLETE, 0),
                     SIM_REFUSED);
    assert_int_equal(c->rec.state, CTR_RUNNING);
}

static void test_user_cancel_and_hold(void **state)
{
    struct sim *w = *state;
    struct sim_ctr *queued = submit(w, SIM_S), *locked = submit(w, SIM_S);
    struct sim_ctr *held = submit(w, SIM_S);
    struct seen s = {.w = w};

    sim_api_user_cancel(w->api, queued);
    assert_int_equal(queued->rec.state, CTR_CANCELLED);
    assert_null(queued->retry);
    lock_now(w, locked, &s);
    sim_api_user_cancel(w->api, locked);
    assert_int_equal(locked->rec.state, CTR_LOCKED);
    unlock_now(w, locked, &s);
    assert_int_equal(locked->rec.state, CTR_CANCELLED);
    sim_api_user_hold(w->api, held, minute);
    lock_now(w, held, &s);
    assert_int_equal(s.r.outcome, OP_REFUSED);
    run_for(w, minute);
    lock_now(w, held, &s);
    assert_int_equal(s.r.outcome, OP_DONE);
    assert_null(w->failure);
}

static void test_lists_are_paged(void **state)
{
    struct sim *w = *state;
    struct api_list_req req = {.which = API_LIST_QUEUED, .limit = 2};
    struct sim_job job = {.priority = 1000};
    struct seen s = {.w = w};
    struct ctr after;

    for (int i = 0; i < 3; i++)
        submit(w, SIM_S);
    struct sim_ctr *urgent = sim_api_submit(w->api, &job);
    req.deadline_ms = 1000;
    req.limit = 1;
    w->api->port.list(&w->api->port, &req, on_page, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.ctr.c.uuid, urgent->rec.uuid);
    after = s.ctr.c;
    req.after = &after;
    req.limit = 1000;
    w->api->port.list(&w->api->port, &req, on_page, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 3);
    after = s.ctr.c;
    w->api->port.list(&w->api->port, &req, on_page, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 0);
    lock_now(w, urgent, &s);
    req = (struct api_list_req){.which = API_LIST_MINE,
                                .token_uuid = w->api->token_uuid,
                                .deadline_ms = 1000};
    w->api->port.list(&w->api->port, &req, on_page, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 1);
}

static void ask_feed(struct sim *w, struct seen *s)
{
    char epoch[24];

    memcpy(epoch, s->epoch, sizeof epoch);
    w->api->port.feed(&w->api->port, epoch, s->cursor, 10000, on_feed, s);
}

static void test_the_feed(void **state)
{
    struct sim *w = *state;
    struct seen s = {.w = w};

    submit(w, SIM_S);
    ask_feed(w, &s);
    run_for(w, 5 * SIM_S);
    assert_int_equal(s.calls, 0);
    submit(w, SIM_S);
    run_for(w, SIM_S);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.n, 1);
    ask_feed(w, &s);
    run_for(w, 11 * SIM_S);
    assert_int_equal(s.calls, 2);
    assert_int_equal(s.n, 0);
    sim_fault_force(w, SIM_FAULT_FEED_RESYNC, 1, 0);
    ask_feed(w, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.calls, 3);
    assert_true(s.flag);
    ask_feed(w, &s);
    run_for(w, SIM_S);
    sim_api_down(w->api, minute);
    run_for(w, SIM_S);
    assert_int_equal(s.calls, 4);
    assert_int_equal(s.r.outcome, OP_UNKNOWN);
    ask_feed(w, &s);
    run_for(w, SIM_S);
    assert_int_equal(s.r.outcome, OP_REFUSED);
}

/* --- the cloud ------------------------------------------------------- */

static void test_limits_of_the_cloud(void **state)
{
    struct sim *w = *state;
    struct sim_cloud *c = w->clouds[0];
    struct seen s = {.w = w};

    c->quota = 1;
    create_now(w, TOKEN_A, &s);
    assert_int_equal(s.r.outcome, OP_DONE);
    create_now(w, TOKEN_B, &s);
    assert_int_equal(s.r.outcome, OP_REFUSED);
    assert_int_equal(s.r.err.class, ERR_QUOTA);
    create_now(w, TOKEN_A, &s);
    assert_int_equal(s.r.outcome, OP_DONE);
    assert_int_equal(c->made, 1);
    c->quota = 0;
    sim_cloud_limit_type(c, "small", 1);
    create_now(w, TOKEN_B, &s);
    assert_int_equal(s.r.err.class, ERR_CAPACITY);
    assert_int_equal(s.r.err.scope, ERR_SCOPE_TYPE);
    sim_cloud_limit_type(c, "small", 2);
    c->create_gap_us = minute;
    create_now(w, TOKEN_B, &s);
    assert_int_equal(s.r.err.class, ERR_RATE_LIMITED);
    run_for(w, minute);
    create_now(w, TOKEN_B, &s);
    assert_int_equal(s.r.outcome, OP_DONE);
    list_now(w, &s);
    assert_int_equal(s.n, 2);
    assert_true(s.flag);
    assert_null(w->failure);
}

static void test_unknown_creates(void **state)
{
    struct sim *w = *state;
    struct sim_cloud *c = w->clouds[0];
    struct seen s = {.w = w};

    sim_fault_force(w, SIM_FAULT_CREATE_LOST, 1, 0);
    create_now(w, TOKEN_A, &s);
    assert_int_equal(s.r.outcome, OP_UNKNOWN);
    assert_int_equal(c->made, 0);
    sim_fault_force(w, SIM_FAULT_CREATE_NO_REPLY, 1, 0);
    create_now(w, TOKEN_A, &s);
    assert_int_equal(s.r.outcome, OP_UNKNOWN);
    assert_int_equal(c->made, 1);
    sim_fault_force(w, SIM_FAULT_CREATE_LATE, 1, 0);
    create_now(w, TOKEN_B, &s);
    assert_int_equal(s.r.outcome, OP_UNKNOWN);
    assert_int_equal(c->made, 1);
    run_for(w, 2 * minute);
    assert_int_equal(c->made, 2);
}

static void test_lists_that_lie(void **state)
{
    struct sim *w = *state;
    struct seen s = {.w = w};

    make_vm(w, TOKEN_A);
    sim_fault_force(w, SIM_FAULT_LIST_EMPTY, 1, 0);
    list_now(w, &s);
    assert_int_equal(s.n, 0);
    assert_true(s.flag);
    make_vm(w, TOKEN_B);
    list_now(w, &s);
    assert_int_equal(s.n, 2);
    sim_fault_force(w, SIM_FAULT_LIST_PARTIAL, 1, 0);
    list_now(w, &s);
    assert_false(s.flag);
    assert_int_equal(s.r.outcome, OP_DONE);
    sim_fault_force(w, SIM_FAULT_LIST_SHORT, 1, 0);
    list_now(w, &s);
    assert_int_equal(s.n, 1);
    list_now(w, &s);
    sim_fault_force(w, SIM_FAULT_LIST_FAIL, 1, 0);
    list_now(w, &s);
    assert_int_equal(s.r.outcome, OP_REFUSED);
    sim_fault_force(w, SIM_FAULT_LIST_SLOW, 1, 0);
    list_now(w, &s);
    assert_int_equal(s.r.err.class, ERR_TIMEOUT);
    destroy_now(w, w->clouds[0]->vms.v[0], &s);
    run_for(w, minute);
    sim_fault_force(w, SIM_FAULT_LIST_STALE, 1, 0);
    list_now(w, &s);
    assert_int_equal(s.n, 2);
    list_now(w, &s);
    assert_int_equal(s.n, 1);
}

static void test_destroy_takes_time(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = make_vm(w, TOKEN_A);
    struct seen s = {.w = w};

    sim_fault_force(w, SIM_FAULT_DESTROY_SLOW, 1, 0);
    destroy_now(w, vm, &s);
    assert_int_equal(s.r.outcome, OP_DONE);
    assert_int_equal(sim_vm_state(vm), CLOUD_STOPPING);
    list_now(w, &s);
    assert_int_equal(s.n, 1);
    run_for(w, 5 * minute);
    assert_false(sim_vm_exists(vm));
    destroy_now(w, vm, &s);
    assert_int_equal(s.r.outcome, OP_DONE);
    assert_true(sim_cloud_seconds(w->clouds[0]) > 60);
}

/* --- what an instance understands ------------------------------------ */

static void test_commands(void **state)
{
    struct sim *w = *state;
    struct sim_net *n = w->net;
    struct sim_vm *vm = make_vm(w, TOKEN_A);
    struct seen s = {.w = w};

    n->runner = "12345";
    n->runner_size = 5;
    n->runner_hash = "00112233445566778899aabbccddeeff";
    n->runner_command = NULL;
    log_in(w, vm, &s);
    run_command(w, &s, "true", NULL);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 0);
    run_command(w, &s, "sudo /opt/x --list", NULL);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 127);
    run_command(w, &s, "md5sum /opt/x", NULL);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 1);
    run_command(w, &s, "sh -c 'f=/opt/x; t=$f.1; cat >$t; mv -f $t $f'",
                "1234");
    run_for(w, SIM_S);
    run_command(w, &s, "sudo /opt/x --list", NULL);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 127);
    run_command(w, &s, "sh -c 'f=/opt/x; t=$f.1; cat >$t; mv -f $t $f'",
                "12345");
    run_for(w, SIM_S);
    run_command(w, &s, "md5sum /opt/x", NULL);
    run_for(w, SIM_S);
    assert_string_equal(s.text, "00112233445566778899aabbccddeeff  /opt/x\n");
    run_command(w, &s, "sudo /opt/x --list", NULL);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 0);
    assert_null(w->failure);
}

static void test_kill(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = make_vm(w, TOKEN_A);
    struct sim_ctr *c = submit(w, 100 * minute);
    struct seen s = {.w = w};
    char command[64];

    c->job.ignore_term_us = 5 * SIM_S;
    log_in(w, vm, &s);
    start(w, c, vm, &s);
    run_for(w, SIM_S);
    assert_int_equal(c->live, 1);
    sim_api_user_cancel(w->api, c);
    snprintf(command, sizeof command, "crunch-run --kill 15 %s", c->rec.uuid);
    run_command(w, &s, command, NULL);
    run_for(w, 2 * SIM_S);
    assert_int_equal(s.n, 1);
    assert_int_equal(c->live, 1);
    run_for(w, 4 * SIM_S);
    run_command(w, &s, command, NULL);
    run_for(w, SIM_S);
    assert_int_equal(s.n, 0);
    assert_int_equal(c->rec.state, CTR_CANCELLED);
    assert_null(w->failure);
}

static void test_a_dead_runner_leaves_a_stale_tree(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = make_vm(w, TOKEN_A);
    struct sim_ctr *c = submit(w, SIM_S);
    struct seen s = {.w = w};

    sim_fault_force(w, SIM_FAULT_RUNNER_CRASH_LATE, 1, 0);
    sim_fault_force(w, SIM_FAULT_STALE_LONG, 1, 0);
    log_in(w, vm, &s);
    start(w, c, vm, &s);
    run_for(w, 5 * SIM_S);
    run_command(w, &s, "crunch-run --list", NULL);
    run_for(w, SIM_S);
    assert_non_null(strstr(s.text, " stale\n"));
    assert_int_equal(c->live, 1);
    run_for(w, 5 * minute);
    assert_int_equal(c->live, 0);
    assert_int_equal(c->rec.state, CTR_RUNNING);
    cancel_now(w, c, NULL, &s);
    assert_int_equal(c->rec.state, CTR_CANCELLED);
    assert_null(w->failure);
}

/* --- checkers -------------------------------------------------------- */

static struct sim_ctr *run_one(struct sim *w, struct seen *s,
                               struct sim_vm **vm)
{
    struct sim_ctr *c = submit(w, 100 * minute);

    *vm = make_vm(w, TOKEN_A);
    *s = (struct seen){.w = w};
    log_in(w, *vm, s);
    start(w, c, *vm, s);
    run_for(w, SIM_S);
    assert_int_equal(c->live, 1);
    assert_null(w->failure);
    return c;
}

static void test_red_destroy_of_a_healthy_instance(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm;
    struct seen s;

    run_one(w, &s, &vm);
    destroy_now(w, vm, &s);
    assert_violated(w, "destroyed, which is healthy");
}

static void test_silence_excuses_a_destroy(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm;
    struct seen s;

    run_one(w, &s, &vm);
    run_for(w, 11 * minute);
    destroy_now(w, vm, &s);
    assert_null(w->failure);
}

static void test_red_cancel_of_a_live_container(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm;
    struct seen s;
    struct sim_ctr *c = run_one(w, &s, &vm);

    cancel_now(w, c, NULL, &s);
    assert_violated(w, "which has a live payload");
}

static void test_red_revoke_of_a_healthy_attempt(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm;
    struct seen s;
    struct sim_ctr *c = run_one(w, &s, &vm);

    revoke_now(w, c, &s);
    assert_violated(w, "revoked under its payload");
}

static void test_red_kill_without_cause(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm;
    struct seen s;
    struct sim_ctr *c = run_one(w, &s, &vm);

    sim_proc_term(vm->machine->procs.v[0]);
    run_for(w, SIM_S);
    assert_int_equal(c->rec.state, CTR_CANCELLED);
    assert_violated(w, "killed without a cause");
}

static void test_red_unlock_costs_an_attempt(void **state)
{
    struct sim *w = *state;
    struct sim_ctr *c = submit(w, SIM_S);
    struct seen s = {.w = w};

    lock_now(w, c, &s);
    unlock_now(w, c, &s);
    assert_violated(w, "nothing was started");
}

static void test_red_cancel_without_cause(void **state)
{
    struct sim *w = *state;
    struct sim_ctr *c = submit(w, SIM_S);
    struct seen s = {.w = w};

    lock_now(w, c, &s);
    cancel_now(w, c, NULL, &s);
    assert_violated(w, "cancelled without a cause");
}

static void test_red_foreign_instance(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = sim_cloud_add_foreign(w->clouds[0], "other");
    struct seen s = {.w = w};

    destroy_now(w, vm, &s);
    assert_violated(w, "foreign instance");
}

static void test_red_instance_without_need(void **state)
{
    struct sim *w = *state;

    make_vm(w, TOKEN_A);
    run_for(w, 10 * minute);
    check_idle(w, 20 * minute);
    assert_null(w->failure);
    check_idle(w, 5 * minute);
    assert_violated(w, "nothing has been wanted");
}

static void test_red_end(void **state)
{
    struct sim *w = *state;

    check_end(w);
    assert_null(w->failure);
    submit(w, SIM_S);
    check_end(w);
    assert_violated(w, "still Queued at the end");
}

static void test_red_instance_left(void **state)
{
    struct sim *w = *state;

    make_vm(w, TOKEN_A);
    check_end(w);
    assert_violated(w, "left at the end");
}

static void test_red_start_on_another_machine(void **state)
{
    struct sim *w = *state;
    struct sim_vm *a = make_vm(w, TOKEN_A), *b = make_vm(w, TOKEN_B);
    struct sim_ctr *c = submit(w, SIM_S);
    struct seen s = {.w = w};

    log_in(w, a, &s);
    start(w, c, b, &s);
    assert_violated(w, "but its intent says");
}

static void test_red_overcommit(void **state)
{
    struct sim *w = *state;
    struct sim_job big = {.vcpus = 2, .run_us = minute};
    struct sim_vm *vm;
    struct seen s;

    run_one(w, &s, &vm);
    start(w, sim_api_submit(w->api, &big), vm, &s);
    run_for(w, SIM_S);
    assert_violated(w, "over-committed");
}

static void test_red_stdin_before_trust(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm = make_vm(w, TOKEN_A);
    struct seen s = {.w = w, .flag = true};

    log_in(w, vm, &s);
    run_command(w, &s, "true", NULL);
    run_for(w, SIM_S);
    assert_null(w->failure);
    run_command(w, &s, "true", "secret");
    run_for(w, SIM_S);
    assert_int_equal(s.r.outcome, OP_REFUSED);
    assert_violated(w, "stdin on an unapproved session");
}

static void test_red_second_payload(void **state)
{
    struct sim *w = *state;
    struct sim_vm *vm;
    struct seen s;
    struct sim_ctr *c = run_one(w, &s, &vm);

    c->live++; /* a second one, somewhere */
    check_payload_start(w, vm->machine->procs.v[0]);
    assert_violated(w, "live payloads");
    c->live--;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, script_set_up, script_tear_down)
        T(test_unlock_gives_up_after_ten_locks),
        T(test_cancelled_ones_are_retried_twice),
        T(test_only_the_present_attempt_counts),
        T(test_user_cancel_and_hold),
        T(test_lists_are_paged),
        T(test_the_feed),
        T(test_limits_of_the_cloud),
        T(test_unknown_creates),
        T(test_lists_that_lie),
        T(test_destroy_takes_time),
        T(test_commands),
        T(test_kill),
        T(test_a_dead_runner_leaves_a_stale_tree),
        T(test_red_destroy_of_a_healthy_instance),
        T(test_silence_excuses_a_destroy),
        T(test_red_cancel_of_a_live_container),
        T(test_red_revoke_of_a_healthy_attempt),
        T(test_red_kill_without_cause),
        T(test_red_unlock_costs_an_attempt),
        T(test_red_cancel_without_cause),
        T(test_red_foreign_instance),
        T(test_red_instance_without_need),
        T(test_red_end),
        T(test_red_instance_left),
        T(test_red_start_on_another_machine),
        T(test_red_overcommit),
        T(test_red_stdin_before_trust),
        T(test_red_second_payload),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
