/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named scenarios: the real core/dispatch in a world where one thing goes
 * wrong with the dispatcher itself, a runner, or an instance. What is asserted
 * here comes on top of the checkers of core/sim, which are on all the time.
 */

#include "tests/sim/scenario.h"

/* --- the walk of one container --------------------------------------- */

static void test_one_container(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 30);

        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_int_equal(c->rec.lock_count, 1);
        assert_int_equal(c->rec.attempt, 1);
        assert_int_equal(r->cloud->made, 1);
        assert_string_equal(r->cloud->vms.v[0]->type, "small");
    }
}

static void test_many_containers(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        rig_start(r);
        for (int i = 0; i < 40; i++)
            rig_submit(r, i % 4 + 1, i % 7 * 10);
        rig_run(r, long_time, rig_all_final);
        for (int i = 0; i < 40; i++)
            assert_complete(r->w->api->ctrs.v[i]);
        assert_int_equal(r->w->api->unlocks, 0);
    }
}

static void test_instance_is_used_again(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        rig_start(r);
        for (int i = 0; i < 4; i++) {
            struct sim_ctr *c = rig_submit(r, 1, 5);

            rig_run(r, long_time, rig_all_final);
            assert_complete(c);
        }
        assert_int_equal(r->cloud->made, 1);
    }
}

/* On an instance that is up, a container starts at once: nothing waits for a
 * poll, a probe or a list. */
static void test_warm_start_is_quick(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 5);

        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        for (int i = 0; i < 10; i++) {
            run_s(r, 2);
            c = rig_submit(r, 2, 1);
            rig_run(r, SIM_S, one_live);
            assert_int_equal(c->live, 1);
            rig_run(r, long_time, rig_all_final);
        }
        assert_int_equal(r->cloud->made, 1);
    }
}

/* The next one takes the place of one that ended within a second. */
static void test_a_free_slot_is_taken(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        int64_t began;

        r->cfg.max_instances = 1;
        rig_start(r);
        for (int i = 0; i < 20; i++)
            rig_submit(r, 2, 1);
        run_until_live(r);
        began = r->w->now_us;
        rig_run(r, long_time, rig_all_final);
        assert_true(r->w->now_us - began < 40 * (int64_t) SIM_S);
        assert_int_equal(r->cloud->made, 1);
    }
}

static void test_instances_are_limited(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        size_t most = 0;

        r->cfg.max_instances = 3;
        rig_start(r);
        for (int i = 0; i < 12; i++)
            rig_submit(r, 8, 60);
        for (int i = 0; i < 1200 && !rig_all_final(r); i++) {
            run_s(r, 1);
            if (i == 20 || i == 200)
                rig_crash(r);
            if (sim_cloud_count(r->cloud) > most)
                most = sim_cloud_count(r->cloud);
        }
        assert_int_equal(most, 3);
        assert_true(rig_all_final(r));
    }
}

static void test_two_clouds(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_cloud *second = rig_add_cloud(r, "second");
        struct sim_ctr *c = rig_submit(r, 2, 120), *d = rig_submit(r, 8, 120);

        rig_offer(r, "large", "second");
        rig_start(r);
        while ((c->live == 0 || d->live == 0) && !r->w->failure)
            run_s(r, 1);
        run_s(r, 10);
        rig_crash(r);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_complete(d);
        assert_int_equal(r->cloud->made, 1);
        assert_int_equal(second->made, 1);
    }
}

/* --- the dispatcher dies --------------------------------------------- */

/* A run in which every point is passed: a runner dies early (requeue), one
 * instance dies (cancel, retry). */
static void eventful(struct rig *r)
{
    struct sim_ctr *long_one = rig_submit(r, 2, 200);

    sim_fault_force(r->w, SIM_FAULT_RUNNER_CRASH_EARLY, 3, 1);
    rig_start(r);
    for (int i = 0; i < 4; i++)
        rig_submit(r, 1, 20 + i);
    for (int i = 0; i < 600 && long_one->live == 0; i++) {
        run_s(r, 1);
        long_one = sim_api_last(long_one); /* the one that crashed was this */
    }
    for (size_t i = 0; i < long_one->starts.n; i++)
        if (long_one->starts.v[i].state == SIM_START_RUNS)
            sim_vm_die(long_one->starts.v[i].machine->vm);
    rig_run(r, long_time, rig_all_final);
}

static void test_crash_at_every_point(void **state)
{
    (void) state;
    for (unsigned p = 0; p < SIM_POINT_COUNT; p++)
        EACH_SEED(r)
        {
            sim_point_arm(r->w, (enum sim_point) p, seed_ % 2 + 1);
            eventful(r);
            if (seed_ % 2 == 0 && r->crashes != 1)
                fail_msg("point %s was not passed", sim_point_label(p));
            for (size_t i = 0; i < r->w->api->ctrs.n; i++)
                assert_complete(sim_api_last(r->w->api->ctrs.v[i]));
        }
}

static void test_restarts_cost_no_attempt(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c;

        r->cloud->quota_until_us = 600 * (int64_t) SIM_S;
        rig_start(r);
        c = rig_submit(r, 1, 10);
        for (int i = 0; i < 5; i++) {
            run_s(r, MINUTE);
            if (r->d)
                rig_crash(r);
        }
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_int_equal(c->rec.lock_count, 1);
    }
}

static void count_placed(void *arg, const struct dispatch_container *c)
{
    *(int *) arg += c->n_types > 0 && c->c->state == CTR_RUNNING;
}

static void test_running_containers_are_adopted(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 300), *d = rig_submit(r, 4, 300);

        rig_start(r);
        run_until_live(r);
        int placed = 0;

        run_s(r, MINUTE);
        rig_crash(r);
        run_s(r, MINUTE);
        dispatch_each_container(r->d, count_placed, &placed);
        assert_int_equal(placed, 2); /* what they need is known again */
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_complete(d);
        assert_int_equal(r->cloud->made, 2);
        assert_int_equal(c->rec.lock_count, 1);
    }
}

/* Suspended for longer than TimeoutProbe: when it goes on, nothing is silent
 * because of that. */
static void test_a_suspended_dispatcher_gives_nothing_up(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 900), *d = rig_submit(r, 4, 900);

        rig_start(r);
        while ((c->live == 0 || d->live == 0) && !r->w->failure)
            run_s(r, 1);
        for (int i = 0; i < 3; i++) {
            sim_freeze(r->w, 200 * (int64_t) SIM_S);
            run_s(r, 220);
        }
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_complete(d);
        assert_int_equal(r->cloud->made, 2);
    }
}

static void on_stopped(void *arg)
{
    *(bool *) arg = true;
}

static void test_stop_leaves_work_alone(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 300);
        bool stopped = false;

        rig_start(r);
        run_until_live(r);
        dispatch_stop(r->d, on_stopped, &stopped);
        assert_false(stopped);
        r->reasons_off = true;
        run_s(r, MINUTE);
        assert_true(stopped);
        assert_int_equal(c->live, 1);
        rig_crash(r);
        r->reasons_off = false;
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
    }
}

/* --- runners --------------------------------------------------------- */

static void test_requeue_after_early_crash(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 20);

        sim_fault_force(r->w, SIM_FAULT_RUNNER_CRASH_EARLY, 1, 0);
        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_int_equal(c->rec.attempt, 2);
    }
}

static void test_crash_between_running_and_payload(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 20);

        sim_fault_force(r->w, SIM_FAULT_RUNNER_CRASH_EARLY, 1, 1);
        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
        assert_int_equal(c->payload_starts, 0);
        assert_complete(sim_api_last(c));
    }
}

static void test_crash_under_the_payload(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 60);

        sim_fault_force(r->w, SIM_FAULT_RUNNER_CRASH_LATE, 1, 0);
        sim_fault_force(r->w, SIM_FAULT_STALE_LONG, seed_ % 2, 0);
        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
        assert_complete(sim_api_last(c));
    }
}

static void test_broken_node_is_drained(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 200);

        rig_start(r);
        run_until_live(r);
        sim_machine_break(r->cloud->vms.v[0]->machine);
        run_s(r, 30);
        struct sim_ctr *next = rig_submit(r, 1, 10);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_complete(next);
        assert_int_equal(r->cloud->made, 2);
    }
}

static void test_reboot_loses_what_ran(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 100), *next;

        rig_start(r);
        run_until_live(r);
        run_s(r, 10);
        sim_machine_reboot(r->cloud->vms.v[0]->machine);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
        assert_complete(sim_api_last(c));
        next = rig_submit(r, 1, 5);
        rig_run(r, long_time, rig_all_final);
        assert_complete(next);
        assert_int_equal(r->cloud->made, 1);
    }
}

/* Another machine answers at the address: at first contact, or later. It gets
 * no token and no input (core/sim fails the run if it did). */
static void test_an_impostor_gets_nothing(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 400);
        struct sim_machine *m;

        rig_start(r);
        while (r->cloud->vms.n == 0 && !r->w->failure)
            run_s(r, 1);
        m = r->cloud->vms.v[0]->machine;
        if (seed_ % 2 == 0)
            run_until_live(r);
        m->impostor = true;
        sim_net_break_all(r->w->net, m, "connection reset");
        rig_run(r, long_time, rig_all_final);
        assert_complete(sim_api_last(c));
        assert_true(r->cloud->made >= 2);
    }
}

/* --- silence --------------------------------------------------------- */

static void test_late_start_of_an_accepted_command(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 30);

        sim_fault_force(r->w, SIM_FAULT_START_LATE, 1, 0);
        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        assert_complete(sim_api_last(c));
        assert_int_equal(r->w->faults[SIM_FAULT_START_LATE].count, 1);
        rig_run(r, 300 * (int64_t) SIM_S, NULL);
    }
}

/* Its user puts a container on hold whose start command is in doubt: it may be
 * unlocked only after its attempt was revoked. */
static void test_hold_while_a_start_is_in_doubt(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 30);

        sim_fault_force(r->w, SIM_FAULT_START_LATE, 1, 0);
        rig_start(r);
        while (c->starts.n == 0 && !r->w->failure)
            rig_run(r, SIM_MS, NULL);
        sim_api_user_hold(r->w->api, c, 300 * (int64_t) SIM_S);
        run_s(r, 60);
        assert_int_equal(c->rec.state, CTR_QUEUED);
        assert_true(c->revoked);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
    }
}

/* The machine freezes with the start command in its hands, for longer than
 * TimeoutProbe; it thaws after the container was released. */
static void test_frozen_start_thaws_after_release(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 30);

        r->cloud->stop_lo_us = r->cloud->stop_hi_us = 300 * (int64_t) SIM_S;
        rig_start(r);
        while (c->starts.n == 0 && !r->w->failure)
            rig_run(r, SIM_MS, NULL);
        sim_machine_hang(c->starts.v[0].machine, 200 * (int64_t) SIM_S);
        rig_run(r, long_time, rig_all_final);
        assert_complete(sim_api_last(c));
        assert_true(r->cloud->made >= 2);
    }
}

static void test_short_hang_changes_nothing(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 300);

        rig_start(r);
        run_until_live(r);
        run_s(r, 20);
        sim_machine_hang(r->cloud->vms.v[0]->machine, 70 * (int64_t) SIM_S);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_int_equal(r->cloud->made, 1);
    }
}

static void test_long_hang_loses_the_container(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 900);
        struct sim_ctr *other = rig_submit(r, 8, 700);

        rig_start(r);
        while ((c->live == 0 || other->live == 0) && !r->w->failure)
            run_s(r, 1);
        run_s(r, 20);
        sim_machine_hang(c->starts.v[0].machine, 400 * (int64_t) SIM_S);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
        assert_complete(sim_api_last(c));
        assert_complete(other);
    }
}

static void test_cut_off_instance(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 100);

        rig_start(r);
        run_until_live(r);
        run_s(r, 20);
        sim_machine_cut(r->cloud->vms.v[0]->machine, 1000 * (int64_t) SIM_S);
        rig_run(r, long_time, rig_all_final);
        assert_complete(sim_api_last(c));
    }
}

static void test_broken_sessions_and_streams(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 200);

        rig_start(r);
        run_until_live(r);
        for (int i = 0; i < 6; i++) {
            struct sim_machine *m = r->cloud->vms.v[0]->machine;

            run_s(r, 15);
            if (i % 2)
                sim_net_break_all(r->w->net, m, "connection reset");
            else
                sim_watch_close_all(m);
        }
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_int_equal(r->cloud->made, 1);
    }
}

/* An argument is a pattern of test names. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_container),
        cmocka_unit_test(test_many_containers),
        cmocka_unit_test(test_instance_is_used_again),
        cmocka_unit_test(test_warm_start_is_quick),
        cmocka_unit_test(test_a_free_slot_is_taken),
        cmocka_unit_test(test_instances_are_limited),
        cmocka_unit_test(test_two_clouds),
        cmocka_unit_test(test_crash_at_every_point),
        cmocka_unit_test(test_restarts_cost_no_attempt),
        cmocka_unit_test(test_running_containers_are_adopted),
        cmocka_unit_test(test_a_suspended_dispatcher_gives_nothing_up),
        cmocka_unit_test(test_stop_leaves_work_alone),
        cmocka_unit_test(test_requeue_after_early_crash),
        cmocka_unit_test(test_crash_between_running_and_payload),
        cmocka_unit_test(test_crash_under_the_payload),
        cmocka_unit_test(test_broken_node_is_drained),
        cmocka_unit_test(test_reboot_loses_what_ran),
        cmocka_unit_test(test_an_impostor_gets_nothing),
        cmocka_unit_test(test_late_start_of_an_accepted_command),
        cmocka_unit_test(test_hold_while_a_start_is_in_doubt),
        cmocka_unit_test(test_frozen_start_thaws_after_release),
        cmocka_unit_test(test_short_hang_changes_nothing),
        cmocka_unit_test(test_long_hang_loses_the_container),
        cmocka_unit_test(test_cut_off_instance),
        cmocka_unit_test(test_broken_sessions_and_streams),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
