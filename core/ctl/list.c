/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunchctl list and show: requests with their containers. A list reads one
 * page of requests and, in one more call, the containers of that page. Both
 * verbs only read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/ctl/client.h"
#include "core/ctl/ctl.h"
#include "core/ctl/record.h"
#include "core/ctl/table.h"
#include "core/ctl/verbs.h"

enum { LIST_OUT_MAX = 64 << 20, LIST_BATCH = 100 };

static struct jsn *get_requests(struct ctl *ctl, int64_t limit,
                                struct err *err)
{
    const char *state = ctl_opt(ctl, "state");
    CLEANUP(mem_free) char *filter =
        state ? record_path("&filters=%5B%5B%22container.state%22,%22=%22,%22",
                            state, "%22%5D%5D") : mem_strdup("");
    CLEANUP(mem_free) char *path =
        mem_printf("/arvados/v1/container_requests?count=none&"
                   "order=created_at+desc&limit=%lld%s",
                   (long long) limit, filter);

    return client_call(ctl->client, CLIENT_API, "GET", path, NULL, err);
}

/* The containers of requests [from, from + LIST_BATCH). */
static struct jsn *get_containers(struct ctl *ctl, const struct jsn *requests,
                                  size_t from)
{
    CLEANUP(buf_fini) struct buf b;
    CLEANUP(mem_free) char *path = NULL;
    size_t n = 0;

    buf_init(&b, 16 << 10);
    buf_puts(&b, "[[\"uuid\",\"in\",[");
    for (size_t i = from; i < jsn_count(requests) && i < from + LIST_BATCH;
         i++) {
        const char *uuid =
            record_str(jsn_at(requests, i), "container_uuid");

        if (*uuid)
            buf_printf(&b, "%s\"%s\"", n++ ? "," : "", uuid);
    }
    buf_puts(&b, "]]]");
    if (!n)
        return NULL;
    path = record_path("/arvados/v1/containers?count=none&limit=1000&filters=",
                       b.data, "");
    return client_call(ctl->client, CLIENT_API, "GET", path, NULL, NULL);
}

static const struct jsn *find(const struct jsn *list, const char *uuid)
{
    const struct jsn *items = jsn_get(list, "items");

    for (size_t i = 0; i < jsn_count(items); i++)
        if (!strcmp(record_str(jsn_at(items, i), "uuid"), uuid))
            return jsn_at(items, i);
    return NULL;
}

static void put_state(struct table *t, const struct jsn *request,
                      const struct jsn *container)
{
    int64_t code;

    table_cell(t, record_str(request, "uuid"));
    table_cell(t, record_str(request, "name"));
    table_cell(t, container ? record_str(container, "state")
                            : record_str(request, "state"));
    if (container && jsn_i64(container, "exit_code", &code, NULL) == 0)
        table_printf(t, "%lld", (long long) code);
    else
        table_cell(t, "");
}

static void put_cost(struct table *t, const struct jsn *request)
{
    double cost = 0;

    jsn_opt_f64(request, "cumulative_cost", &cost, NULL);
    table_printf(t, "%.6f", cost);
}

static void put_row(struct table *t, const struct jsn *request,
                    const struct jsn *container)
{
    int64_t priority = 0;

    jsn_opt_i64(request, "priority", &priority, NULL);
    put_state(t, request, container);
    table_printf(t, "%lld", (long long) priority);
    table_printf(t, "%.19s", record_str(request, "created_at"));
    put_cost(t, request);
}

/* The host name of the machine: the second word of the second line of the
 * runner's node-info.txt. Empty when it is not there (yet). */
static void put_node(struct ctl *ctl, struct table *t, const char *request)
{
    CLEANUP(mem_free) char *path =
        record_path("/arvados/v1/container_requests/", request,
                    "/log/node-info.txt");
    CLEANUP(buf_fini) struct buf b;
    const char *p;

    buf_init(&b, 1 << 20);
    if (client_fetch(ctl->client, path, 0, &b, NULL) < 0)
        buf_reset(&b);
    p = strchr(b.data, '\n');
    p = p ? strchr(p, ' ') : NULL;
    if (p)
        table_printf(t, "%.*s", (int) strcspn(p + 1, " \n"), p + 1);
    else
        table_cell(t, "");
}

/* Seconds between two times of a record; empty when one is missing. */
static void put_span(struct table *t, int64_t from, int64_t to)
{
    if (from && to)
        table_printf(t, "%.2f s", (double) (to - from) / 1e6);
    else
        table_cell(t, "");
}

static void put_long_row(struct ctl *ctl, struct table *t,
                         const struct jsn *request,
                         const struct jsn *container)
{
    int64_t started = record_time(container, "started_at");

    put_state(t, request, container);
    put_node(ctl, t, record_str(request, "uuid"));
    put_span(t, record_time(container, "created_at"), started);
    put_span(t, started, record_time(container, "finished_at"));
    put_cost(t, request);
}

static void print_table(struct ctl *ctl, const struct jsn *requests)
{
    bool wide = ctl_has(ctl, "long");
    struct table *t = table_create(
        wide ? "UUID|NAME|STATE|>EXIT|NODE|>WAIT|>RUN|>COST"
             : "UUID|NAME|STATE|>EXIT|>PRIO|CREATED|>COST");
    CLEANUP(buf_fini) struct buf out;
    struct jsn *containers = NULL;

    buf_init(&out, LIST_OUT_MAX);
    for (size_t i = 0; i < jsn_count(requests); i++) {
        const struct jsn *r = jsn_at(requests, i), *c;

        if (i % LIST_BATCH == 0) {
            jsn_free(containers);
            containers = get_containers(ctl, requests, i);
        }
        c = find(containers, record_str(r, "container_uuid"));
        if (wide)
            put_long_row(ctl, t, r, c);
        else
            put_row(t, r, c);
    }
    jsn_free(containers);
    table_print(t, 0, &out);
    fputs(out.data, stdout);
    table_destroy(t);
}

static void print_json_lines(const struct jsn *items)
{
    for (size_t i = 0; i < jsn_count(items); i++) {
        CLEANUP(buf_fini) struct buf b;

        buf_init(&b, LIST_OUT_MAX);
        jsn_print(jsn_at(items, i), false, &b);
        puts(b.data);
    }
}

int verb_list(struct ctl *ctl)
{
    CLEANUP(jsn_cleanup) struct jsn *list = NULL;
    int64_t limit;
    struct err err;

    if (ctl->n_args)
        return ctl_usage(ctl, "takes no arguments");
    if (ctl_opt_i64(ctl, "limit", 50, 1, 1000, &limit) < 0)
        return CTL_USAGE;
    if (!ctl_client(ctl))
        return CTL_USAGE;
    list = get_requests(ctl, limit, &err);
    if (!list)
        return ctl_fail_err(&err);
    if (ctl->json)
        print_json_lines(jsn_get(list, "items"));
    else
        print_table(ctl, jsn_get(list, "items"));
    return CTL_OK;
}
