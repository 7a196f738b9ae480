/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may change what in a container: every move for every caller against the
 * model's table, the columns, locks, priorities, requests.
 */

#include "core/apiserver/rules.h"
#include "core/model/ctr.h"
#include "core/store/store.h"
#include "tests/unit/unit.h"

#define B(name) STORE_BIT(C_##name)

static enum err_class ask(enum rules_who who, enum ctr_state from,
                          enum ctr_state to, uint64_t changed)
{
    struct err err = {0};

    if (rules_update(who, from, to, changed, &err) == 0)
        return ERR_NONE;
    assert_true(err.text[0] != '\0');
    return err.class;
}

static void no_rule_allows_a_move_that_the_model_forbids(void **state)
{
    (void) state;
    for (int who = RULES_USER; who <= RULES_PAYLOAD; who++)
        for (int from = 0; from < CTR_STATE_COUNT; from++)
            for (int to = 0; to < CTR_STATE_COUNT; to++)
                if (from != to && !ctr_move_allowed(from, to))
                    assert_int_not_equal(ask(who, from, to, 0), ERR_NONE);
}

static void moves_of_each_caller(void **state)
{
    static const struct {
        enum rules_who who;
        enum ctr_state from, to;
        enum err_class verdict;
    } cases[] = {
        {RULES_OWNER, CTR_QUEUED, CTR_LOCKED, ERR_NONE},
        {RULES_OWNER, CTR_LOCKED, CTR_QUEUED, ERR_NONE},
        {RULES_OWNER, CTR_LOCKED, CTR_RUNNING, ERR_NONE},
        {RULES_OWNER, CTR_RUNNING, CTR_COMPLETE, ERR_NONE},
        {RULES_OWNER, CTR_RUNNING, CTR_CANCELLED, ERR_NONE},
        {RULES_OWNER, CTR_COMPLETE, CTR_CANCELLED, ERR_NONE},
        {RULES_OWNER, CTR_CANCELLED, CTR_QUEUED, ERR_CONFLICT},
        {RULES_ADMIN, CTR_LOCKED, CTR_CANCELLED, ERR_NONE},
        {RULES_ADMIN, CTR_RUNNING, CTR_CANCELLED, ERR_NONE},
        {RULES_ADMIN, CTR_LOCKED, CTR_QUEUED, ERR_AUTH},
        {RULES_ADMIN, CTR_LOCKED, CTR_RUNNING, ERR_CONFLICT},
        {RULES_ADMIN, CTR_RUNNING, CTR_COMPLETE, ERR_CONFLICT},
        {RULES_ATTEMPT, CTR_LOCKED, CTR_RUNNING, ERR_NONE},
        {RULES_ATTEMPT, CTR_LOCKED, CTR_CANCELLED, ERR_NONE},
        {RULES_ATTEMPT, CTR_RUNNING, CTR_COMPLETE, ERR_NONE},
        {RULES_ATTEMPT, CTR_RUNNING, CTR_CANCELLED, ERR_NONE},
        {RULES_ATTEMPT, CTR_LOCKED, CTR_QUEUED, ERR_AUTH},
        {RULES_ATTEMPT, CTR_QUEUED, CTR_LOCKED, ERR_AUTH},
        {RULES_ATTEMPT, CTR_COMPLETE, CTR_CANCELLED, ERR_AUTH},
        {RULES_PAYLOAD, CTR_RUNNING, CTR_COMPLETE, ERR_AUTH},
        {RULES_USER, CTR_QUEUED, CTR_CANCELLED, ERR_AUTH},
        {RULES_USER, CTR_QUEUED, CTR_QUEUED, ERR_AUTH},
    };

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(ask(cases[i].who, cases[i].from, cases[i].to, 0),
                         cases[i].verdict);
}

static void columns_of_each_caller(void **state)
{
    (void) state;
    assert_int_equal(ask(RULES_OWNER, CTR_LOCKED, CTR_LOCKED,
                         B(runtime_status) | B(priority)), ERR_NONE);
    assert_int_equal(ask(RULES_OWNER, CTR_QUEUED, CTR_QUEUED,
                         B(runtime_status)), ERR_CONFLICT);
    assert_int_equal(ask(RULES_OWNER, CTR_LOCKED, CTR_QUEUED, B(cost)),
                     ERR_CONFLICT);
    assert_int_equal(ask(RULES_OWNER, CTR_LOCKED, CTR_CANCELLED,
                         B(runtime_status)), ERR_NONE);
    assert_int_equal(ask(RULES_ADMIN, CTR_RUNNING, CTR_RUNNING, B(priority)),
                     ERR_NONE);
    assert_int_equal(ask(RULES_ADMIN, CTR_RUNNING, CTR_RUNNING, B(progress)),
                     ERR_CONFLICT);
    assert_int_equal(ask(RULES_ATTEMPT, CTR_RUNNING, CTR_COMPLETE,
                         B(exit_code) | B(cost) | B(runtime_status)),
                     ERR_NONE);
    assert_int_equal(ask(RULES_ATTEMPT, CTR_RUNNING, CTR_RUNNING,
                         B(priority)), ERR_CONFLICT);
    assert_int_equal(ask(RULES_PAYLOAD, CTR_RUNNING, CTR_RUNNING,
                         B(progress) | B(output_properties)), ERR_NONE);
    assert_int_equal(ask(RULES_PAYLOAD, CTR_RUNNING, CTR_RUNNING, B(log)),
                     ERR_CONFLICT);
}

static void repeating_what_is_so_is_no_change(void **state)
{
    (void) state;
    assert_int_equal(ask(RULES_ATTEMPT, CTR_COMPLETE, CTR_COMPLETE, 0),
                     ERR_NONE);
    assert_int_equal(ask(RULES_ATTEMPT, CTR_COMPLETE, CTR_COMPLETE,
                         B(exit_code)), ERR_CONFLICT);
    assert_int_equal(ask(RULES_OWNER, CTR_CANCELLED, CTR_CANCELLED,
                         B(cost)), ERR_CONFLICT);
}

static void locks(void **state)
{
    struct err err = {0};

    (void) state;
    assert_ok(rules_lock(CTR_QUEUED, 1, &err), &err);
    assert_err(rules_lock(CTR_QUEUED, 0, &err), &err, ERR_CONFLICT);
    assert_err(rules_lock(CTR_LOCKED, 1, &err), &err, ERR_CONFLICT);
    assert_int_equal(rules_unlocked(9, 10), CTR_QUEUED);
    assert_int_equal(rules_unlocked(10, 10), CTR_CANCELLED);
}

static void priorities(void **state)
{
    const int64_t us = INT64_C(1767323045123456);

    (void) state;
    assert_int_equal(rules_priority(500, us, false, 0),
                     (INT64_C(500) << 50) - INT64_C(1767323045123));
    assert_int_equal(rules_priority(0, us, false, 0), 0);
    assert_int_equal(rules_priority(3, us, true, 77), 77);
    assert_int_equal(rules_priority(0, us, true, 77), 0);
    /* Higher is sooner; among equals, older is sooner. */
    assert_true(rules_priority(2, us, false, 0) >
                rules_priority(1, us - 1000000000, false, 0));
    assert_true(rules_priority(1, us, false, 0) >
                rules_priority(1, us + 1000, false, 0));
}

static void requests(void **state)
{
    struct err err = {0};

    (void) state;
    assert_ok(rules_request_state(CR_UNCOMMITTED, CR_COMMITTED, &err), &err);
    assert_err(rules_request_state(CR_COMMITTED, CR_UNCOMMITTED, &err), &err,
               ERR_CONFLICT);
    assert_err(rules_request_state(CR_FINAL, CR_COMMITTED, &err), &err,
               ERR_CONFLICT);
    assert_ok(rules_request_columns(CR_UNCOMMITTED, CR_UNCOMMITTED,
                                    STORE_BIT(R_command), &err), &err);
    assert_ok(rules_request_columns(CR_COMMITTED, CR_COMMITTED,
                                    STORE_BIT(R_priority), &err), &err);
    assert_err(rules_request_columns(CR_COMMITTED, CR_COMMITTED,
                                     STORE_BIT(R_command), &err), &err,
               ERR_CONFLICT);
    assert_ok(rules_request_columns(CR_FINAL, CR_FINAL, STORE_BIT(R_name),
                                    &err), &err);
    assert_err(rules_request_columns(CR_FINAL, CR_FINAL,
                                     STORE_BIT(R_priority), &err), &err,
               ERR_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rule_allows_a_move_that_the_model_forbids),
        cmocka_unit_test(moves_of_each_caller),
        cmocka_unit_test(columns_of_each_caller),
        cmocka_unit_test(repeating_what_is_so_is_no_change),
        cmocka_unit_test(locks),
        cmocka_unit_test(priorities),
        cmocka_unit_test(requests),
    };

    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
