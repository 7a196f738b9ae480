/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times and limits of Containers.CloudVMs: each setting has the effect that
 * crunch-dispatch-cloud.yml(5) promises, seen from the world, not from the
 * dispatcher: a tap on the world's trace notes when what was asked of it.
 * Settings that reach a driver or an instance as text are tested with the
 * real programs (tests/system/t_settings.py).
 */

#include "tests/sim/scenario.h"

/* --- taps ------------------------------------------------------------------ */

enum { TAPS = 6 };

/* What one kind of trace line did: how often, when, how densely. */
struct tap {
    const char *word; /* part of the line; NULL = unused */
    const char *also; /* and this part; NULL = nothing more */
    unsigned n;
    int64_t first_us, last_us, min_gap_us, max_gap_us;
};

struct bench {
    struct rig *r;
    struct tap taps[TAPS];
    int64_t in_flight, most_in_flight; /* begun by taps[0], ended by taps[1] */
};

static void on_trace(void *arg, int64_t us, const char *line)
{
    struct bench *b = arg;

    for (int i = 0; i < TAPS; i++) {
        struct tap *t = &b->taps[i];

        if (!t->word || !strstr(line, t->word) ||
            (t->also && !strstr(line, t->also)))
            continue;
        if (t->n++ == 0)
            t->first_us = t->last_us = us;
        else if (us - t->last_us < t->min_gap_us)
            t->min_gap_us = us - t->last_us;
        if (us - t->last_us > t->max_gap_us)
            t->max_gap_us = us - t->last_us;
        t->last_us = us;
        b->in_flight += i == 0 ? 1 : i == 1 ? -1 : 0;
        if (b->in_flight > b->most_in_flight)
            b->most_in_flight = b->in_flight;
    }
}

static void tap(struct bench *b, int i, const char *word, const char *also)
{
    b->taps[i] = (struct tap){ .word = word, .also = also,
                               .min_gap_us = INT64_MAX };
}

/* A world of seed 1 (a feed, a watch, a runner that is deployed). */
static void open_bench(struct bench *b)
{
    memset(b, 0, sizeof *b);
    b->r = rig_create(1);
    b->r->w->trace = on_trace;
    b->r->w->trace_arg = b;
}

static void close_bench(struct bench *b)
{
    rig_end(&b->r);
}

static void assert_between(int64_t v, int64_t lo, int64_t hi)
{
    if (v < lo || v > hi)
        fail_msg("%lld is not in %lld..%lld", (long long) v, (long long) lo,
                 (long long) hi);
}

/* --- looking at the queue and the cloud -------------------------------------- */

static unsigned polls_in_ten_minutes(int64_t poll_ms)
{
    struct bench b;
    unsigned n;

    open_bench(&b);
    b.r->w->api->features &= ~(uint32_t) API_FEED;
    b.r->cfg.poll_ms = poll_ms;
    tap(&b, 2, "api list ", "sent");
    rig_start(b.r);
    run_s(b.r, 600);
    n = b.taps[2].n;
    close_bench(&b);
    return n;
}

static void test_poll_interval(void **state)
{
    unsigned often = polls_in_ten_minutes(5000);
    unsigned seldom = polls_in_ten_minutes(50000);

    (void) state;
    assert_between(often, 8 * seldom, 12 * seldom);
}

static unsigned lists_in_ten_minutes(int64_t sync_ms)
{
    struct bench b;
    unsigned n;

    open_bench(&b);
    b.r->cfg.sync_ms = sync_ms;
    tap(&b, 2, "cloud list =>", NULL);
    rig_start(b.r);
    run_s(b.r, 600);
    n = b.taps[2].n;
    close_bench(&b);
    return n;
}

static void test_sync_interval(void **state)
{
    (void) state;
    assert_between(lists_in_ten_minutes(10000), 50, 65);
    assert_between(lists_in_ten_minutes(60000), 8, 12);
}

/* --list of a runner that cannot be watched, while nothing happens; it is
 * asked more often after an event. */
static struct tap looks(int64_t probe_ms, int64_t per_second, int vms)
{
    struct bench b;
    struct tap t;

    open_bench(&b);
    b.r->w->net->no_watch = true;
    b.r->cfg.probe_ms = probe_ms;
    b.r->cfg.max_probes_per_s = per_second;
    rig_start(b.r);
    for (int i = 0; i < vms; i++)
        rig_submit(b.r, 8, 900);
    run_until_live(b.r);
    run_s(b.r, 200);
    tap(&b, 2, "exec sent to", "--list");
    run_s(b.r, 300);
    t = b.taps[2];
    close_bench(&b);
    return t;
}

static void test_probe_interval(void **state)
{
    (void) state;
    assert_between(looks(10000, 100, 1).max_gap_us, 9 * SIM_S, 12 * SIM_S);
    assert_between(looks(60000, 100, 1).max_gap_us, 35 * SIM_S, 65 * SIM_S);
}

static void test_max_probes_per_second(void **state)
{
    (void) state;
    assert_true(looks(1000, 100, 6).n > 900);
    assert_between(looks(1000, 1, 6).n, 100, 310);
}

/* --- an instance's life --------------------------------------------------------- */

static int64_t idle_time(int64_t idle_ms)
{
    struct bench b;
    struct sim_ctr *c;
    int64_t us;

    open_bench(&b);
    b.r->cfg.timeout_idle_ms = idle_ms;
    tap(&b, 2, "told to stop", NULL);
    rig_start(b.r);
    c = rig_submit(b.r, 1, 5);
    rig_run(b.r, long_time, rig_quiet);
    us = b.taps[2].first_us - c->final_us;
    close_bench(&b);
    return us;
}

static void test_timeout_idle(void **state)
{
    (void) state;
    assert_between(idle_time(3000), 3 * SIM_S, 5 * SIM_S);
    assert_between(idle_time(120000), 120 * SIM_S, 123 * SIM_S);
}

static int64_t boot_limit(int64_t booting_ms)
{
    struct bench b;
    int64_t us;

    open_bench(&b);
    b.r->cfg.timeout_booting_ms = booting_ms;
    b.r->cloud->boot_lo_us = b.r->cloud->boot_hi_us = 7200 * (int64_t) SIM_S;
    tap(&b, 2, "made for token", NULL);
    tap(&b, 3, "told to stop", NULL);
    rig_start(b.r);
    rig_submit(b.r, 1, 5);
    run_s(b.r, 400);
    us = b.taps[3].first_us - b.taps[2].first_us;
    b.r->cloud->boot_lo_us = b.r->cloud->boot_hi_us = SIM_S;
    close_bench(&b);
    return us;
}

static void test_timeout_booting(void **state)
{
    (void) state;
    assert_between(boot_limit(30000), 25 * SIM_S, 40 * SIM_S);
    assert_between(boot_limit(240000), 235 * SIM_S, 255 * SIM_S);
}

static int64_t destroy_gap(int64_t shutdown_ms)
{
    struct bench b;
    int64_t us;

    open_bench(&b);
    b.r->cfg.timeout_shutdown_ms = shutdown_ms;
    b.r->cfg.timeout_idle_ms = 1000;
    b.r->cloud->stop_lo_us = b.r->cloud->stop_hi_us = 200 * (int64_t) SIM_S;
    tap(&b, 2, "cloud destroy ", "sent");
    rig_start(b.r);
    rig_submit(b.r, 1, 5);
    rig_run(b.r, long_time, rig_quiet);
    us = b.taps[2].n > 1 ? b.taps[2].min_gap_us : 0;
    close_bench(&b);
    return us;
}

static void test_timeout_shutdown(void **state)
{
    (void) state;
    assert_between(destroy_gap(5000), 5 * SIM_S, 20 * SIM_S);
    assert_between(destroy_gap(60000), 60 * SIM_S, 90 * SIM_S);
}

/* From the moment at which a busy machine hangs to its end. */
static int64_t silence(int64_t probe_ms)
{
    struct bench b;
    struct sim_ctr *c;
    int64_t hung_us, us;

    open_bench(&b);
    b.r->cfg.timeout_probe_ms = probe_ms;
    b.r->w->silence_us = probe_ms * SIM_MS * 9 / 10;
    b.r->cfg.exec_deadline_ms = 5000;
    tap(&b, 2, "told to stop", NULL);
    rig_start(b.r);
    c = rig_submit(b.r, 1, 2000);
    run_until_live(b.r);
    run_s(b.r, 20);
    hung_us = b.r->w->now_us;
    sim_machine_hang(c->starts.v[0].machine, 1500 * (int64_t) SIM_S);
    run_s(b.r, 1400);
    us = b.taps[2].n ? b.taps[2].first_us - hung_us : 0;
    close_bench(&b);
    return us;
}

static void test_timeout_probe(void **state)
{
    (void) state;
    assert_between(silence(60000), 30 * SIM_S, 100 * SIM_S);
    assert_between(silence(600000), 560 * SIM_S, 680 * SIM_S);
}

/* --- ending a container ---------------------------------------------------------- */

static unsigned signals_in_nine_seconds(int64_t signal_ms)
{
    struct sim_job job = { .run_us = 600 * (int64_t) SIM_S,
                           .ignore_term_us = 9 * SIM_S };
    struct bench b;
    struct sim_ctr *c;
    unsigned n;

    open_bench(&b);
    b.r->cfg.timeout_signal_ms = signal_ms;
    tap(&b, 2, "exec sent to", "--kill 15");
    c = sim_api_submit(b.r->w->api, &job);
    rig_start(b.r);
    run_until_live(b.r);
    sim_api_user_cancel(b.r->w->api, c);
    rig_run(b.r, long_time, rig_all_final);
    n = b.taps[2].n;
    close_bench(&b);
    return n;
}

static void test_timeout_signal(void **state)
{
    (void) state;
    assert_between(signals_in_nine_seconds(1000), 6, 12);
    assert_between(signals_in_nine_seconds(5000), 1, 3);
}

static const char *behavior;

static void note_behavior(void *arg, const struct dispatch_instance *i)
{
    (void) arg;
    behavior = i->idle_behavior;
}

/* How an instance stands nine seconds after a container was told to end that
 * does not. */
static void expect_behavior(int64_t term_ms, const char *want)
{
    struct sim_job job = { .run_us = 600 * (int64_t) SIM_S,
                           .ignore_term_us = 10 * SIM_S };
    struct bench b;
    struct sim_ctr *c;

    open_bench(&b);
    b.r->cfg.timeout_signal_ms = 1000;
    b.r->cfg.timeout_term_ms = term_ms;
    c = sim_api_submit(b.r->w->api, &job);
    rig_start(b.r);
    run_until_live(b.r);
    sim_api_user_cancel(b.r->w->api, c);
    run_s(b.r, 8);
    behavior = "gone";
    dispatch_each_instance(b.r->d, note_behavior, NULL);
    assert_string_equal(behavior, want);
    close_bench(&b);
}

static void test_timeout_term(void **state)
{
    (void) state;
    expect_behavior(3000, "drain");
    expect_behavior(60000, "run");
}

/* Whether an instance drains while a tree outlives its runner. */
static bool drains_while_stale(int64_t stale_ms)
{
    struct bench b;
    bool drains = false;

    open_bench(&b);
    b.r->cfg.timeout_stale_run_lock_ms = stale_ms;
    sim_fault_force(b.r->w, SIM_FAULT_RUNNER_CRASH_LATE, 1, 0);
    sim_fault_force(b.r->w, SIM_FAULT_STALE_LONG, 1, 0);
    tap(&b, 2, "runner of", "crashes");
    rig_start(b.r);
    rig_submit(b.r, 1, 60);
    while (b.taps[2].n == 0 && b.r->w->now_us < long_time)
        run_s(b.r, 1);
    for (int i = 0; i < 8; i++) {
        run_s(b.r, 1);
        behavior = "gone";
        dispatch_each_instance(b.r->d, note_behavior, NULL);
        drains |= !strcmp(behavior, "drain");
    }
    close_bench(&b);
    return drains;
}

static void test_timeout_stale_run_lock(void **state)
{
    (void) state;
    assert_true(drains_while_stale(2000));
    assert_false(drains_while_stale(600000));
}

/* --- asking the cloud ------------------------------------------------------------- */

static void make_eight(struct bench *b)
{
    tap(b, 0, "cloud create ", "sent");
    tap(b, 1, "cloud create ", "=>");
    b->r->cloud->create_lo_us = 5 * SIM_S;
    b->r->cloud->create_hi_us = 6 * SIM_S;
    rig_start(b->r);
    for (int i = 0; i < 8; i++)
        rig_submit(b->r, 8, 60);
    rig_run(b->r, long_time, rig_all_final);
}

static void test_max_create_ops(void **state)
{
    struct bench b;

    (void) state;
    open_bench(&b);
    b.r->cfg.max_create_ops = 2;
    make_eight(&b);
    assert_int_equal(b.most_in_flight, 2);
    close_bench(&b);
    open_bench(&b);
    b.r->cfg.max_create_ops = 0;
    make_eight(&b);
    assert_true(b.most_in_flight > 4);
    close_bench(&b);
}

static void test_max_cloud_ops_per_second(void **state)
{
    struct bench b;

    (void) state;
    open_bench(&b);
    b.r->cfg.max_create_ops = 0;
    b.r->cfg.max_cloud_ops_per_s = 1;
    make_eight(&b);
    assert_true(b.taps[0].last_us - b.taps[0].first_us > 6 * SIM_S);
    close_bench(&b);
    open_bench(&b);
    b.r->cfg.max_create_ops = 0;
    b.r->cfg.max_cloud_ops_per_s = 0;
    make_eight(&b);
    assert_true(b.taps[0].last_us - b.taps[0].first_us < 6 * SIM_S);
    close_bench(&b);
}

static void count_one(void *arg, const struct dispatch_instance *i)
{
    (void) i;
    ++*(size_t *) arg;
}

static bool no_instance_known(struct rig *r)
{
    size_t n = 0;

    if (!r->d)
        return false;
    dispatch_each_instance(r->d, count_one, &n);
    return n == 0;
}

/* More destroys are due than may be made, again and again: the lists that
 * settle them are made all the same. */
static void test_destroys_do_not_starve_lists(void **state)
{
    (void) state;
    EACH_SEED(r)
    {
        r->cfg.max_instances = r->cfg.max_create_ops = 60;
        r->cfg.max_cloud_ops_per_s = 5;
        r->cfg.timeout_shutdown_ms = 2000;
        rig_start(r);
        for (int i = 0; i < 60; i++)
            rig_submit(r, 8, 30);
        rig_run(r, long_time, rig_all_final);
        for (size_t i = 0; i < r->cloud->vms.n; i++)
            dispatch_kill_instance(r->d, r->cloud->vms.v[i]->id, "a test",
                                   NULL);
        assert_true(rig_run(r, 2 * MINUTE * SIM_S, no_instance_known));
    }
}

static void test_initial_quota_estimate(void **state)
{
    struct bench b;

    (void) state;
    open_bench(&b);
    b.r->cfg.max_create_ops = 0;
    b.r->cfg.initial_quota = 3;
    make_eight(&b);
    assert_int_equal(b.most_in_flight, 3); /* beyond it, one by one */
    close_bench(&b);
}

static void test_timeout_cloud_call(void **state)
{
    struct bench b;

    (void) state;
    open_bench(&b);
    b.r->cfg.cloud_deadline_ms = 7000;
    b.r->cloud->create_lo_us = b.r->cloud->create_hi_us = 60 * SIM_S;
    tap(&b, 2, "cloud create ", "sent");
    tap(&b, 3, "cloud create ", "deadline");
    rig_start(b.r);
    rig_submit(b.r, 1, 5);
    run_s(b.r, 30);
    assert_true(b.taps[3].n > 0);
    assert_between(b.taps[3].first_us - b.taps[2].first_us, 7 * SIM_S,
                   8 * SIM_S);
    b.r->cloud->create_lo_us = b.r->cloud->create_hi_us = SIM_S;
    close_bench(&b);
}

/* --- talking to instances --------------------------------------------------------- */

static void test_timeouts_of_sessions(void **state)
{
    struct bench b;
    struct sim_ctr *c;

    (void) state;
    open_bench(&b);
    b.r->w->net->no_watch = true;
    b.r->cfg.probe_ms = 2000;
    b.r->cfg.exec_deadline_ms = 4000;
    b.r->cfg.connect_deadline_ms = 3000;
    rig_start(b.r);
    c = rig_submit(b.r, 1, 300);
    run_until_live(b.r);
    run_s(b.r, 10);
    tap(&b, 2, "exec -> deadline", NULL);
    tap(&b, 3, "connect -> deadline", NULL);
    sim_machine_hang(c->starts.v[0].machine, 100 * (int64_t) SIM_S);
    run_s(b.r, 12);
    assert_int_equal(b.taps[2].n > 0, 1);
    assert_between(b.taps[2].first_us, 0, b.r->w->now_us);
    run_s(b.r, 40);
    assert_true(b.taps[3].n > 0);
    close_bench(&b);
}

static void test_max_commands_per_instance(void **state)
{
    struct bench b;

    (void) state;
    open_bench(&b);
    b.r->cfg.max_ssh_per_instance = 3;
    b.r->cfg.max_instances = 1;
    tap(&b, 0, "exec sent to", "--detach");
    tap(&b, 1, "exec on", "000000000");
    rig_start(b.r);
    for (int i = 0; i < 8; i++)
        rig_submit(b.r, 1, 30);
    rig_run(b.r, long_time, rig_all_final);
    assert_between(b.most_in_flight, 1, 3);
    close_bench(&b);
}

static void test_max_per_instance(void **state)
{
    struct bench b;

    (void) state;
    open_bench(&b);
    b.r->cfg.max_per_instance = 1;
    rig_start(b.r);
    for (int i = 0; i < 4; i++)
        rig_submit(b.r, 1, 60);
    rig_run(b.r, long_time, rig_all_final);
    assert_int_equal(b.r->cloud->made, 4);
    close_bench(&b);
}

static void test_supervisor_fraction(void **state)
{
    struct bench b;
    unsigned most = 0;

    (void) state;
    open_bench(&b);
    b.r->cfg.max_instances = 4;
    b.r->cfg.max_per_instance = 1;
    b.r->cfg.supervisor_fraction = 0.25;
    for (int i = 0; i < 4; i++)
        rig_submit(b.r, 1, 60)->rec.supervisor = true;
    rig_start(b.r);
    for (int i = 0; i < 600 && !rig_all_final(b.r); i++) {
        unsigned live = 0;

        run_s(b.r, 1);
        for (size_t j = 0; j < b.r->w->api->ctrs.n; j++)
            live += b.r->w->api->ctrs.v[j]->live;
        most = live > most ? live : most;
    }
    assert_int_equal(most, 1);
    close_bench(&b);
}

/* --- when is an instance gone? ------------------------------------------------------ */

/* Complete lists between the death of a machine and the retry of its
 * container. */
static unsigned lists_until_gone(int64_t lists, int64_t grace_ms,
                                 int64_t *ret_us)
{
    struct bench b;
    struct sim_ctr *c;
    unsigned n;
    int64_t died_us;

    open_bench(&b);
    b.r->cfg.absent_lists = lists;
    b.r->cfg.absent_grace_ms = grace_ms;
    /* Not silence shall end it here. */
    b.r->cfg.timeout_probe_ms = 3000000;
    b.r->w->silence_us = 2700 * (int64_t) SIM_S;
    b.r->cfg.sync_ms = 5000;
    rig_start(b.r);
    c = rig_submit(b.r, 1, 400);
    run_until_live(b.r);
    run_s(b.r, 5);
    tap(&b, 2, "cloud list =>", "complete");
    sim_vm_die(b.r->cloud->vms.v[0]);
    died_us = b.r->w->now_us;
    while (c->final_us == 0 && b.r->w->now_us < long_time)
        run_s(b.r, 1);
    n = b.taps[2].n;
    *ret_us = c->final_us - died_us;
    close_bench(&b);
    return n;
}

static void test_absent_lists_and_grace(void **state)
{
    int64_t us;

    (void) state;
    assert_true(lists_until_gone(2, 1000, &us) >= 2);
    assert_true(lists_until_gone(10, 1000, &us) >= 10);
    lists_until_gone(2, 300000, &us);
    assert_true(us > 200 * SIM_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_poll_interval),
        cmocka_unit_test(test_sync_interval),
        cmocka_unit_test(test_probe_interval),
        cmocka_unit_test(test_max_probes_per_second),
        cmocka_unit_test(test_timeout_idle),
        cmocka_unit_test(test_timeout_booting),
        cmocka_unit_test(test_timeout_shutdown),
        cmocka_unit_test(test_timeout_probe),
        cmocka_unit_test(test_timeout_signal),
        cmocka_unit_test(test_timeout_term),
        cmocka_unit_test(test_timeout_stale_run_lock),
        cmocka_unit_test(test_max_create_ops),
        cmocka_unit_test(test_max_cloud_ops_per_second),
        cmocka_unit_test(test_destroys_do_not_starve_lists),
        cmocka_unit_test(test_initial_quota_estimate),
        cmocka_unit_test(test_timeout_cloud_call),
        cmocka_unit_test(test_timeouts_of_sessions),
        cmocka_unit_test(test_max_commands_per_instance),
        cmocka_unit_test(test_max_per_instance),
        cmocka_unit_test(test_supervisor_fraction),
        cmocka_unit_test(test_absent_lists_and_grace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
