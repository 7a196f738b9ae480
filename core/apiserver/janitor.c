/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer and a write job: expired tokens (attempts of containers that ended
 * among them) and idempotency keys older than seven days are deleted, at most
 * ROWS of each a run. A full run is followed by another one soon, else it waits
 * a quarter of an hour. Nothing depends on it: expired rows are refused
 * whether or not they are still there.
 */
#include "core/apiserver/janitor.h"

#include <stdlib.h>

#include "core/apiserver/app.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/io/loop.h"
#include "core/store/store.h"

enum { ROWS = 500 };
static const int64_t second_us = 1000000;

struct janitor {
    struct store_job job;
    struct app *app;
    struct loop_timer *timer;
    struct err err;
    bool more, out, stopped;
};

static enum store_next on_run(struct store_job *job, struct store_tx *tx)
{
    struct janitor *j = MEM_CONTAINER(job, struct janitor, job);
    int64_t now = clock_wall_us(), tokens = 0, keys = 0;

    if (store_prune(tx, STORE_TOKENS, T_expires_at, now, ROWS, &tokens,
                    &j->err) < 0 ||
        store_prune(tx, STORE_IDEMPOTENCY, I_created_at,
                    now - 7 * 86400 * second_us, ROWS, &keys, &j->err) < 0)
        return STORE_ABORT;
    j->more = tokens == ROWS || keys == ROWS;
    return STORE_DONE;
}

static void on_timer(void *arg);

static void again(struct janitor *j)
{
    int64_t wait = j->more ? second_us : 900 * second_us;

    if (j->stopped)
        return;
    j->timer = loop_timer_arm(j->app->loop, wait, on_timer, j);
}

static void on_done(struct store_job *job)
{
    struct janitor *j = MEM_CONTAINER(job, struct janitor, job);

    if (j->err.class != ERR_NONE)
        log_failure(j->app->log, LOG_WARN, &j->err,
                    "cannot remove expired rows", NULL);
    j->out = false;
    again(j);
}

static void on_timer(void *arg)
{
    struct janitor *j = arg;

    j->timer = NULL;
    j->more = false;
    err_clear(&j->err);
    j->out = store_submit(j->app->store, &j->job, STORE_WRITE, NULL) == 0;
    if (!j->out)
        again(j);
}

struct janitor *janitor_create(struct app *app)
{
    struct janitor *j = MEM_NEW(struct janitor);

    j->app = app;
    j->job.run = on_run;
    j->job.done = on_done;
    j->timer = loop_timer_arm(app->loop, 60 * second_us, on_timer, j);
    return j;
}

bool janitor_stop(struct janitor *j)
{
    j->stopped = true;
    loop_timer_cancel(j->timer);
    j->timer = NULL;
    return j->out;
}

void janitor_destroy(struct janitor *j)
{
    if (!j)
        return;
    loop_timer_cancel(j->timer);
    free(j);
}
