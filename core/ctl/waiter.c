/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting: a look at each unfinished request, then a pause that grows from
 * 50 ms to 1 s while nothing changes. Many requests are looked at in lists of
 * 100. Progress goes to standard error: on a terminal one line that is drawn
 * anew, else a line per change of state; nothing with --json.
 *
 * An answer that fails is not the end of a wait: the server may be starting
 * again. After OUTAGE_MS without any answer the wait ends as unreachable.
 */
#include "core/ctl/waiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/ctl/client.h"
#include "core/ctl/ctl.h"
#include "core/ctl/record.h"
#include "core/ctl/verbs.h"

enum {
    WAIT_BATCH = 100, WAIT_MIN_MS = 50, WAIT_MAX_MS = 1000,
    WAIT_OUTAGE_MS = 60000, WAIT_INTERRUPTED = 130
};

struct item {
    const char *uuid;
    char state[16];
    bool final;
    int code;
};

struct waiter {
    struct ctl *ctl;
    struct client *client;
    struct item *v;
    size_t n, left;
    bool changed, line;
    int64_t last_answer_us;
};

static void say(struct waiter *w, const struct item *it, const char *state)
{
    if (w->ctl->json || isatty(2))
        return;
    fprintf(stderr, "%s %s\n", it->uuid, state);
}

/* The one line of a terminal. */
static void draw(struct waiter *w)
{
    size_t running = 0;

    if (w->ctl->json || !isatty(2))
        return;
    for (size_t i = 0; i < w->n; i++)
        running += !strcmp(w->v[i].state, "Running");
    if (w->n == 1)
        fprintf(stderr, "\r\033[K%s %s", w->v[0].uuid, w->v[0].state);
    else
        fprintf(stderr, "\r\033[K%zu of %zu ended, %zu running",
                w->n - w->left, w->n, running);
    w->line = true;
}

static void see(struct waiter *w, struct item *it, const char *state)
{
    if (!strcmp(it->state, state))
        return;
    snprintf(it->state, sizeof it->state, "%s", state);
    w->changed = true;
    say(w, it, state);
}

/* A final request is read whole once, for its exit code. */
static int judge(struct waiter *w, struct item *it, struct err *err)
{
    struct record r;

    if (record_get(w->client, it->uuid, &r, err) < 0)
        return -1;
    see(w, it, *record_state(&r) ? record_state(&r) : "Queued");
    if (record_final(&r)) {
        it->final = true;
        it->code = record_exit_code(&r);
        if (it->code && !w->ctl->json && *record_problem(&r))
            ctl_fail(0, "%s: %s", it->uuid, record_problem(&r));
        w->left--;
    }
    record_fini(&r);
    return 0;
}

/* States of up to WAIT_BATCH requests from one list call: those that are not
 * Final any more need a closer look. */
static char *batch_path(const struct waiter *w, size_t from, size_t *ret_to)
{
    CLEANUP(buf_fini) struct buf b;
    size_t n = 0, i = from;

    buf_init(&b, 16 << 10);
    buf_puts(&b, "[[\"state\",\"=\",\"Final\"],[\"uuid\",\"in\",[");
    for (; i < w->n && n < WAIT_BATCH; i++)
        if (!w->v[i].final)
            buf_printf(&b, "%s\"%s\"", n++ ? "," : "", w->v[i].uuid);
    buf_puts(&b, "]]]");
    *ret_to = i;
    return record_path("/arvados/v1/container_requests?count=none&limit=100&"
                       "select=%5B%22uuid%22%5D&filters=", b.data, "");
}

static struct item *find(struct waiter *w, const char *uuid)
{
    for (size_t i = 0; i < w->n; i++)
        if (!w->v[i].final && !strcmp(w->v[i].uuid, uuid))
            return &w->v[i];
    return NULL;
}

static int look_many(struct waiter *w, struct err *err)
{
    for (size_t from = 0; from < w->n;) {
        CLEANUP(mem_free) char *path = batch_path(w, from, &from);
        CLEANUP(jsn_cleanup) struct jsn *list =
            client_call(w->client, CLIENT_API, "GET", path, NULL, err);
        const struct jsn *items = jsn_get(list, "items");

        if (!list)
            return -1;
        for (size_t i = 0; i < jsn_count(items); i++) {
            struct item *it =
                find(w, record_str(jsn_at(items, i), "uuid"));

            if (it && judge(w, it, err) < 0)
                return -1;
        }
    }
    return 0;
}

static int look(struct waiter *w, struct err *err)
{
    w->changed = false;
    if (w->n > 4)
        return look_many(w, err);
    for (size_t i = 0; i < w->n; i++)
        if (!w->v[i].final && judge(w, &w->v[i], err) < 0)
            return -1;
    return 0;
}

/* 0 = go on waiting; else the exit code plus one. */
static int settle(struct waiter *w, int rc, const struct err *err)
{
    int64_t now = clock_mono_us();

    if (rc == 0) {
        w->last_answer_us = now;
        return 0;
    }
    if (err->class != ERR_TRANSIENT && err->class != ERR_TIMEOUT &&
        err->class != ERR_RATE_LIMITED)
        return 1 + ctl_fail_err(err);
    if (now - w->last_answer_us > WAIT_OUTAGE_MS * 1000LL)
        return 1 + ctl_fail_err(err);
    return 0;
}

static int interrupted(const struct waiter *w)
{
    fprintf(stderr, "\ncrunchctl: not waiting any more; it goes on. To "
                    "cancel:\n  crunchctl cancel");
    for (size_t i = 0; i < w->n && i < 20; i++)
        if (!w->v[i].final)
            fprintf(stderr, " %s", w->v[i].uuid);
    fputs("\n", stderr);
    return WAIT_INTERRUPTED;
}

static int result(const struct waiter *w)
{
    int code = 0;

    if (w->n == 1)
        return w->v[0].code;
    for (size_t i = 0; i < w->n; i++)
        code = w->v[i].code ? CTL_FAILED : code;
    return code;
}

static int loop(struct waiter *w, int64_t timeout_ms)
{
    int64_t end = clock_mono_us() + timeout_ms * 1000, pause = WAIT_MIN_MS;

    w->last_answer_us = clock_mono_us();
    while (w->left) {
        struct err err;
        int stop = settle(w, look(w, &err), &err);

        if (stop)
            return stop - 1;
        draw(w);
        if (!w->left)
            break;
        if (timeout_ms && clock_mono_us() >= end)
            return ctl_fail(CTL_TIMEOUT, "%zu of %zu have not ended in time",
                            w->left, w->n);
        pause = w->changed ? WAIT_MIN_MS : 2 * pause;
        if (pause > WAIT_MAX_MS)
            pause = WAIT_MAX_MS;
        if (!client_sleep(w->client, pause))
            return interrupted(w);
    }
    return result(w);
}

int waiter_run(struct ctl *ctl, char *const *uuids, size_t n,
               int64_t timeout_ms)
{
    struct waiter w = { .ctl = ctl, .client = ctl_client(ctl), .n = n,
                        .left = n };
    struct err err;
    int rc;

    if (!w.client)
        return CTL_USAGE;
    if (client_catch_interrupt(w.client, &err) < 0)
        return ctl_fail_err(&err);
    w.v = mem_calloc(n, sizeof *w.v);
    for (size_t i = 0; i < n; i++)
        w.v[i].uuid = uuids[i];
    rc = loop(&w, timeout_ms);
    if (w.line)
        fputs("\n", stderr);
    free(w.v);
    return rc;
}
