/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunchctl show: a request and its container, member by member. Members that
 * are null are left out; texts are printed with control characters made
 * visible, other values as JSON. With --json both records come whole, in one
 * object. Reads only.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/ctl/client.h"
#include "core/ctl/ctl.h"
#include "core/ctl/record.h"
#include "core/ctl/verbs.h"

enum { SHOW_OUT_MAX = 64 << 20 };

/* One member of a record, whatever its type, on a line. */
static void put_member(const struct jsn *j, const char *key)
{
    CLEANUP(buf_fini) struct buf b = {0}, safe = {0};
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

    buf_init(&b, SHOW_OUT_MAX);
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
