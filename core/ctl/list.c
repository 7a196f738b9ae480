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

static void put_row(struct table *t, const struct jsn *request,
                    const struct jsn *container)
{
    int64_t code, priority = 0;
    double cost = 0;

    jsn_opt_i64(request, "priority", &priority, NULL);
    jsn_opt_f64(request, "cumulative_cost", &cost, NULL);
    table_cell(t, record_str(request, "uuid"));
    table_cell(t, record_str(request, "name"));
    table_cell(t, container ? record_str(container, "state")
                            : record_str(request, "state"));
    if (container && jsn_i64(container, "exit_code", &code, NULL) == 0)
        table_printf(t, "%lld", (long long) code);
    else
        table_cell(t, "");
    table_printf(t, "%lld", (long long) priority);
    table_printf(t, "%.19s", record_str(request, "created_at"));
    table_printf(t, "%.6f", cost);
}

static void print_table(struct ctl *ctl, const struct jsn *requests)
{
    struct table *t = table_create("UUID|NAME|STATE|>EXIT|>PRIO|CREATED|"
                                   ">COST");
    CLEANUP(buf_fini) struct buf out;
    struct jsn *containers = NULL;

    buf_init(&out, LIST_OUT_MAX);
    for (size_t i = 0; i < jsn_count(requests); i++) {
        const struct jsn *r = jsn_at(requests, i);

        if (i % LIST_BATCH == 0) {
            jsn_free(containers);
            containers = get_containers(ctl, requests, i);
        }
        put_row(t, r, find(containers, record_str(r, "container_uuid")));
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

/* --- show ---------------------------------------------------------------------- */

/* One member of a record, whatever its type, on a line. */
static void put_member(const struct jsn *j, const char *key)
{
    CLEANUP(buf_fini) struct buf b, safe;
    const struct jsn *v = jsn_get(j, key);

    if (!v)
        return;
    buf_init(&b, 64 << 10);
    buf_init(&safe, 512 << 10);
    if (jsn_type(v) == JSN_STRING)
        buf_puts(&b, record_str(j, key));
    else
        jsn_print(v, false, &b);
    text_quote_terminal(&safe, b.data, b.len);
    printf("  %-22s %s\n", key, safe.data);
}

static void put_members(const char *title, const struct jsn *j,
                        const char *const *keys)
{
    if (!j)
        return;
    puts(title);
    for (; *keys; keys++)
        put_member(j, *keys);
}

static void show(const struct record *r)
{
    static const char *const request[] = {
        "uuid", "name", "state", "priority", "created_at", "container_uuid",
        "container_count", "container_count_max", "cumulative_cost",
        "log_uuid", "output_uuid", NULL
    };
    static const char *const container[] = {
        "uuid", "state", "exit_code", "runtime_status", "command", "cwd",
        "container_image", "environment", "mounts", "runtime_constraints",
        "scheduling_parameters", "priority", "lock_count", "attempt",
        "started_at", "finished_at", "cost", "log", "output", NULL
    };

    put_members("request", r->request, request);
    put_members("container", r->container, container);
}

static void show_json(const struct record *r)
{
    CLEANUP(buf_fini) struct buf b;
    struct jsn_w w;

    buf_init(&b, LIST_OUT_MAX);
    jsn_w_init(&w, &b);
    jsn_w_obj(&w, NULL);
    jsn_w_value(&w, "request", r->request);
    jsn_w_value(&w, "container", r->container);
    jsn_w_end_obj(&w);
    puts(b.data);
}

int verb_show(struct ctl *ctl)
{
    struct record r;
    struct err err;

    if (ctl->n_args != 1)
        return ctl_usage(ctl, "one uuid wanted");
    if (!ctl_client(ctl))
        return CTL_USAGE;
    if (record_get(ctl->client, ctl->args[0], &r, &err) < 0)
        return ctl_fail_err(&err);
    if (ctl->json)
        show_json(&r);
    else
        show(&r);
    record_fini(&r);
    return CTL_OK;
}
