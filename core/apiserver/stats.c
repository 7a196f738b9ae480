/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of the API server in Prometheus' text format.
 *
 * Requests are counted by method, resource and status, not by uuid: the number
 * of series is bounded. What the store knows is read when somebody asks.
 */
#include "core/apiserver/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/resource.h"
#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/base/metric.h"
#include "core/store/store.h"

struct stats {
    struct metrics *m;
    struct metric *requests, *seconds, *running, *max_running, *conns;
    struct metric *commits, *writes, *commit_s, *failures, *waiting, *wal;
};

struct stats *stats_create(void)
{
    struct stats *s = MEM_NEW(struct stats);
    struct metrics *m = s->m = metrics_create();

    s->requests = metric_add(m, METRIC_COUNTER, "cdc_api_requests_total",
                             "Requests answered.", "method,resource,code");
    s->seconds = metric_add(m, METRIC_HISTOGRAM,
                            "cdc_api_request_duration_seconds",
                            "Time from the first byte of a request to its "
                            "reply.", "method");
    s->running = metric_add(m, METRIC_GAUGE, "arvados_concurrent_requests",
                            "Requests in work or waiting.", "");
    s->max_running = metric_add(m, METRIC_GAUGE,
                                "arvados_max_concurrent_requests",
                                "Most of them; more are answered 503.", "");
    s->conns = metric_add(m, METRIC_GAUGE, "cdc_api_connections",
                          "Client connections.", "");
    s->commits = metric_add(m, METRIC_COUNTER, "cdc_api_commits_total",
                            "Groups of writes committed.", "");
    s->writes = metric_add(m, METRIC_COUNTER, "cdc_api_writes_total",
                           "Writes in them.", "");
    s->commit_s = metric_add(m, METRIC_COUNTER, "cdc_api_commit_seconds_total",
                             "Time in commits.", "");
    s->failures = metric_add(m, METRIC_COUNTER,
                             "cdc_api_commit_failures_total",
                             "Groups that could not be committed.", "");
    s->waiting = metric_add(m, METRIC_GAUGE, "cdc_api_store_waiting",
                            "Requests waiting for the database.", "");
    s->wal = metric_add(m, METRIC_GAUGE, "cdc_api_wal_pages",
                        "Pages in the write-ahead log.", "");
    return s;
}

void stats_destroy(struct stats *s)
{
    if (!s)
        return;
    metrics_destroy(s->m);
    free(s);
}

static const char *resource_name(const char *path)
{
    static const char prefix[] = "/arvados/v1/";
    const struct resource *r;

    if (strncmp(path, prefix, sizeof prefix - 1) != 0)
        return "other";
    path += sizeof prefix - 1;
    for (size_t i = 0; (r = resource_at(i)); i++) {
        size_t n = strlen(r->many);
        if (strncmp(path, r->many, n) == 0 && (!path[n] || path[n] == '/'))
            return r->many;
    }
    return strcmp(path, "feed") == 0 ? "feed" : "other";
}

static const char *method_name(const char *method)
{
    static const char *const known[] = {
        "GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"};

    for (size_t i = 0; i < MEM_COUNT(known); i++)
        if (strcmp(known[i], method) == 0)
            return known[i];
    return "other";
}

void stats_reply(struct stats *s, const char *method, const char *path,
                 int status, int64_t us)
{
    char code[8];

    snprintf(code, sizeof code, "%d", status);
    method = method_name(method);
    metric_inc(s->requests, 1, method, resource_name(path), code);
    metric_observe(s->seconds, (double) us / 1e6, method, NULL, NULL);
}

/* A counter that somebody else counts. */
static void set_counter(struct metric *m, double value)
{
    metric_inc(m, value - metric_value(m, NULL, NULL, NULL), NULL, NULL,
               NULL);
}

void stats_print(struct stats *s, const struct app *app, unsigned conns,
                 struct buf *out)
{
    struct store_stats st;

    store_get_stats(app->store, &st);
    metric_set(s->running, (double) app->calls, NULL, NULL, NULL);
    metric_set(s->max_running, (double) app->cfg.max_calls, NULL, NULL, NULL);
    metric_set(s->conns, conns, NULL, NULL, NULL);
    metric_set(s->waiting, (double) st.waiting, NULL, NULL, NULL);
    metric_set(s->wal, (double) st.wal_pages, NULL, NULL, NULL);
    set_counter(s->commits, (double) st.commits);
    set_counter(s->writes, (double) st.writes);
    set_counter(s->commit_s, (double) st.commit_us / 1e6);
    set_counter(s->failures, (double) st.failures);
    metrics_print(s->m, out);
}
