/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of changes and those who wait on it.
 *
 * Each entry is a commit number and a record's uuid. A reader names the number
 * up to which it knows everything; it is owed the later ones, each uuid once,
 * at most ITEMS_MAX an answer. If its number has left the ring, or belongs to
 * an earlier run of this server (another epoch), it is told to read everything
 * again.
 *
 * An answer that ends in the middle of a commit would lose the rest of it, so
 * the cursor of a full answer is that of the last commit it holds whole.
 *
 * The ring says nothing about content: the reader reads again, and what it
 * reads may be newer than the entry. Loop thread only.
 */
#include "core/apiserver/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/handlers.h"
#include "core/apiserver/ident.h"
#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/io/loop.h"

enum { ITEMS_MAX = 1000, WAIT_MAX_S = 50, WAITERS_MAX = 200 };

struct entry {
    int64_t seq;
    char uuid[IDENT_UUID];
    uint8_t table;
};

struct waiter {
    struct feed *feed;
    struct call *call;
    struct loop_timer *timer;
    char epoch[24];
    bool gone;
};

struct feed {
    struct loop *loop;
    char epoch[24];
    struct entry *ring;
    size_t size, first, count;
    int64_t cursor;
    int64_t lost; /* highest number that has left the ring */
    bool woken;   /* answers are due in the next turn */
    VEC(struct waiter *) waiters;
};

struct feed *feed_create(struct loop *l, int64_t length)
{
    struct feed *f = MEM_NEW(struct feed);
    uint8_t random[16];

    f->loop = l;
    f->size = length > 0 ? (size_t) length : 1;
    f->ring = mem_calloc(f->size, sizeof *f->ring);
    secret_random(random, sizeof random);
    text_base36(random, sizeof random, f->epoch);
    return f;
}

void feed_destroy(struct feed *f)
{
    if (!f)
        return;
    VEC_FINI(&f->waiters);
    free(f->ring);
    free(f);
}

const char *feed_epoch(const struct feed *f)
{
    return f->epoch;
}

int64_t feed_cursor(const struct feed *f)
{
    return f->cursor;
}

static const struct entry *at(const struct feed *f, size_t i)
{
    return &f->ring[(f->first + i) % f->size];
}

/* ------------------------------------------------------------- answers -- */

static bool must_resync(const struct feed *f, const char *epoch,
                        int64_t since)
{
    return *epoch && (strcmp(epoch, f->epoch) != 0 || since < f->lost ||
                      since > f->cursor);
}

bool feed_ready(const struct feed *f, const char *epoch, int64_t since)
{
    return *epoch && (must_resync(f, epoch, since) || since < f->cursor);
}

/* First entry after that commit: they are in order. */
static size_t find_after(const struct feed *f, int64_t since)
{
    size_t low = 0, high = f->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (at(f, mid)->seq > since)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* How many entries from i on make a full answer of whole commits. */
static size_t take(const struct feed *f, size_t i)
{
    size_t n = f->count - i, k;

    if (n <= ITEMS_MAX)
        return n;
    for (k = ITEMS_MAX; k > 0; k--)
        if (at(f, i + k)->seq != at(f, i + k - 1)->seq)
            return k;
    /* One commit larger than an answer: it is given whole. */
    for (k = ITEMS_MAX; k < n && at(f, i + k)->seq == at(f, i)->seq;)
        k++;
    return k;
}

static void write_items(const struct feed *f, size_t from, size_t n,
                        struct jsn_w *w)
{
    struct map *seen = map_create(NULL);

    for (size_t i = from; i < from + n; i++) {
        const struct entry *e = at(f, i);
        if (map_get(seen, e->uuid))
            continue;
        map_set(seen, e->uuid, (void *) (uintptr_t) 1);
        jsn_w_obj(w, NULL);
        jsn_w_str(w, "kind", resource_of(e->table)->kind);
        jsn_w_str(w, "uuid", e->uuid);
        jsn_w_end_obj(w);
    }
    map_destroy(seen);
}

void feed_write(const struct feed *f, const char *epoch, int64_t since,
                struct buf *out)
{
    bool resync = must_resync(f, epoch, since);
    size_t from = resync || !*epoch ? f->count : find_after(f, since);
    size_t n = take(f, from);
    bool more = from + n < f->count;
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_str(&w, "epoch", f->epoch);
    jsn_w_i64(&w, "cursor", more ? at(f, from + n - 1)->seq : f->cursor);
    jsn_w_bool(&w, "more", more);
    jsn_w_bool(&w, "resync", resync);
    jsn_w_arr(&w, "items");
    write_items(f, from, n, &w);
    jsn_w_end_arr(&w);
    jsn_w_end_obj(&w);
}

/* ------------------------------------------------------------- waiters -- */

static void answer(struct waiter *w)
{
    struct call *c = w->call;
    struct feed *f = w->feed;

    for (size_t i = 0; i < f->waiters.n; i++)
        if (f->waiters.v[i] == w) {
            VEC_REMOVE(&f->waiters, i);
            break;
        }
    loop_timer_cancel(w->timer);
    httpd_on_gone(c->req, NULL, NULL);
    buf_reset(&c->out);
    feed_write(f, w->epoch, c->feed_cursor, &c->out);
    free(w);
    c->app->calls++; /* it was not counted while it waited */
    call_reply(c);
}

static void on_timeout(void *arg)
{
    struct waiter *w = arg;

    w->timer = NULL;
    answer(w);
}

static void on_gone(void *arg)
{
    answer(arg);
}

static void wake(void *arg)
{
    struct feed *f = arg;

    f->woken = false;
    for (size_t i = f->waiters.n; i-- > 0;)
        if (feed_ready(f, f->waiters.v[i]->epoch,
                       f->waiters.v[i]->call->feed_cursor))
            answer(f->waiters.v[i]);
}

void feed_add(struct feed *f, int64_t seq, enum store_table t,
              const char *uuid)
{
    struct entry *e;

    if (f->count == f->size) {
        f->lost = at(f, 0)->seq;
        f->first = (f->first + 1) % f->size;
        f->count--;
    }
    e = &f->ring[(f->first + f->count++) % f->size];
    e->seq = seq;
    e->table = (uint8_t) t;
    text_copy(e->uuid, uuid, sizeof e->uuid);
    f->cursor = seq;
    if (f->waiters.n > 0 && !f->woken) {
        f->woken = true; /* the rest of this commit comes first */
        loop_defer(f->loop, wake, f);
    }
}

void feed_flush(struct feed *f)
{
    while (f->waiters.n > 0)
        answer(f->waiters.v[f->waiters.n - 1]);
}

/* --------------------------------------------------------------- route -- */

enum store_next feed_run(struct call *c, struct store_tx *tx)
{
    int64_t wait = 0;
    struct err err = {0};

    (void) tx;
    if (params_i64(&c->params, "since", &c->feed_cursor, &err) < 0 ||
        params_i64(&c->params, "wait", &wait, &err) < 0)
        return call_fail_err(c, &err);
    c->feed_wait_ms = 1000 * (wait > WAIT_MAX_S ? WAIT_MAX_S : wait);
    return STORE_DONE;
}

void feed_finish(struct call *c)
{
    struct feed *f = c->app->feed;
    const char *epoch = params_text(&c->params, "epoch");
    struct waiter *w;

    if (!epoch || !*epoch) {
        epoch = f->epoch; /* from now */
        c->feed_cursor = f->cursor;
    }
    if (feed_ready(f, epoch, c->feed_cursor) || c->feed_wait_ms == 0 ||
        f->waiters.n >= WAITERS_MAX || c->app->stopping) {
        feed_write(f, epoch, c->feed_cursor, &c->out);
        call_reply(c);
        return;
    }
    w = MEM_NEW(struct waiter);
    w->feed = f;
    w->call = c;
    text_copy(w->epoch, epoch, sizeof w->epoch);
    VEC_PUSH(&f->waiters, w);
    c->app->calls--;
    w->timer = loop_timer_arm(f->loop, c->feed_wait_ms * 1000, on_timeout, w);
    httpd_on_gone(c->req, on_gone, w);
}
