/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pass over small worlds, most of them the peer's run queue tests.
 *
 * A world is written as lines: instances with type and state, containers in
 * scheduling order with their needs. What the plan wants is compared as one
 * line: S<container>@<instance> start, L<container> lock, M<container>:<type>
 * create for it, X<instance> end it.
 */

#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/dispatch/choose.h"
#include "core/dispatch/plan.h"
#include "core/model/ctr.h"
#include "core/model/itypes.h"

enum { TYPES = 16, MOST = 64 };

#define GIB (INT64_C(1) << 30)

static struct itype types[TYPES];
static struct itypes its = {types, TYPES};
static double factor;
static struct plan p;
static struct plan_limits lim;
static struct plan_ctr ctrs[MOST];
static struct plan_ctr *order[MOST];
static int name[MOST]; /* of containers, for the texts */
static struct plan_shape shapes[MOST];
static const struct itype *eligible[MOST][TYPES];
static uint8_t bits[MOST][TYPES / 8 + 1];
static struct plan_worker workers[2 * MOST];
static enum plan_why why_blocked[TYPES + 1]; /* by number of VCPUs */

static enum plan_why blocked(void *arg, const struct itype *it)
{
    (void) arg;
    return why_blocked[it->vcpus];
}

/* Types of so many VCPUs, 1.1 GiB RAM and 1 GiB scratch each, as the peer's. */
static int setup(void **state)
{
    (void) state;
    memset(types, 0, sizeof types);
    for (int i = 0; i < TYPES; i++) {
        struct itype *it = &types[i];

        snprintf(it->name, sizeof it->name, "type%d", i + 1);
        it->vcpus = i + 1;
        it->ram = (i + 1) * (GIB + GIB / 10);
        it->included_scratch = (i + 1) * GIB;
        it->price = 0.123 * (i + 1);
    }
    its.v = types;
    its.n = TYPES;
    factor = 1;
    memset(ctrs, 0, sizeof ctrs);
    memset(shapes, 0, sizeof shapes);
    memset(bits, 0, sizeof bits);
    memset(why_blocked, 0, sizeof why_blocked);
    p = (struct plan) {.ctrs = order, .workers = workers};
    lim = (struct plan_limits) {
        .starts = MOST, .locks = MOST, .creates = MOST, .instances = -1,
        .blocked = blocked, .whole = true};
    return 0;
}

static int teardown(void **state)
{
    (void) state;
    plan_fini(&p);
    return 0;
}

/* Only types of at least so many VCPUs are configured. */
static void types_from(int vcpus)
{
    its.v = types + vcpus - 1;
    its.n = TYPES - (size_t) vcpus + 1;
}

static struct plan_ctr *ctr(int number, bool locked, struct need need)
{
    size_t i = p.n_ctrs++;
    struct plan_shape *s = &shapes[i];
    struct ctr c = {.vcpus = need.vcpus};

    for (size_t k = 0; k < i; k++)
        if (memcmp(&shapes[k].need, &need, sizeof need) == 0)
            s = &shapes[k]; /* equal needs share a shape */
    if (s == &shapes[i]) {
        s->need = need;
        s->n_types = choose(&c, &need, &its, factor, eligible[i], NULL);
        s->types = eligible[i];
        s->eligible = bits[i];
        for (size_t k = 0; k < s->n_types; k++) {
            size_t at = (size_t) (eligible[i][k] - its.v);

            bits[i][at / 8] |= (uint8_t) (1u << at % 8);
        }
    }
    name[i] = number;
    ctrs[i] = (struct plan_ctr) {.shape = s, .locked = locked};
    order[i] = &ctrs[i];
    return &ctrs[i];
}

static struct need vcpu(int n)
{
    return (struct need) {.vcpus = n, .ram = GIB};
}

static struct plan_worker *worker(int vcpus, bool ready)
{
    size_t i = p.n_workers++;
    const struct itype *it = &types[vcpus - 1];

    workers[i] = (struct plan_worker) {
        .serial = i + 1, .owner = &workers[i], .type = it,
        .type_index = (size_t) (it - its.v), .usable = true, .ready = ready,
        .removable = true, .limit = lim.max_per_instance};
    need_capacity(it, &workers[i].free);
    return &workers[i];
}

/* It has this on it. */
static void loaded(struct plan_worker *w, struct need need)
{
    need_sub(&w->free, &need);
    w->n++;
    w->removable = false;
}

static const char *plan(void)
{
    static char text[1024];
    size_t n = 0;

    p.itypes = its.v;
    p.n_itypes = its.n;
    text[0] = '\0';
    plan_run(&p, &lim);
    for (size_t i = 0; i < p.n_actions; i++) {
        const struct plan_action *a = &p.actions[i];
        const char *sep = n > 0 ? " " : "";
        char *at = text + n;
        size_t room = sizeof text - n;

        switch (a->verb) {
        case PLAN_START:
            n += (size_t) snprintf(at, room, "%sS%d@%d", sep, name[a->ctr],
                                   (int) a->worker->serial);
            break;
        case PLAN_LOCK:
            n += (size_t) snprintf(at, room, "%sL%d", sep, name[a->ctr]);
            break;
        case PLAN_MAKE:
            n += (size_t) snprintf(at, room, "%sM%d:%s", sep, name[a->ctr],
                                   a->type->name);
            break;
        case PLAN_SHUTDOWN:
            n += (size_t) snprintf(at, room, "%sX%d", sep,
                                   (int) a->worker->serial);
            break;
        }
    }
    return text;
}

/* --- the peer's ---------------------------------------------------------- */

static void use_idle_workers(void **state)
{
    (void) state;
    for (int i = 4; i >= 1; i--)
        ctr(i, true, vcpu(1));
    worker(1, true);
    worker(2, true);
    worker(2, true);
    assert_string_equal(plan(), "S4@1 M3:type1 M2:type1 M1:type1");
}

static void pack_setup(void)
{
    types_from(2);
    factor = 1.5;
    for (int i = 4; i >= 1; i--)
        ctr(i, true, vcpu(1));
}

static void pack_new_instance(void **state)
{
    (void) state;
    pack_setup();
    assert_string_equal(plan(), "M4:type2 M2:type2");
    assert_int_equal(ctrs[1].reason.why, PLAN_CREATE);
    assert_int_equal(p.mapped_not_ready, 4);
}

static void pack_idle_instance(void **state)
{
    (void) state;
    pack_setup();
    worker(3, true);
    assert_string_equal(plan(), "S4@1 S3@1 S2@1 M1:type2");
}

static void pack_too_big(void **state)
{
    (void) state;
    pack_setup();
    worker(4, true);
    assert_string_equal(plan(), "M4:type2 M2:type2");
}

static void pack_spare_resources(void **state)
{
    (void) state;
    types_from(2);
    factor = 1.5;
    ctr(4, true, vcpu(1))->process = true;
    for (int i = 3; i >= 1; i--)
        ctr(i, true, vcpu(1));
    loaded(worker(3, true), vcpu(1));
    assert_string_equal(plan(), "S3@1 S2@1 M1:type2");
}

static void pack_hold(void **state)
{
    (void) state;
    pack_setup();
    worker(3, true)->usable = false;
    assert_string_equal(plan(), "M4:type2 M2:type2");
}

static void pack_limits(void **state)
{
    (void) state;
    lim.max_per_instance = 1;
    pack_setup();
    worker(2, true);
    assert_string_equal(plan(), "S4@1 M3:type2 M2:type2 M1:type2");
    p.n_ctrs = p.n_workers = 0;
    lim.max_per_instance = 2;
    types_from(8);
    for (int i = 14; i >= 11; i--)
        ctr(i, true, (struct need) {.vcpus = 1, .ram = GIB + 1});
    assert_string_equal(plan(), "M14:type8 M12:type8");
}

static void pack_state_unknown(void **state)
{
    (void) state;
    pack_setup();
    worker(2, false);
    assert_string_equal(plan(), "M2:type2");
    assert_int_equal(ctrs[0].reason.why, PLAN_BOOTING);
    assert_int_equal(ctrs[0].reason.worker, 1);
}

static void pack_zero_vcpus(void **state)
{
    struct need small = {.ram = GIB / 8};

    (void) state;
    types_from(2);
    small.vcpus = 2;
    ctr(6, true, small);
    small.vcpus = 0;
    for (int i = 5; i >= 2; i--)
        ctr(i, true, small);
    small.vcpus = 1;
    ctr(1, true, small);
    assert_string_equal(plan(), "M6:type2 M5:type2");
}

/* Placement onto what exists goes on; what is idle and useless makes room. */
static void at_quota(void **state)
{
    (void) state;
    ctr(3, true, vcpu(3));
    ctr(2, true, vcpu(2));
    worker(2, true);
    worker(2, true);
    lim.instances = 0;
    assert_string_equal(plan(), "S2@1 X2");
    assert_int_equal(ctrs[0].reason.why, PLAN_MAX_INSTANCES);
    assert_int_equal(ctrs[0].reason.position, 1);
    assert_true(p.at_quota);
    p.n_workers = 0;
    worker(2, true);
    worker(2, true);
    lim.instances = 1;
    assert_string_equal(plan(), "M3:type3 S2@1");
    assert_false(p.at_quota);
}

static void capacity_of_one_type(void **state)
{
    (void) state;
    ctr(4, true, vcpu(4));
    ctr(3, true, vcpu(4));
    ctr(1, true, vcpu(1));
    ctr(2, false, vcpu(4));
    worker(4, true);
    why_blocked[4] = PLAN_CAPACITY;
    assert_string_equal(plan(), "S4@1 M1:type1");
    assert_int_equal(ctrs[1].reason.why, PLAN_CAPACITY);
    assert_int_equal(ctrs[3].reason.why, PLAN_CAPACITY);
}

static void next_cheapest_when_out_of_stock(void **state)
{
    (void) state;
    factor = 1.5;
    ctr(1, true, vcpu(4));
    why_blocked[4] = PLAN_CAPACITY;
    why_blocked[5] = PLAN_CLOUD_BUSY;
    assert_string_equal(plan(), "M1:type6");
    why_blocked[6] = PLAN_QUOTA;
    assert_string_equal(plan(), "");
    assert_int_equal(ctrs[0].reason.why, PLAN_CAPACITY); /* the cheapest's */
}

static void api_limit_only_stops_new_ones(void **state)
{
    (void) state;
    lim.processes = 3;
    for (int i = 6; i >= 5; i--)
        ctr(i, true, vcpu(1))->process = true;
    for (int i = 4; i >= 3; i--)
        ctr(i, true, vcpu(1));
    ctr(2, false, vcpu(1));
    for (int i = 0; i < 4; i++)
        worker(1, true);
    loaded(&workers[0], vcpu(1));
    loaded(&workers[1], vcpu(1));
    assert_string_equal(plan(), "S4@3");
    assert_int_equal(ctrs[3].reason.why, PLAN_API_LIMIT);
    assert_int_equal(ctrs[4].reason.why, PLAN_API_LIMIT);
}

static void supervisors_have_a_share(void **state)
{
    (void) state;
    lim.supervisors = 2;
    for (int i = 4; i >= 2; i--)
        ctr(i, true, vcpu(1))->supervisor = true;
    ctr(1, true, vcpu(1));
    for (int i = 0; i < 8; i++)
        worker(1, true);
    assert_string_equal(plan(), "S4@1 S3@2 S1@3");
    assert_int_equal(ctrs[2].reason.why, PLAN_SUPERVISORS);
}

/* One that runs counts, wherever it stands in the order. */
static void running_supervisors_count_first(void **state)
{
    (void) state;
    lim.supervisors = 1;
    ctr(3, true, vcpu(1))->supervisor = true;
    ctr(2, true, vcpu(1))->supervisor = true;
    ctrs[1].process = true;
    ctr(1, true, vcpu(1));
    worker(1, true);
    worker(1, true);
    assert_string_equal(plan(), "S1@1");
}

static void start_while_creating(void **state)
{
    (void) state;
    for (int i = 6; i >= 4; i--)
        ctr(i, true, vcpu(2));
    for (int i = 3; i >= 1; i--)
        ctr(i, true, vcpu(1));
    worker(2, true);
    worker(2, false);
    worker(1, true);
    worker(1, false);
    assert_string_equal(plan(), "S6@1 M4:type2 S3@3 M1:type1");
    assert_int_equal(ctrs[1].reason.why, PLAN_BOOTING);
    assert_int_equal(ctrs[4].reason.why, PLAN_BOOTING);
}

static void equal_priority_takes_no_turns(void **state)
{
    (void) state;
    lim.instances = 0;
    for (int i = 8; i >= 1; i--)
        ctr(i, false, vcpu(3));
    worker(3, true);
    worker(3, true);
    assert_string_equal(plan(), "L8 L7");
    p.n_workers = 0;
    worker(3, true);
    worker(3, true);
    ctrs[0].locked = ctrs[1].locked = true;
    assert_string_equal(plan(), "S8@1 S7@2");
}

/* --- ours ---------------------------------------------------------------- */

static void locks_are_limited_by_what_can_exist(void **state)
{
    (void) state;
    lim.instances = 2;
    for (int i = 20; i >= 11; i--)
        ctr(i, false, vcpu(2));
    assert_string_equal(plan(), "L20 L19");
    assert_int_equal(ctrs[2].reason.why, PLAN_MAX_INSTANCES);
    lim.locks = 1;
    assert_string_equal(plan(), "L20");
    assert_int_equal(ctrs[1].reason.why, PLAN_LOCKING);
}

/* The next in line is locked before its slot is free. */
static void some_are_locked_ahead(void **state)
{
    (void) state;
    lim.instances = 0;
    lim.lock_ahead = 3;
    ctr(9, true, vcpu(1))->process = true;
    loaded(worker(1, true), vcpu(1));
    ctr(8, true, vcpu(1));
    for (int i = 7; i >= 4; i--)
        ctr(i, false, vcpu(1));
    assert_string_equal(plan(), "L7 L6");
    assert_int_equal(ctrs[1].reason.why, PLAN_MAX_INSTANCES);
    assert_int_equal(ctrs[1].reason.position, 1);
    assert_int_equal(ctrs[5].reason.position, 5);
}

/* Without lock calls to make, a pass for its actions ends early. */
static void nothing_to_lock_nothing_to_look_at(void **state)
{
    (void) state;
    lim.locks = 1;
    lim.whole = false;
    ctr(4, true, vcpu(1));
    for (int i = 3; i >= 1; i--)
        ctr(i, false, vcpu(1));
    worker(1, true);
    assert_string_equal(plan(), "S4@1 L3");
    assert_true(p.cut);
    assert_int_equal(ctrs[2].reason.why, PLAN_NONE);
    p.n_workers = 0;
    worker(1, true);
    lim.whole = true;
    assert_string_equal(plan(), "S4@1 L3");
    assert_false(p.cut);
    assert_int_equal(ctrs[2].reason.why, PLAN_LOCKING);
}

static void create_calls_are_limited(void **state)
{
    (void) state;
    lim.creates = 1;
    for (int i = 4; i >= 1; i--)
        ctr(i, true, vcpu(2));
    assert_string_equal(plan(), "M4:type2");
    assert_int_equal(ctrs[1].reason.why, PLAN_NEXT_CREATE);
}

/* A create under way is a place; no second one for the same demand. */
static void pending_creates_are_places(void **state)
{
    (void) state;
    ctr(2, true, vcpu(2));
    ctr(1, true, vcpu(2));
    worker(2, false)->pending = true;
    assert_string_equal(plan(), "M1:type2");
    assert_int_equal(ctrs[0].reason.why, PLAN_CREATE);
    assert_int_equal(workers[0].mapped, 1);
}

/* Ready beats fuller, fuller beats cheaper. */
static void the_best_place(void **state)
{
    (void) state;
    factor = 4;
    ctr(1, true, vcpu(1));
    loaded(worker(4, false), vcpu(1));
    worker(1, true);
    loaded(worker(3, true), vcpu(1));
    assert_string_equal(plan(), "S1@3");
    p.n_workers = 0;
    loaded(worker(4, false), vcpu(1));
    worker(2, true);
    worker(1, true);
    assert_string_equal(plan(), "S1@3");
}

static void held_ones_keep_their_place(void **state)
{
    (void) state;
    ctr(2, true, vcpu(1))->held = true;
    ctr(1, true, vcpu(1));
    ctr(3, false, vcpu(1))->on_hold = true;
    worker(1, true);
    worker(1, true);
    assert_string_equal(plan(), "S1@2");
    assert_int_equal(ctrs[0].reason.why, PLAN_BUSY);
    assert_int_equal(ctrs[2].reason.why, PLAN_ON_HOLD);
}

static void every_waiting_one_has_a_reason(void **state)
{
    (void) state;
    lim.instances = 1;
    lim.creates = 1;
    lim.lock_ahead = 2;
    lim.supervisors = 1;
    for (int i = 40; i >= 1; i--) {
        struct plan_ctr *c = ctr(i, i % 3 == 0, vcpu(1 + i % 5));

        c->supervisor = i % 7 == 0;
        c->on_hold = i % 11 == 0;
        c->process = i % 13 == 0;
        c->held = i % 17 == 0;
    }
    worker(3, true);
    worker(2, false);
    why_blocked[5] = PLAN_CAPACITY;
    plan();
    for (size_t i = 0; i < p.n_ctrs; i++) {
        assert_int_not_equal(ctrs[i].reason.why, PLAN_NONE);
        if (plan_why_waits(ctrs[i].reason.why) && !ctrs[i].on_hold)
            assert_int_not_equal(ctrs[i].reason.position, 0);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(use_idle_workers), T(pack_new_instance), T(pack_idle_instance),
        T(pack_too_big), T(pack_spare_resources), T(pack_hold),
        T(pack_limits), T(pack_state_unknown), T(pack_zero_vcpus),
        T(at_quota), T(capacity_of_one_type),
        T(next_cheapest_when_out_of_stock), T(api_limit_only_stops_new_ones),
        T(supervisors_have_a_share), T(running_supervisors_count_first),
        T(start_while_creating), T(equal_priority_takes_no_turns),
        T(locks_are_limited_by_what_can_exist), T(some_are_locked_ahead),
        T(create_calls_are_limited), T(nothing_to_lock_nothing_to_look_at),
        T(pending_creates_are_places),
        T(the_best_place), T(held_ones_keep_their_place),
        T(every_waiting_one_has_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
