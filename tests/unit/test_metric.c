/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/metric: the exposition format, limits. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/base/buf.h"
#include "core/base/metric.h"

struct fixture {
    struct metrics *m;
    struct buf out;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->m = metrics_create();
    buf_init(&f->out, 1 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    metrics_destroy(f->m);
    buf_fini(&f->out);
    free(f);
    return 0;
}

static const char *scrape(struct fixture *f)
{
    buf_reset(&f->out);
    metrics_print(f->m, &f->out);
    return f->out.data;
}

static void test_counter_and_gauge(void **state)
{
    struct fixture *f = *state;
    struct metric *c = metric_add(f->m, METRIC_COUNTER, "a_total",
                                  "All of \\ them\nhere.", "");
    struct metric *g = metric_add(f->m, METRIC_GAUGE, "vms", "VMs.",
                                  "state,type");
    assert_string_equal(scrape(f),
                        "# HELP a_total All of \\\\ them\\nhere.\n"
                        "# TYPE a_total counter\n"
                        "a_total 0\n"
                        "# HELP vms VMs.\n"
                        "# TYPE vms gauge\n");
    metric_inc(c, 2, NULL, NULL, NULL);
    metric_inc(c, 0.5, "ignored", NULL, NULL);
    metric_set(g, 3, "idle", "x\"\\\n", NULL);
    metric_set(g, 1, "booting", NULL, NULL);
    assert_string_equal(scrape(f),
                        "# HELP a_total All of \\\\ them\\nhere.\n"
                        "# TYPE a_total counter\n"
                        "a_total 2.5\n"
                        "# HELP vms VMs.\n"
                        "# TYPE vms gauge\n"
                        "vms{state=\"booting\",type=\"\"} 1\n"
                        "vms{state=\"idle\",type=\"x\\\"\\\\\\n\"} 3\n");
    assert_true(metric_value(g, "idle", "x\"\\\n", NULL) == 3);
    assert_true(metric_value(g, "no", "such", NULL) == 0);
    metric_zero(g);
    assert_true(metric_value(g, "idle", "x\"\\\n", NULL) == 0);
    assert_non_null(strstr(scrape(f), "vms{state=\"booting\",type=\"\"} 0\n"));
}

static void test_same_name(void **state)
{
    struct fixture *f = *state;
    struct metric *a = metric_add(f->m, METRIC_COUNTER, "a", "A.", "");
    assert_ptr_equal(metric_add(f->m, METRIC_COUNTER, "a", "A.", ""), a);
}

static void test_histogram(void **state)
{
    struct fixture *f = *state;
    struct metric *h = metric_add(f->m, METRIC_HISTOGRAM, "h_seconds", "H.",
                                  "op");
    metric_observe(h, 0.001, "x", NULL, NULL); /* on a bound: inside */
    metric_observe(h, 0.3, "x", NULL, NULL);
    metric_observe(h, 1e6, "x", NULL, NULL);
    const char *text = scrape(f);
    assert_non_null(strstr(text, "h_seconds_bucket{op=\"x\",le=\"0.001\"} 1\n"));
    assert_non_null(strstr(text, "h_seconds_bucket{op=\"x\",le=\"0.25\"} 1\n"));
    assert_non_null(strstr(text, "h_seconds_bucket{op=\"x\",le=\"0.5\"} 2\n"));
    assert_non_null(strstr(text, "h_seconds_bucket{op=\"x\",le=\"10000\"} 2\n"));
    assert_non_null(strstr(text, "h_seconds_bucket{op=\"x\",le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(text, "h_seconds_sum{op=\"x\"} 1000000.301\n"));
    assert_non_null(strstr(text, "h_seconds_count{op=\"x\"} 3\n"));
    assert_true(metric_value(h, "x", NULL, NULL) == 3);
}

static void test_summary(void **state)
{
    struct fixture *f = *state;
    struct metric *s = metric_add(f->m, METRIC_SUMMARY, "s", "S.", "");
    assert_non_null(strstr(scrape(f), "s{quantile=\"0.5\"} NaN\n"));
    for (int i = 100; i >= 1; i--)
        metric_observe(s, i, NULL, NULL, NULL);
    const char *text = scrape(f);
    assert_non_null(strstr(text, "s{quantile=\"0.5\"} 50\n"));
    assert_non_null(strstr(text, "s{quantile=\"0.95\"} 95\n"));
    assert_non_null(strstr(text, "s{quantile=\"0.99\"} 99\n"));
    assert_non_null(strstr(text, "s_sum 5050\ns_count 100\n"));
    /* The window forgets, the totals do not. */
    for (int i = 0; i < 1024; i++)
        metric_observe(s, 7, NULL, NULL, NULL);
    text = scrape(f);
    assert_non_null(strstr(text, "s{quantile=\"0.99\"} 7\n"));
    assert_non_null(strstr(text, "s_count 1124\n"));
}

static void test_series_limit(void **state)
{
    struct fixture *f = *state;
    struct metric *g = metric_add(f->m, METRIC_GAUGE, "g", "G.", "a");
    char label[16];
    for (int i = 0; i < 1500; i++) {
        snprintf(label, sizeof label, "%d", i);
        metric_set(g, 1, label, NULL, NULL);
    }
    assert_true(metric_value(g, "999", NULL, NULL) == 1);
    assert_true(metric_value(g, "1000", NULL, NULL) == 0);
    metric_set(g, 2, "999", NULL, NULL); /* those that exist go on */
    assert_true(metric_value(g, "999", NULL, NULL) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counter_and_gauge, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_same_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_histogram, setup, teardown),
        cmocka_unit_test_setup_teardown(test_summary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_series_limit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
