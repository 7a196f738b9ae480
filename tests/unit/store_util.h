/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_STORE_UTIL_H
#define TESTS_UNIT_STORE_UTIL_H

/*
 * A store in a fresh folder, and jobs run to their end, for tests.
 */

#include <stdio.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/io/loop.h"
#include "core/store/store.h"
#include "tests/unit/unit.h"

struct store_world {
    struct loop *l;
    struct store *st;
    char dir[64];
    char path[96];
};

static inline void store_world_make(struct store_world *w)
{
    struct err err;

    snprintf(w->dir, sizeof w->dir, "%s/cdc-store-XXXXXX", "/tmp");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->path, sizeof w->path, "%s/db.sqlite", w->dir);
    w->l = loop_create(&err);
    assert_non_null(w->l);
}

static inline void store_world_open(struct store_world *w)
{
    struct err err = {0};
    struct store_opts opts = {.path = w->path, .full = true, .readers = 2,
                              .max_queued = 1000};

    assert_ok(store_open(w->l, &opts, &w->st, &err), &err);
}

static inline void store_world_end(struct store_world *w)
{
    static const char *const suffixes[] = {"", "-lock", "-wal", "-shm"};

    store_close(w->st);
    w->st = NULL;
    loop_destroy(w->l);
    for (size_t i = 0; i < MEM_COUNT(suffixes); i++) {
        CLEANUP(mem_free) char *name = mem_printf("%s%s", w->path,
                                                  suffixes[i]);
        unlink(name);
    }
    rmdir(w->dir);
}

/* A job that is a plain function. */
struct store_call {
    struct store_job job;
    enum store_next (*fn)(void *arg, struct store_tx *tx);
    void *arg;
    struct store_world *w;
    int *left; /* stop the loop at 0 */
};

static inline enum store_next store_call_run(struct store_job *job,
                                             struct store_tx *tx)
{
    struct store_call *c = MEM_CONTAINER(job, struct store_call, job);

    return c->fn(c->arg, tx);
}

static inline void store_call_done(struct store_job *job)
{
    struct store_call *c = MEM_CONTAINER(job, struct store_call, job);

    if (--*c->left == 0)
        loop_stop(c->w->l);
}

/* Run it to its end; returns the commit's number, asserts that it worked. */
static inline int64_t store_run(struct store_world *w, enum store_next lane,
                                enum store_next (*fn)(void *,
                                                      struct store_tx *),
                                void *arg)
{
    int left = 1;
    struct err err = {0};
    struct store_call c = {.job = {.run = store_call_run,
                                   .done = store_call_done},
                           .fn = fn, .arg = arg, .w = w, .left = &left};

    assert_ok(store_submit(w->st, &c.job, lane, &err), &err);
    loop_run(w->l);
    assert_int_equal(c.job.err.class, ERR_NONE);
    return c.job.seq;
}

#endif
