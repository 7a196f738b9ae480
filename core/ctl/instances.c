/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunchctl instances and explain: the dispatcher's management API. explain
 * works without a management token too: then it asks the API server for the
 * status that it knows.
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
#include "core/ctl/instances.h"
#include "core/ctl/record.h"
#include "core/ctl/table.h"
#include "core/ctl/verbs.h"

#define DISPATCH "/arvados/v1/dispatch/"

enum { INSTANCES_OUT_MAX = 64 << 20 };

static void print_json(const struct jsn *j)
{
    CLEANUP(buf_fini) struct buf b;

    buf_init(&b, INSTANCES_OUT_MAX);
    jsn_print(j, false, &b);
    puts(b.data);
}

/* "2 x1 x2": the number and the short ends of the uuids would not help a
 * reader; the number alone does. */
static void put_row(struct table *t, const struct jsn *i)
{
    double price = 0;

    jsn_opt_f64(i, "price", &price, NULL);
    table_cell(t, record_str(i, "instance"));
    table_cell(t, record_str(i, "worker_state"));
    table_cell(t, record_str(i, "idle_behavior"));
    table_cell(t, record_str(i, "arvados_instance_type"));
    table_cell(t, record_str(i, "backend"));
    table_cell(t, record_str(i, "address"));
    table_printf(t, "%.6f", price);
    table_printf(t, "%zu", jsn_count(jsn_get(i, "running_container_uuids")));
    table_cell(t, record_str(i, "reason"));
}

void instances_print(const struct jsn *list, size_t width, struct buf *out)
{
    const struct jsn *items = jsn_get(list, "items");
    struct table *t = table_create("INSTANCE|STATE|BEHAVIOR|TYPE|BACKEND|"
                                   "ADDRESS|>PRICE|>RUNNING|WHY");

    for (size_t i = 0; i < jsn_count(items); i++)
        put_row(t, jsn_at(items, i));
    table_print(t, width, out);
    table_destroy(t);
}

static int list_instances(struct ctl *ctl)
{
    struct err err;
    CLEANUP(jsn_cleanup) struct jsn *list =
        client_call(ctl->client, CLIENT_DISPATCH, "GET",
                    DISPATCH "instances", NULL, &err);
    CLEANUP(buf_fini) struct buf out;

    buf_init(&out, INSTANCES_OUT_MAX);
    if (!list)
        return ctl_fail_err(&err);
    if (ctl->json) {
        print_json(list);
        return CTL_OK;
    }
    instances_print(list, 0, &out);
    fputs(out.data, stdout);
    return CTL_OK;
}

static int act(struct ctl *ctl, const char *action, const char *id)
{
    const char *reason = ctl_opt(ctl, "reason");
    CLEANUP(mem_free) char *prefix =
        mem_printf(DISPATCH "instances/%s?instance_id=", action);
    CLEANUP(mem_free) char *path = record_path(prefix, id, "&reason=");
    CLEANUP(mem_free) char *whole = record_path(path, reason ? reason : "",
                                                "");
    struct err err;
    CLEANUP(jsn_cleanup) struct jsn *j =
        client_call(ctl->client, CLIENT_DISPATCH, "POST", whole, NULL, &err);

    if (!j)
        return ctl_fail_err(&err);
    if (ctl->json)
        print_json(j);
    else
        printf("%s %s\n", id, action);
    return CTL_OK;
}

int verb_instances(struct ctl *ctl)
{
    static const char *const actions[] = { "hold", "drain", "run", "kill" };
    int rc = CTL_OK;

    if (ctl->n_args == 0 ||
        (ctl->n_args == 1 && !strcmp(ctl->args[0], "list")))
        return ctl_client(ctl) ? list_instances(ctl) : CTL_USAGE;
    for (size_t a = 0; a < MEM_COUNT(actions); a++) {
        if (strcmp(actions[a], ctl->args[0]) != 0)
            continue;
        if (ctl->n_args < 2)
            return ctl_usage(ctl, "an instance id is missing");
        if (!ctl_client(ctl))
            return CTL_USAGE;
        for (size_t i = 1; i < ctl->n_args; i++) {
            int one = act(ctl, ctl->args[0], ctl->args[i]);

            rc = one ? one : rc;
        }
        return rc;
    }
    return ctl_usage(ctl, "hold, drain, run or kill wanted");
}

/* --- explain ---------------------------------------------------------------------- */

static void put_line(const char *what, const char *text)
{
    CLEANUP(buf_fini) struct buf safe = {0};

    if (!*text)
        return;
    buf_init(&safe, 64 << 10);
    text_quote_terminal(&safe, text, strlen(text));
    printf("%-10s %s\n", what, safe.data);
}

static void put_types(const struct jsn *j)
{
    const struct jsn *types = jsn_get(j, "instance_types");

    for (size_t i = 0; i < jsn_count(types); i++) {
        double price = 0;

        jsn_opt_f64(jsn_at(types, i), "Price", &price, NULL);
        printf("%-10s %s at %.6f per hour\n", i ? "" : "types",
               record_str(jsn_at(types, i), "Name"), price);
    }
}

static void put_explanation(const struct jsn *j)
{
    put_line("container", record_str(j, "container_uuid"));
    put_line("state", record_str(j, "state"));
    put_line("status", record_str(j, "scheduling_status"));
    put_line("process", record_str(j, "process"));
    put_line("instance", record_str(j, "instance"));
    put_line("since", record_str(j, "first_seen_at"));
    put_types(j);
}

/* What the records alone say, when the dispatcher does not know it (any
 * more) or cannot be asked. */
static int explain_record(struct ctl *ctl, const struct record *r)
{
    if (ctl->json) {
        print_json(r->container);
        return CTL_OK;
    }
    put_line("container", record_str(r->container, "uuid"));
    put_line("state", record_state(r));
    put_line("status", record_problem(r));
    put_line("ended", record_str(r->container, "finished_at"));
    return CTL_OK;
}

static struct jsn *ask(struct ctl *ctl, const struct record *r,
                       struct err *err)
{
    const char *uuid = record_str(r->container, "uuid");
    CLEANUP(mem_free) char *path =
        client_has_dispatch(ctl->client)
            ? record_path(DISPATCH "explain?container_uuid=", uuid, "")
            : record_path("/arvados/v1/container_requests/",
                          record_str(r->request, "uuid"),
                          "/container_status");

    return client_call(ctl->client,
                       client_has_dispatch(ctl->client) ? CLIENT_DISPATCH
                                                        : CLIENT_API,
                       "GET", path, NULL, err);
}

static int explain(struct ctl *ctl, const struct record *r)
{
    struct err err;
    CLEANUP(jsn_cleanup) struct jsn *j = NULL;

    if (!r->container)
        return ctl_fail(CTL_NOT_FOUND, "%s has no container yet",
                        ctl->args[0]);
    j = ask(ctl, r, &err);
    if (!j && err.class == ERR_NOT_FOUND)
        return explain_record(ctl, r);
    if (!j)
        return ctl_fail_err(&err);
    if (ctl->json)
        print_json(j);
    else
        put_explanation(j);
    return CTL_OK;
}

int verb_explain(struct ctl *ctl)
{
    struct record r;
    struct err err;
    int rc;

    if (ctl->n_args != 1)
        return ctl_usage(ctl, "one uuid wanted");
    if (!ctl_client(ctl))
        return CTL_USAGE;
    if (record_get(ctl->client, ctl->args[0], &r, &err) < 0)
        return ctl_fail_err(&err);
    rc = explain(ctl, &r);
    record_fini(&r);
    return rc;
}
