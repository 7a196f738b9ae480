/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cloud port over real modules (tests/bad-drivers/scripted.c): results
 * arrive once, on the loop, checked; failures keep their class; garbage,
 * silence and slowness end as the contract says; what comes late is dropped.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/io/loop.h"
#include "core/plugin/iset.h"
#include "core/plugin/preflight.h"
#include "core/plugin/registry.h"
#include "core/port/cloud.h"

enum { MS = 10000 }; /* a deadline that no good call reaches */

static struct registry *reg;

/* One backend, and what came out of its calls. */
struct world {
    struct loop *l;
    struct iset *s;
    struct cloud_port *c;
    int pending;             /* completions to come */
    int completions;
    struct op_result last, before; /* the latest two */
    size_t n;                /* instances of the last create or list */
    char ids[8][32];
    char tags[8][64];        /* value of the first tag */
    enum cloud_state states[8];
    bool complete;
    char unknown[64];
    bool in_call;            /* inside a function of the port */
};

/* --- the world ------------------------------------------------------------------ */

static void completed(struct world *w, const struct op_result *r)
{
    assert_false(w->in_call);
    assert_true((r->outcome == OP_DONE) == (r->err.class == ERR_NONE));
    w->before = w->last;
    w->last = *r;
    w->completions++;
    if (--w->pending == 0)
        loop_stop(w->l);
}

static void on_plain(void *arg, const struct op_result *r)
{
    completed(arg, r);
}

static void note(struct world *w, const struct cloud_instance *i)
{
    if (w->n < MEM_COUNT(w->ids)) {
        snprintf(w->ids[w->n], sizeof w->ids[0], "%s", i->id);
        snprintf(w->tags[w->n], sizeof w->tags[0], "%s",
                 i->n_tags ? i->tags[0].value : "");
        w->states[w->n] = i->state;
        assert_int_equal(i->port, 2222);
        assert_string_equal(i->address, "127.0.0.1");
        assert_string_equal(i->placement, "");
        assert_string_equal(i->name, i->id);
        assert_null(i->host_key);
    }
    w->n++;
}

static void on_create(void *arg, const struct cloud_create_result *r)
{
    struct world *w = arg;

    assert_true((r->n > 0) == (r->r.outcome == OP_DONE));
    for (size_t i = 0; i < r->n; i++)
        note(w, &r->v[i]);
    completed(w, &r->r);
}

static void on_instance(void *arg, const struct cloud_instance *i)
{
    note(arg, i);
}

static void on_list(void *arg, const struct cloud_list_result *r)
{
    struct world *w = arg;

    w->complete = r->complete;
    snprintf(w->unknown, sizeof w->unknown, "%s", r->unknown);
    completed(w, &r->r);
}

static void run(struct world *w)
{
    loop_run(w->l);
    assert_int_equal(w->pending, 0);
}

static void begin(struct world *w)
{
    w->in_call = true;
    w->pending++;
    w->n = 0;
}

static const struct op_result *opened(struct world *w, int64_t ms)
{
    begin(w);
    w->c->open(w->c, ms, on_plain, w);
    w->in_call = false;
    run(w);
    return &w->last;
}

/* Begin a backend with these parameters, not yet open. */
static void setup(struct world *w, const char *driver, const char *params)
{
    struct jsn *j = jsn_parse(params, strlen(params), NULL);
    struct iset_options o = {.backend = "b", .set_id = "set1", .params = j};
    struct err err = {0};
    const struct driver *d = registry_load(reg, driver, &err);

    if (!d)
        fail_msg("%s", err.text);
    memset(w, 0, sizeof *w);
    w->l = loop_create(&err);
    o.loop = w->l;
    w->s = iset_create(d, &o, &err);
    jsn_free(j);
    if (!w->s)
        fail_msg("%s", err.text);
    w->c = iset_port(w->s);
}

static void setup_open(struct world *w, const char *driver,
                       const char *params)
{
    setup(w, driver, params);
    assert_int_equal(opened(w, MS)->outcome, OP_DONE);
}

static void teardown(struct world *w)
{
    assert_int_equal(iset_destroy(w->s, 5000), 0);
    loop_destroy(w->l);
}

static struct op *start_create(struct world *w, const char *token,
                               int64_t ms)
{
    const struct cloud_tag tags[] = {{"Set", "set1"}, {"Extra", "x"}};
    const struct cloud_create_req req = {
        .token = token, .count = 1, .type_name = "small",
        .provider_type = "t1", .vcpus = 1, .ram = 1 << 30, .image = "host",
        .placement = "", .tags = tags, .n_tags = 2, .init_command = "",
        .public_key = "", .deadline_ms = ms,
    };
    struct op *op;

    begin(w);
    op = w->c->create(w->c, &req, on_create, w);
    w->in_call = false;
    return op;
}

static struct op *start_list(struct world *w, const char *set, int64_t ms)
{
    const struct cloud_tag filter[] = {{"Set", set}};
    struct op *op;

    begin(w);
    op = w->c->list(w->c, filter, 1, ms, on_instance, on_list, w);
    w->in_call = false;
    return op;
}

static struct op *start_destroy(struct world *w, const char *id, int64_t ms)
{
    struct op *op;

    begin(w);
    op = w->c->destroy(w->c, id, ms, on_plain, w);
    w->in_call = false;
    return op;
}

static void create(struct world *w, const char *token)
{
    start_create(w, token, MS);
    run(w);
}

static void list(struct world *w)
{
    start_list(w, "set1", MS);
    run(w);
}

/* --- good calls -------------------------------------------------------------------- */

static void test_life(void **state)
{
    const struct cloud_tag tags[] = {{"Set", "set1"}};
    struct world w;
    char group[16];

    (void)state;
    setup_open(&w, "scripted", "{}");
    assert_int_equal(w.c->caps, CLOUD_CAP_SET_TAGS | CLOUD_CAP_VERIFY_KEY |
                                    CLOUD_CAP_PRICES);
    create(&w, "c1");
    assert_int_equal(w.last.outcome, OP_DONE);
    assert_string_equal(w.ids[0], "vm-1");
    assert_int_equal(w.states[0], CLOUD_PENDING);
    create(&w, "c1");
    assert_string_equal(w.ids[0], "vm-1");
    create(&w, "c2");
    list(&w);
    assert_int_equal(w.n, 2);
    assert_true(w.complete);
    assert_string_equal(w.unknown, "");
    assert_string_equal(w.tags[1], "set1");
    begin(&w);
    w.c->set_tags(w.c, "vm-1", tags, 1, MS, on_plain, &w);
    w.in_call = false;
    run(&w);
    assert_int_equal(w.last.outcome, OP_DONE);
    start_destroy(&w, "vm-1", MS);
    run(&w);
    start_destroy(&w, "vm-1", MS);
    run(&w);
    assert_int_equal(w.last.outcome, OP_DONE);
    list(&w);
    assert_int_equal(w.n, 1);
    assert_string_equal(w.ids[0], "vm-2");
    start_list(&w, "another set", MS);
    run(&w);
    assert_int_equal(w.n, 0);
    w.c->quota_group(w.c, "t1", true, group, sizeof group);
    assert_string_equal(group, "t-spot");
    w.c->quota_group(w.c, "t1", true, group, 3);
    assert_string_equal(group, "t-");
    teardown(&w);
}

static void verify(struct world *w, const char *key)
{
    begin(w);
    w->c->verify_host_key(w->c, "vm-1", key, MS, on_plain, w);
    w->in_call = false;
    run(w);
}

static void test_verify(void **state)
{
    struct world w;

    (void)state;
    setup_open(&w, "scripted", "{}");
    verify(&w, "ssh-ed25519 GOOD");
    assert_int_equal(w.last.outcome, OP_DONE);
    verify(&w, "ssh-ed25519 EVIL");
    assert_int_equal(w.last.outcome, OP_REFUSED);
    assert_int_equal(w.last.err.class, ERR_AUTH);
    teardown(&w);
}

static void test_order_of_life(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "scripted", "{}");
    list(&w); /* not open */
    assert_int_equal(w.last.outcome, OP_REFUSED);
    assert_int_equal(w.last.err.class, ERR_INTERNAL);
    assert_int_equal(opened(&w, MS)->outcome, OP_DONE);
    assert_int_equal(opened(&w, MS)->err.class, ERR_INTERNAL);
    list(&w);
    assert_int_equal(w.last.outcome, OP_DONE);
    teardown(&w);
}

static void test_settings(void **state)
{
    const struct driver *d = registry_load(reg, "scripted", NULL);
    static const struct {
        const char *params, *why;
    } bad[] = {
        {"{\"Mdoe\": \"fail\"}", "unknown setting 'Mdoe'"},
        {"{\"Ms\": \"1\"}", "must be of type int"},
        {"[]", "is not a map"},
    };
    struct iset_options o = {.backend = "b7", .set_id = "s"};

    (void)state;
    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        struct err err = {0};
        struct jsn *j = jsn_parse(bad[i].params, strlen(bad[i].params), NULL);

        o.params = j;
        assert_null(iset_create(d, &o, &err));
        assert_int_equal(err.class, ERR_CONFIG);
        if (!strstr(err.text, bad[i].why) || !strstr(err.text, "b7"))
            fail_msg("%s", err.text);
        jsn_free(j);
    }
}

/* --- failures -------------------------------------------------------------------- */

static void test_classes(void **state)
{
    struct world w;

    (void)state;
    setup_open(&w, "scripted", "{\"Mode\":\"fail\",\"In\":\"create\"}");
    create(&w, "c1");
    assert_int_equal(w.last.outcome, OP_REFUSED);
    assert_int_equal(w.last.err.class, ERR_QUOTA);
    assert_int_equal(w.last.err.scope, ERR_SCOPE_GROUP);
    assert_int_equal(w.last.err.retry_ms, 7000);
    assert_string_equal(w.last.err.code, "Code");
    assert_string_equal(w.last.err.request_id, "req-1");
    assert_string_equal(w.last.err.text, "no more of it");
    teardown(&w);
}

/* Mode in callback -> outcome and class of create, list, destroy. */
static void outcome(const char *mode, const char *in, enum op_outcome o,
                    enum err_class class)
{
    CLEANUP(mem_free) char *params = mem_printf(
        "{\"Mode\":\"%s\",\"In\":\"%s\"}", mode, in);
    struct world w;

    setup_open(&w, "scripted", params);
    if (strcmp(in, "create") != 0)
        create(&w, "c1");
    if (strcmp(in, "create") == 0)
        create(&w, "c1");
    else if (strcmp(in, "list") == 0)
        list(&w);
    else
        start_destroy(&w, "vm-1", MS), run(&w);
    if (w.last.outcome != o || w.last.err.class != class)
        fail_msg("%s in %s: outcome %d, %s: %s", mode, in, w.last.outcome,
                 err_class_label(w.last.err.class), w.last.err.text);
    if (o != OP_DONE)
        assert_int_equal(w.n, 0);
    teardown(&w);
}

static void test_outcomes(void **state)
{
    (void)state;
    outcome("unknown", "create", OP_UNKNOWN, ERR_UNKNOWN);
    outcome("unknown", "destroy", OP_UNKNOWN, ERR_UNKNOWN);
    outcome("unknown", "list", OP_REFUSED, ERR_TRANSIENT);
    outcome("no_reason", "create", OP_UNKNOWN, ERR_INTERNAL);
    outcome("no_reason", "destroy", OP_UNKNOWN, ERR_INTERNAL);
    outcome("no_reason", "list", OP_REFUSED, ERR_INTERNAL);
    outcome("nothing", "create", OP_UNKNOWN, ERR_INTERNAL);
    outcome("half", "create", OP_UNKNOWN, ERR_TRANSIENT);
    outcome("half", "list", OP_REFUSED, ERR_TRANSIENT);
}

static void test_garbage(void **state)
{
    static const char *const modes[] = {
        "no_id", "null_record", "bad_size", "bad_utf8", "bad_state",
        "bad_address", "bad_port", "bad_price", "bad_tags", "long_name",
        "control", "misplaced",
    };

    (void)state;
    for (size_t i = 0; i < MEM_COUNT(modes); i++) {
        outcome(modes[i], "create", OP_UNKNOWN, ERR_INTERNAL);
        outcome(modes[i], "list", OP_REFUSED, ERR_INTERNAL);
    }
}

static void test_lists(void **state)
{
    struct world w;

    (void)state;
    setup_open(&w, "scripted", "{\"Mode\":\"partial\",\"In\":\"list\"}");
    create(&w, "c1");
    list(&w);
    assert_int_equal(w.n, 1);
    assert_false(w.complete);
    assert_string_equal(w.unknown, "zone-b");
    teardown(&w);
    setup_open(&w, "scripted", "{\"Mode\":\"twice\",\"In\":\"list\"}");
    create(&w, "c1");
    create(&w, "c2");
    list(&w);
    assert_int_equal(w.n, 2);
    assert_string_equal(w.ids[0], "vm-1");
    assert_int_equal(w.states[0], CLOUD_RUNNING);
    teardown(&w);
    setup_open(&w, "scripted", "{\"Mode\":\"unfiltered\",\"In\":\"list\"}");
    create(&w, "c1");
    start_list(&w, "another set", MS);
    run(&w);
    assert_int_equal(w.n, 0);
    teardown(&w);
}

/* --- time ---------------------------------------------------------------------------- */

static void test_stuck_serial(void **state)
{
    struct world w;

    (void)state;
    setup_open(&w, "scripted", "{\"Mode\":\"deaf\",\"In\":\"create\","
                               "\"Ms\":1500}");
    start_create(&w, "c1", 50);
    run(&w);
    assert_int_equal(w.last.outcome, OP_UNKNOWN);
    assert_int_equal(w.last.err.class, ERR_TIMEOUT);
    list(&w); /* one thread, and it is inside */
    assert_int_equal(w.last.outcome, OP_REFUSED);
    assert_int_equal(w.last.err.class, ERR_TRANSIENT);
    assert_non_null(strstr(w.last.err.text, "stuck in create"));
    while (w.last.outcome != OP_DONE) { /* until it has come back */
        usleep(20000);
        list(&w);
    }
    assert_int_equal(w.n, 1); /* the late create did happen */
    teardown(&w);
}

static void test_stuck_parallel(void **state)
{
    struct world w;
    int completions;

    (void)state;
    setup_open(&w, "scripted_parallel", "{\"Mode\":\"deaf\","
                                        "\"In\":\"create\",\"Ms\":2000}");
    for (int i = 0; i < ISET_STUCK_MAX; i++) {
        char token[8];

        snprintf(token, sizeof token, "c%d", i);
        start_create(&w, token, 40);
        if (i % 4 == 3) { /* so many threads */
            run(&w);
            assert_int_equal(w.last.outcome, OP_UNKNOWN);
            if (i < ISET_STUCK_MAX - 1) {
                list(&w); /* fresh threads took over */
                assert_int_equal(w.last.outcome, OP_DONE);
            }
        }
    }
    list(&w);
    assert_int_equal(w.last.err.class, ERR_TRANSIENT);
    completions = w.completions;
    do {
        usleep(50000);
        list(&w);
    } while (w.last.outcome != OP_DONE || w.n < ISET_STUCK_MAX);
    assert_int_equal(w.n, ISET_STUCK_MAX);
    assert_in_range(w.completions - completions, 1, 1000);
    teardown(&w);
}

static void test_waiting(void **state)
{
    struct world w;

    (void)state;
    setup_open(&w, "scripted", "{\"Mode\":\"deaf\",\"In\":\"create\","
                               "\"Ms\":600}");
    start_create(&w, "c1", MS);
    start_destroy(&w, "vm-1", 30); /* waits behind it: never begins */
    run(&w);
    assert_int_equal(w.before.outcome, OP_REFUSED);
    assert_int_equal(w.before.err.class, ERR_TIMEOUT);
    assert_int_equal(w.last.outcome, OP_DONE);
    list(&w);
    assert_int_equal(w.n, 1);
    teardown(&w);
}

static void stop_loop(void *arg)
{
    loop_stop(arg);
}

static void test_cancel(void **state)
{
    struct world w;
    struct op *queued;

    (void)state;
    setup_open(&w, "scripted", "{\"Mode\":\"polite\",\"Ms\":60000,"
                               "\"In\":\"list\"}");
    start_list(&w, "set1", 50000);
    queued = start_destroy(&w, "vm-9", MS);
    loop_timer_arm(w.l, 30000, stop_loop, w.l); /* the list has begun */
    loop_run(w.l);
    w.in_call = true;
    w.c->op_cancel(w.c, queued);
    w.in_call = false;
    loop_timer_arm(w.l, 30000, stop_loop, w.l);
    loop_run(w.l);
    assert_int_equal(w.completions, 2);
    assert_int_equal(w.last.outcome, OP_CANCELLED);
    teardown(&w); /* wakes the list, which is never reported */
    assert_int_equal(w.completions, 2);
}

static void test_cancel_running(void **state)
{
    static const struct {
        const char *params;
        enum op_outcome outcome;
    } cases[] = {
        {"{\"Mode\":\"polite\",\"Ms\":60000,\"In\":\"list\"}", OP_CANCELLED},
        {"{\"Mode\":\"polite\",\"Ms\":60000,\"In\":\"create\"}", OP_UNKNOWN},
    };
    struct op *op;
    struct world w;

    (void)state;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        setup_open(&w, "scripted", cases[i].params);
        op = i == 0 ? start_list(&w, "set1", 50000)
                    : start_create(&w, "c1", 50000);
        loop_timer_arm(w.l, 300000, stop_loop, w.l); /* it has begun */
        loop_run(w.l);
        w.c->op_cancel(w.c, op);
        run(&w);
        assert_int_equal(w.last.outcome, cases[i].outcome);
        teardown(&w);
    }
}

/* A driver that keeps its deadline is not written off. */
static void test_polite(void **state)
{
    struct world w;

    (void)state;
    setup_open(&w, "scripted", "{\"Mode\":\"polite\",\"Ms\":60000,"
                               "\"In\":\"create\"}");
    start_create(&w, "c1", 200);
    run(&w);
    assert_int_equal(w.last.outcome, OP_UNKNOWN);
    assert_int_equal(w.last.err.class, ERR_UNKNOWN);
    assert_string_equal(w.last.err.text, "interrupted");
    list(&w);
    assert_int_equal(w.last.outcome, OP_DONE);
    teardown(&w);
}

static void test_slow_open(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "scripted_parallel", "{\"Mode\":\"deaf\",\"Ms\":600,"
                                   "\"In\":\"set_open\"}");
    assert_int_equal(opened(&w, 30)->outcome, OP_REFUSED);
    assert_int_equal(w.last.err.class, ERR_TIMEOUT);
    assert_int_equal(opened(&w, 5 * MS)->outcome, OP_DONE);
    list(&w);
    assert_int_equal(w.last.outcome, OP_DONE);
    teardown(&w);
}

static void test_late_emit(void **state)
{
    struct world w;

    (void)state;
    setup_open(&w, "scripted", "{\"Mode\":\"late\"}");
    create(&w, "c1");
    for (int i = 0; i < 20; i++) {
        list(&w);
        assert_int_equal(w.last.outcome, OP_DONE);
        assert_int_equal(w.n, 1);
        usleep(5000);
    }
    teardown(&w);
}

/* Many at once: each completes once, and SERIAL never overlaps. */
static void test_many(void **state)
{
    static const char *const names[] = {"scripted", "scripted_parallel"};
    struct world w;

    (void)state;
    for (size_t d = 0; d < MEM_COUNT(names); d++) {
        setup_open(&w, names[d], "{}");
        w.completions = 0;
        for (int i = 0; i < 300; i++) {
            char token[16];

            snprintf(token, sizeof token, "c%d", i % 40);
            start_create(&w, token, 30000);
            start_list(&w, "set1", 30000);
        }
        run(&w);
        assert_int_equal(w.completions, 600);
        list(&w);
        assert_int_equal(w.n, 40);
        teardown(&w);
    }
}

static void test_destroy_in_flight(void **state)
{
    struct world w;

    (void)state;
    setup_open(&w, "scripted", "{\"Mode\":\"deaf\",\"Ms\":300,"
                               "\"In\":\"list\"}");
    start_list(&w, "set1", MS);
    start_list(&w, "set1", MS);
    loop_timer_arm(w.l, 20000, stop_loop, w.l);
    loop_run(w.l);
    assert_int_equal(iset_destroy(w.s, 5000), 0); /* waits for the thread */
    loop_timer_arm(w.l, 20000, stop_loop, w.l);
    loop_run(w.l);
    assert_int_equal(w.completions, 1); /* the open */
    loop_destroy(w.l);
}

/* The driver does not come back in time: nothing of it reaches us, even
 * when the loop is gone. */
static void test_destroy_stuck(void **state)
{
    struct world w;

    (void)state;
    setup_open(&w, "scripted", "{\"Mode\":\"deaf\",\"Ms\":600,"
                               "\"In\":\"create\"}");
    start_create(&w, "c1", MS);
    loop_timer_arm(w.l, 200000, stop_loop, w.l); /* it has begun */
    loop_run(w.l);
    assert_int_equal(iset_destroy(w.s, 1), -1);
    loop_destroy(w.l);
    usleep(600000);
    assert_int_equal(w.completions, 1); /* the open */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_order_of_life),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_stuck_serial),
        cmocka_unit_test(test_stuck_parallel),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_running),
        cmocka_unit_test(test_polite),
        cmocka_unit_test(test_slow_open),
        cmocka_unit_test(test_late_emit),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_destroy_in_flight),
        cmocka_unit_test(test_destroy_stuck),
    };
    const char *top = getenv("TOP_BUILDDIR");
    CLEANUP(mem_free) char *dir = mem_printf(
        "%s/tests/bad-drivers/.libs", top ? top : ".");
    struct registry_options o = {.dir = dir, .trust_build_tree = true};
    int rc = preflight_child_main(argc, argv);

    if (rc >= 0)
        return rc;
    reg = registry_create(&o);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    registry_destroy(reg);
    return rc;
}
