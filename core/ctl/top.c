/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunchctl top: queue and instances, looked at again and again. On a
 * terminal the screen is drawn anew each time and cut to its size; piped, the
 * same lines follow each other, one look unless --count says otherwise. With
 * --json one object a look. A dispatcher that does not answer is shown as
 * such, and asked again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
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

enum { TOP_OUT_MAX = 64 << 20, TOP_CONTAINERS = 1000 };

struct look {
    struct jsn *instances, *containers, *health;
};

static struct jsn *get(struct ctl *ctl, const char *path, struct err *err)
{
    return client_call(ctl->client, CLIENT_DISPATCH, "GET", path, NULL, err);
}

static int look_at(struct ctl *ctl, struct look *l, struct err *err)
{
    l->instances = get(ctl, "/arvados/v1/dispatch/instances", err);
    if (l->instances)
        l->containers = get(ctl, "/arvados/v1/dispatch/containers", err);
    if (l->containers)
        l->health = get(ctl, "/_health/ping", err);
    return l->health ? 0 : -1;
}

static void look_fini(struct look *l)
{
    jsn_free(l->instances);
    jsn_free(l->containers);
    jsn_free(l->health);
}

static void put_head(const struct look *l, struct buf *out)
{
    const struct jsn *items = jsn_get(l->containers, "items");
    size_t n[3] = { 0 };
    static const char *const states[] = { "Queued", "Locked", "Running" };
    double rate = 0;
    char now[TEXT_TIME_SIZE];

    for (size_t i = 0; i < jsn_count(items); i++)
        for (size_t s = 0; s < 3; s++)
            n[s] += !strcmp(record_str(jsn_get(jsn_at(items, i), "container"),
                                       "state"), states[s]);
    items = jsn_get(l->instances, "items");
    for (size_t i = 0; i < jsn_count(items); i++) {
        double price = 0;

        jsn_opt_f64(jsn_at(items, i), "price", &price, NULL);
        rate += price;
    }
    buf_printf(out, "%.19sZ  queued %zu  locked %zu  running %zu  "
                    "instances %zu  %.4f per hour  health %s%s%s\n\n",
               text_format_time(clock_wall_us(), now), n[0], n[1], n[2],
               jsn_count(items), rate, record_str(l->health, "health"),
               *record_str(l->health, "error") ? ": " : "",
               record_str(l->health, "error"));
}

static void put_containers(const struct look *l, size_t width,
                           struct buf *out)
{
    const struct jsn *items = jsn_get(l->containers, "items");
    struct table *t = table_create("CONTAINER|STATE|PROCESS|INSTANCE|STATUS");

    for (size_t i = 0; i < jsn_count(items) && i < TOP_CONTAINERS; i++) {
        const struct jsn *e = jsn_at(items, i), *c = jsn_get(e, "container");

        table_cell(t, record_str(c, "uuid"));
        table_cell(t, record_str(c, "state"));
        table_cell(t, record_str(e, "process"));
        table_cell(t, record_str(e, "instance"));
        table_cell(t, record_str(e, "scheduling_status"));
    }
    if (table_rows(t)) {
        buf_putc(out, '\n');
        table_print(t, width, out);
    }
    table_destroy(t);
}

static void put_json(const struct look *l, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_value(&w, "health", l->health);
    jsn_w_value(&w, "instances", jsn_get(l->instances, "items"));
    jsn_w_value(&w, "containers", jsn_get(l->containers, "items"));
    jsn_w_end_obj(&w);
    buf_putc(out, '\n');
}

/* Cut to the terminal's height, so that the top stays in view. */
static void cut_lines(struct buf *b, size_t rows)
{
    size_t seen = 0;

    for (size_t i = 0; rows && i < b->len; i++)
        if (b->data[i] == '\n' && ++seen == rows - 1)
            buf_truncate(b, i + 1);
}

static int show(struct ctl *ctl)
{
    struct winsize size = { 0 };
    CLEANUP(buf_fini) struct buf out;
    struct look l = { 0 };
    struct err err;

    buf_init(&out, TOP_OUT_MAX);
    if (ctl->tty)
        ioctl(1, TIOCGWINSZ, &size);
    if (look_at(ctl, &l, &err) < 0) {
        look_fini(&l);
        return ctl_fail_err(&err);
    }
    if (ctl->json) {
        put_json(&l, &out);
    } else {
        put_head(&l, &out);
        instances_print(l.instances, size.ws_col, &out);
        put_containers(&l, size.ws_col, &out);
        cut_lines(&out, size.ws_row);
    }
    if (ctl->tty && !ctl->json)
        fputs("\033[H\033[2J", stdout);
    fputs(out.data, stdout);
    fflush(stdout);
    look_fini(&l);
    return CTL_OK;
}

int verb_top(struct ctl *ctl)
{
    int64_t interval, count;
    struct err err;
    int rc = CTL_OK;

    if (ctl->n_args)
        return ctl_usage(ctl, "takes no arguments");
    if (ctl_opt_duration(ctl, "interval", 1000, &interval) < 0 ||
        ctl_opt_i64(ctl, "count", ctl->tty ? 0 : 1, 0, 1000000000,
                    &count) < 0)
        return CTL_USAGE;
    if (!ctl_client(ctl))
        return CTL_USAGE;
    if (client_catch_interrupt(ctl->client, &err) < 0)
        return ctl_fail_err(&err);
    for (int64_t i = 1;; i++) {
        rc = show(ctl);
        if (count ? i >= count : rc == CTL_USAGE)
            return rc;
        if (!client_sleep(ctl->client, interval < 100 ? 100 : interval))
            return CTL_OK;
    }
}
