/* SPDX-License-Identifier: Apache-2.0 */

/* May an instance be created, and where: scopes, placements, backends. */

#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/base/text.h"
#include "core/dispatch/guard.h"
#include "core/dispatch/holdoff.h"
#include "core/model/dispatch_cfg.h"
#include "core/model/itypes.h"
#include "core/port/cloud.h"

static struct itype a1 = {.name = "a1", .provider_type = "A1"};
static struct itype a2 = {.name = "a2", .provider_type = "A2"};
static struct itype b3 = {.name = "b3", .provider_type = "B3"};
static struct itype b4 = {.name = "b4", .provider_type = "B4"};
static struct itype a1p = {.name = "a1p", .provider_type = "A1",
                           .preemptible = true};
static struct itype b3p = {.name = "b3p", .provider_type = "B3",
                           .preemptible = true};
static struct itype b4p = {.name = "b4p", .provider_type = "B4",
                           .preemptible = true};

/* The peer's stub: a group is the first letter, spot apart. */
static void group(struct cloud_port *c, const char *provider_type,
                  bool preemptible, char *out, size_t size)
{
    (void) c;
    snprintf(out, size, "%c%s", provider_type[0], preemptible ? "-p" : "");
}

static struct cloud_port cloud[2];
static struct dispatch_backend cfg[2];
static struct guard_backend backends[2];
static struct holdoffs *holds[2];
static struct guard_in in;
static struct guard_place place;

static int setup(void **state)
{
    (void) state;
    memset(cfg, 0, sizeof cfg);
    for (int i = 0; i < 2; i++) {
        cloud[i] = (struct cloud_port) {.quota_group = group};
        holds[i] = holdoffs_create();
        snprintf(cfg[i].name, sizeof cfg[i].name, "cloud%d", i);
        backends[i] = (struct guard_backend) {
            .cloud = &cloud[i], .cfg = &cfg[i], .holds = holds[i],
            .open = true, .listed = true};
    }
    in = (struct guard_in) {.journal_ok = true, .backends = backends,
                            .n_backends = 1};
    return 0;
}

static int teardown(void **state)
{
    (void) state;
    holdoffs_destroy(holds[0]);
    holdoffs_destroy(holds[1]);
    return 0;
}

static void hold(int backend, const struct itype *it, const char *placement,
                 enum err_class class, enum err_scope scope)
{
    char key[GUARD_KEY_MAX];
    struct err err;

    err_set(&err, class, "no");
    holdoffs_hit(holds[backend], guard_key(&cloud[backend], it, placement,
                                           scope, key), &err, 0, 0);
}

static enum plan_why ask(const struct itype *it)
{
    return guard_create(&in, it, &place);
}

static void quota_groups_and_types_are_apart(void **state)
{
    (void) state;
    hold(0, &a1, "", ERR_CAPACITY, ERR_SCOPE_GROUP);
    hold(0, &b4p, "", ERR_CAPACITY, ERR_SCOPE_TYPE);
    assert_int_equal(ask(&a1), PLAN_CAPACITY);
    assert_int_equal(ask(&a2), PLAN_CAPACITY);
    assert_int_equal(ask(&b4p), PLAN_CAPACITY);
    assert_int_equal(place.until_us, 7500000);
    assert_string_equal(place.error->text, "no");
    assert_int_equal(ask(&a1p), PLAN_NONE);
    assert_int_equal(ask(&b3), PLAN_NONE);
    assert_int_equal(ask(&b3p), PLAN_NONE);
    assert_int_equal(ask(&b4), PLAN_NONE);
    in.now_us = 8000000; /* over */
    assert_int_equal(ask(&a1), PLAN_NONE);
}

static void wider_scopes(void **state)
{
    (void) state;
    hold(0, &a1p, "", ERR_QUOTA, ERR_SCOPE_MARKET);
    assert_int_equal(ask(&b4p), PLAN_QUOTA);
    assert_int_equal(ask(&b4), PLAN_NONE);
    hold(0, &a1, "", ERR_RATE_LIMITED, ERR_SCOPE_NONE); /* = account */
    assert_int_equal(ask(&b4), PLAN_CLOUD_BUSY);
    hold(0, &a1, "", ERR_AUTH, ERR_SCOPE_ACCOUNT);
    assert_int_equal(ask(&b3), PLAN_CLOUD_DOWN);
}

static void placements_are_tried_in_order(void **state)
{
    (void) state;
    text_copy(cfg[0].placements[0], "za", sizeof cfg[0].placements[0]);
    text_copy(cfg[0].placements[1], "zb", sizeof cfg[0].placements[1]);
    cfg[0].n_placements = 2;
    assert_int_equal(ask(&a1), PLAN_NONE);
    assert_string_equal(place.placement, "za");
    hold(0, &a1, "za", ERR_CAPACITY, ERR_SCOPE_TYPE);
    assert_int_equal(ask(&a1), PLAN_NONE);
    assert_string_equal(place.placement, "zb");
    assert_int_equal(ask(&a2), PLAN_NONE);
    assert_string_equal(place.placement, "za");
    hold(0, &a1, "za", ERR_CAPACITY, ERR_SCOPE_ZONE);
    assert_int_equal(ask(&a2), PLAN_NONE);
    assert_string_equal(place.placement, "zb");
    hold(0, &a1, "zb", ERR_RATE_LIMITED, ERR_SCOPE_ZONE);
    assert_int_equal(ask(&a2), PLAN_CLOUD_BUSY); /* the first to end */
    assert_string_equal(place.placement, "zb");
    assert_int_equal(place.until_us, 750000);
    in.now_us = 800000;
    assert_int_equal(ask(&a2), PLAN_NONE);
    assert_string_equal(place.placement, "zb");
}

static void several_backends(void **state)
{
    (void) state;
    in.n_backends = 2;
    backends[0].open = false;
    assert_int_equal(ask(&a1), PLAN_NONE);
    assert_int_equal(place.backend, 1);
    backends[0].open = true;
    cfg[0].max_instances = 3;
    backends[0].instances = 3;
    assert_int_equal(ask(&a1), PLAN_NONE);
    assert_int_equal(place.backend, 1);
    backends[1].listed = false;
    assert_int_equal(ask(&a1), PLAN_MAX_INSTANCES); /* the first one's */
    backends[0].instances = 2;
    assert_int_equal(ask(&a1), PLAN_NONE);
    assert_int_equal(place.backend, 0);
    backends[1].listed = true;
    text_copy(a1.backend, "cloud1", sizeof a1.backend);
    assert_int_equal(ask(&a1), PLAN_NONE);
    assert_int_equal(place.backend, 1);
    text_copy(a1.backend, "nowhere", sizeof a1.backend);
    assert_int_equal(ask(&a1), PLAN_CLOUD_DOWN);
    a1.backend[0] = '\0';
}

static void preconditions(void **state)
{
    (void) state;
    in.journal_ok = false;
    assert_int_equal(ask(&a1), PLAN_JOURNAL);
    in.stopping = true;
    assert_int_equal(ask(&a1), PLAN_BUSY);
    in.stopping = false;
    in.journal_ok = true;
    backends[0].listed = false; /* what is there already might do */
    assert_int_equal(ask(&a1), PLAN_CLOUD_DOWN);
    backends[0].listed = true;
    cloud[0].caps = CLOUD_CAP_SINGLE;
    assert_int_equal(ask(&a1), PLAN_NONE);
    backends[0].instances = 1;
    assert_int_equal(ask(&a1), PLAN_MAX_INSTANCES);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(quota_groups_and_types_are_apart), T(wider_scopes),
        T(placements_are_tried_in_order), T(several_backends),
        T(preconditions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
