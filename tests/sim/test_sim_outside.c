/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named scenarios: the real core/dispatch in a world where one thing goes
 * wrong with the cloud, the API server or the journal, or where users and
 * operators step in.
 */

#include "tests/sim/scenario.h"

/* --- the cloud ------------------------------------------------------- */

static void test_one_wrong_empty_list(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 300), *d = rig_submit(r, 4, 300);

        rig_start(r);
        run_until_live(r);
        run_s(r, 5 * MINUTE / 2);
        sim_fault_force(r->w, SIM_FAULT_LIST_EMPTY, 1, 0);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(r->w->faults[SIM_FAULT_LIST_EMPTY].count, 1);
        assert_complete(c);
        assert_complete(d);
        assert_int_equal(r->cloud->made, 2);
    }
}

static void test_instance_dies_under_its_container(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 300), *d = rig_submit(r, 4, 300);

        rig_start(r);
        while ((c->live == 0 || d->live == 0) && !r->w->failure)
            run_s(r, 1);
        run_s(r, 20);
        sim_vm_die(c->starts.v[0].machine->vm);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
        assert_complete(sim_api_last(c));
        assert_complete(d);
    }
}

static void test_quota_costs_no_attempt(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        r->cloud->quota = 1;
        rig_start(r);
        for (int i = 0; i < 5; i++)
            rig_submit(r, 2, 40);
        rig_run(r, long_time, rig_all_final);
        for (int i = 0; i < 5; i++) {
            assert_complete(r->w->api->ctrs.v[i]);
            assert_int_equal(r->w->api->ctrs.v[i]->rec.lock_count, 1);
        }
        assert_int_equal(r->w->api->unlocks, 0);
    }
}

static void test_capacity_comes_back(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 2, 20), *d = rig_submit(r, 4, 20);

        sim_cloud_limit_type(r->cloud, "small", 0);
        rig_start(r);
        run_s(r, 6 * MINUTE);
        assert_int_equal(c->final_us, 0);
        assert_complete(d);
        sim_cloud_limit_type(r->cloud, "small", 5);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_int_equal(c->rec.lock_count, 1);
    }
}

static void test_rate_limit_is_kept(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        r->cloud->create_gap_us = 15 * SIM_S;
        rig_start(r);
        for (int i = 0; i < 5; i++)
            rig_submit(r, 8, 100);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(r->w->api->unlocks, 0);
        /* Refusals are obeyed, not hammered. */
        assert_true(r->cloud->creates < 40);
    }
}

/* One container needs one instance, whatever became of the create's reply. */
static void one_instance(enum sim_fault f)
{
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 30);

        sim_fault_force(r->w, f, 1, 0);
        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(r->w->faults[f].count, 1);
        assert_complete(c);
        assert_int_equal(c->rec.lock_count, 1);
        rig_run(r, 300 * (int64_t) SIM_S, NULL);
        assert_int_equal(r->cloud->made, 1);
    }
}

static void test_create_without_reply(void **state)
{
    (void) state;
    one_instance(SIM_FAULT_CREATE_NO_REPLY);
}

static void test_create_lost(void **state)
{
    (void) state;
    one_instance(SIM_FAULT_CREATE_LOST);
}

static void test_create_after_the_deadline(void **state)
{
    (void) state;
    one_instance(SIM_FAULT_CREATE_LATE);
}

static void test_create_not_listed_for_a_while(void **state)
{
    (void) state;
    one_instance(SIM_FAULT_CREATE_HIDDEN);
}

static void test_create_fails_after_it_was_accepted(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 30);

        sim_fault_force(
            r->w, seed_ % 2 ? SIM_FAULT_CREATE_DOOMED : SIM_FAULT_VM_DUD, 1, 0);
        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_int_equal(c->rec.lock_count, 1);
        assert_int_equal(r->cloud->made, 2);
    }
}

static void test_destroy_goes_wrong(void **state)
{
    static const enum sim_fault faults[] = {
        SIM_FAULT_DESTROY_SLOW, SIM_FAULT_DESTROY_REFUSED,
        SIM_FAULT_DESTROY_LOST, SIM_FAULT_DESTROY_NO_REPLY};

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(faults); i++)
        EACH_SEED(r)
        {
            sim_fault_force(r->w, faults[i], 2, 0);
            rig_submit(r, 1, 5);
            rig_start(r);
        }
}

static void test_foreign_instances_are_left_alone(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_vm *vm = sim_cloud_add_foreign(r->cloud, "another-set");

        rig_start(r);
        rig_submit(r, 1, 5);
        rig_run(r, long_time, rig_quiet);
        run_s(r, 10 * MINUTE);
        assert_int_equal(sim_vm_state(vm), CLOUD_RUNNING);
    }
}

/* --- users and operators --------------------------------------------- */

static void test_impossible_container(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 64, 10);
        struct sim_job job = {.invalid = "mounts: not an object"};
        struct sim_ctr *d = sim_api_submit(r->w->api, &job);

        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
        assert_non_null(strstr(c->error, "VCPUs"));
        assert_null(c->retry);
        assert_int_equal(d->rec.state, CTR_CANCELLED);
        assert_non_null(strstr(d->error, "mounts: not an object"));
        assert_null(d->retry);
        assert_int_equal(r->cloud->creates, 0);
    }
}

static void test_cancel_of_a_running_container(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_job job = {.run_us = 2000 * (int64_t) SIM_S};
        struct sim_ctr *c;

        job.ignore_term_us = (int64_t) (seed_ % 3) * 5 * SIM_S;
        c = sim_api_submit(r->w->api, &job);
        rig_start(r);
        run_until_live(r);
        run_s(r, 5);
        sim_api_user_cancel(r->w->api, c);
        run_s(r, MINUTE);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
        assert_null(c->retry);
        assert_int_equal(r->cloud->destroys, 0);
    }
}

/* Not even KILL ends it soon: the instance has to go. */
static void test_cancel_of_an_unkillable_container(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_job job = {.run_us = 2000 * (int64_t) SIM_S,
                              .ignore_term_us = 1500 * (int64_t) SIM_S};
        struct sim_ctr *c = sim_api_submit(r->w->api, &job);

        rig_start(r);
        run_until_live(r);
        run_s(r, 5);
        sim_api_user_cancel(r->w->api, c);
        rig_run(r, 600 * (int64_t) SIM_S, rig_all_final);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
    }
}

static void test_user_hold(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 20), *d = rig_submit(r, 1, 20);

        r->cloud->quota_until_us = 120 * (int64_t) SIM_S;
        sim_api_user_hold(r->w->api, d, 300 * (int64_t) SIM_S);
        rig_start(r);
        run_s(r, 30);
        sim_api_user_hold(r->w->api, c, 300 * (int64_t) SIM_S);
        run_s(r, 4 * MINUTE);
        assert_int_equal(c->final_us, 0);
        assert_int_equal(c->payload_starts, 0);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_complete(d);
    }
}

static void test_cancel_while_it_waits(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 20);

        r->cloud->quota_until_us = 600 * (int64_t) SIM_S;
        rig_start(r);
        run_s(r, 30);
        sim_api_user_cancel(r->w->api, c);
        rig_run(r, 120 * (int64_t) SIM_S, rig_all_final);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
    }
}

static void test_operator_hold_and_drain(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        const char *id;

        rig_submit(r, 1, 5);
        rig_start(r);
        rig_run(r, long_time, rig_all_final);
        id = r->cloud->vms.v[0]->id;
        assert_int_equal(dispatch_set_behavior(r->d, id, DISPATCH_HOLD, NULL),
                         0);
        run_s(r, 20 * MINUTE);
        assert_int_equal(sim_cloud_count(r->cloud), 1);
        rig_crash(r);
        run_s(r, 10 * MINUTE);
        assert_int_equal(sim_cloud_count(r->cloud), 1);
        assert_int_equal(dispatch_set_behavior(r->d, id, DISPATCH_DRAIN, NULL),
                         0);
        assert_true(rig_run(r, 120 * (int64_t) SIM_S, rig_quiet));
        assert_int_equal(
            dispatch_set_behavior(r->d, "i-none", DISPATCH_DRAIN, NULL), -1);
    }
}

static void test_operator_kills(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 2000);
        struct sim_ctr *d = rig_submit(r, 8, 2000);

        rig_start(r);
        while ((c->live == 0 || d->live == 0) && !r->w->failure)
            run_s(r, 1);
        run_s(r, 10);
        struct sim_machine *m = c->starts.v[0].machine;
        m->operator_kill = true;
        assert_int_equal(dispatch_kill_instance(r->d, m->vm->id, "test", NULL),
                         0);
        d->operator_kill = true;
        d->job.run_us = SIM_S; /* of its retry */
        c->job.run_us = SIM_S;
        assert_int_equal(
            dispatch_kill_container(r->d, d->rec.uuid, "test", NULL), 0);
        rig_run(r, long_time, rig_all_final);
        assert_int_equal(c->rec.state, CTR_CANCELLED);
        assert_int_equal(d->rec.state, CTR_CANCELLED);
        assert_complete(sim_api_last(c));
        assert_complete(sim_api_last(d));
    }
}

/* --- the API server and the journal ---------------------------------- */

static void test_api_server_down(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 30);

        rig_start(r);
        run_until_live(r);
        sim_api_down(r->w->api, 200 * (int64_t) SIM_S);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_int_equal(r->cloud->made, 1);
    }
}

/* Every one of the first writes is lost, before or after its commit. */
static void test_lost_messages(void **state)
{
    static const enum sim_fault faults[] = {
        SIM_FAULT_API_LOST_REQUEST, SIM_FAULT_API_LOST_REPLY,
        SIM_FAULT_API_SLOW, SIM_FAULT_API_BUSY};

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(faults); i++)
        for (unsigned skip = 0; skip < 12; skip++)
            EACH_SEED(r)
            {
                struct sim_ctr *c = rig_submit(r, 1, 30);

                sim_fault_force(r->w, faults[i], 1, skip);
                rig_start(r);
                rig_run(r, long_time, rig_all_final);
                assert_complete(c);
            }
}

static void test_journal_fails(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        struct sim_ctr *c = rig_submit(r, 1, 30);

        rig_start(r);
        while (!r->ready && !r->w->failure)
            rig_run(r, SIM_MS, NULL);
        sim_journal_fail(r->w->journal, 100 * (int64_t) SIM_S);
        run_s(r, 90);
        assert_int_equal(r->cloud->creates, 0);
        rig_run(r, long_time, rig_all_final);
        assert_complete(c);
        assert_int_equal(r->cloud->made, 1);
    }
}

/* An argument is a pattern of test names. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_wrong_empty_list),
        cmocka_unit_test(test_instance_dies_under_its_container),
        cmocka_unit_test(test_quota_costs_no_attempt),
        cmocka_unit_test(test_capacity_comes_back),
        cmocka_unit_test(test_rate_limit_is_kept),
        cmocka_unit_test(test_create_without_reply),
        cmocka_unit_test(test_create_lost),
        cmocka_unit_test(test_create_after_the_deadline),
        cmocka_unit_test(test_create_not_listed_for_a_while),
        cmocka_unit_test(test_create_fails_after_it_was_accepted),
        cmocka_unit_test(test_destroy_goes_wrong),
        cmocka_unit_test(test_foreign_instances_are_left_alone),
        cmocka_unit_test(test_impossible_container),
        cmocka_unit_test(test_cancel_of_a_running_container),
        cmocka_unit_test(test_cancel_of_an_unkillable_container),
        cmocka_unit_test(test_user_hold),
        cmocka_unit_test(test_cancel_while_it_waits),
        cmocka_unit_test(test_operator_hold_and_drain),
        cmocka_unit_test(test_operator_kills),
        cmocka_unit_test(test_api_server_down),
        cmocka_unit_test(test_lost_messages),
        cmocka_unit_test(test_journal_fails),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
