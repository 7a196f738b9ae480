/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes: where jobs wait, which threads run them, how they come back.
 *
 *   READ   `readers` threads, each with a connection of its own
 *   SLOW   two threads without one
 *   WRITE  one thread; one transaction for all jobs that wait (a group)
 *
 * The writer takes jobs one after the other until none waits or GROUP_MAX
 * have run, then commits once. While the disk works, the next group gathers:
 * the slower the disk, the larger the groups. A job that fails is undone by
 * its savepoint and does not hurt its neighbours; if the commit itself fails,
 * every job of the group is told.
 *
 * A job may wander: what it returns is the lane it wants next. Finished jobs
 * travel to the loop in batches, a group's together with its changes, so that
 * a listener hears of a change before the client that made it is answered.
 *
 * Checkpoints are the writer's, between groups, after the answers are out.
 */
#include <assert.h>
#include <signal.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/fault.h"
#include "core/base/mem.h"
#include "core/io/loop.h"
#include "core/store/store_sqlite.h"

enum { GROUP_MAX = 256, SLOW_THREADS = 2, CHECKPOINT_PAGES = 4096 };

/* Finished jobs on their way to the loop. */
struct batch {
    struct store *st;
    struct store_job *first, **last;
    struct store_change *changes;
    size_t n_changes;
    int64_t seq;
};

static struct store_lane *lane_of(struct store *st, enum store_next next)
{
    switch (next) {
    case STORE_READ:
        return &st->read;
    case STORE_SLOW:
        return &st->slow;
    case STORE_WRITE:
        return &st->write;
    case STORE_DONE:
    case STORE_ABORT:
        break;
    }
    return NULL;
}

/* Lock held. */
static void lane_push(struct store *st, struct store_lane *lane,
                      struct store_job *job)
{
    job->next = NULL;
    *lane->last = job;
    lane->last = &job->next;
    if (lane != &st->slow)
        st->queued++;
    pthread_cond_signal(&lane->more);
}

/* Lock held. NULL = empty. */
static struct store_job *lane_pop(struct store *st, struct store_lane *lane)
{
    struct store_job *job = lane->first;

    if (!job)
        return NULL;
    lane->first = job->next;
    if (!lane->first)
        lane->last = &lane->first;
    if (lane != &st->slow)
        st->queued--;
    job->next = NULL;
    return job;
}

static struct store_job *lane_wait(struct store *st, struct store_lane *lane)
{
    struct store_job *job;

    pthread_mutex_lock(&st->lock);
    while (!(job = lane_pop(st, lane)) && !st->closing)
        pthread_cond_wait(&lane->more, &st->lock);
    pthread_mutex_unlock(&st->lock);
    return job;
}

int store_submit(struct store *st, struct store_job *job,
                 enum store_next where, struct err *err)
{
    struct store_lane *lane = lane_of(st, where);
    bool full;

    assert(lane);
    err_clear(&job->err);
    job->seq = 0;
    pthread_mutex_lock(&st->lock);
    full = st->queued >= st->max_queued;
    if (!full)
        lane_push(st, lane, job);
    pthread_mutex_unlock(&st->lock);
    if (full)
        return err_set(err, ERR_RATE_LIMITED, "too many requests wait");
    return 0;
}

/* --- the way back ---------------------------------------------------------*/

static void deliver(void *arg)
{
    struct batch *b = arg;
    struct store_job *job, *next;

    for (size_t i = 0; i < b->n_changes && b->st->changed; i++)
        b->st->changed(b->st->changed_arg, b->seq, b->changes[i].table,
                       b->changes[i].key);
    for (job = b->first; job; job = next) {
        next = job->next;
        job->done(job);
    }
    free(b->changes);
    free(b);
}

static struct batch *batch_create(struct store *st)
{
    struct batch *b = MEM_NEW(struct batch);

    b->st = st;
    b->last = &b->first;
    return b;
}

static void batch_add(struct batch *b, struct store_job *job)
{
    job->next = NULL;
    *b->last = job;
    b->last = &job->next;
}

/* Hand on a job that wants another lane. */
static void move_on(struct store *st, struct store_job *job,
                    enum store_next next)
{
    pthread_mutex_lock(&st->lock);
    lane_push(st, lane_of(st, next), job);
    pthread_mutex_unlock(&st->lock);
}

/* --- readers and the slow lane --------------------------------------------*/

static void *reader_main(void *arg)
{
    struct store_thread *t = arg;
    struct store_job *job;
    enum store_next next;

    while ((job = lane_wait(t->st, t->lane))) {
        next = job->run(job, t->tx);
        if (t->tx)
            tx_end(t->tx, true, NULL);
        if (lane_of(t->st, next)) {
            move_on(t->st, job, next);
            continue;
        }
        struct batch *b = batch_create(t->st);
        batch_add(b, job);
        loop_post(t->st->loop, deliver, b);
    }
    return NULL;
}

/* --- the writer -----------------------------------------------------------*/

/* Run one job in the group; true if it stays in it. */
static bool run_in_group(struct store *st, struct store_tx *tx,
                         struct store_job *job)
{
    enum store_next next;

    tx->job_changes = tx->changes.n;
    next = job->run(job, tx);
    job->keep = next == STORE_DONE;
    if (!job->keep)
        tx_undo(tx);
    else if (tx_keep(tx, &job->err) < 0)
        job->keep = false;
    if (!lane_of(st, next))
        return true;
    move_on(st, job, next);
    return false;
}

static void run_group(struct store *st, struct store_tx *tx,
                      struct store_job *job, struct batch *b)
{
    for (unsigned n = 0; job; n++) {
        if (run_in_group(st, tx, job))
            batch_add(b, job);
        if (tx->open && sqlite3_get_autocommit(tx->db))
            return; /* everything was rolled back: tx_end tells */
        pthread_mutex_lock(&st->lock);
        job = n + 1 < GROUP_MAX ? lane_pop(st, &st->write) : NULL;
        pthread_mutex_unlock(&st->lock);
    }
}

static void take_changes(struct store_tx *tx, struct batch *b)
{
    b->n_changes = tx->changes.n;
    b->changes = mem_dup(tx->changes.v,
                         tx->changes.n * sizeof *tx->changes.v);
}

static void account(struct store *st, struct store_tx *tx, bool ok,
                    size_t writes, int64_t us)
{
    pthread_mutex_lock(&st->lock);
    st->stats.commit_us += us;
    st->stats.wal_pages = tx->wal_pages;
    if (!ok)
        st->stats.failures++;
    else if (writes > 0)
        st->stats.commits++;
    st->stats.writes += ok ? (int64_t) writes : 0;
    pthread_mutex_unlock(&st->lock);
}

static void commit_group(struct store *st, struct store_tx *tx,
                         struct batch *b)
{
    struct err err = {0};
    int before = tx->wal_pages;
    int64_t start = clock_mono_us();
    bool fail = fault_hit(FAULT_COMMIT_SLOW), ok;
    size_t writes = 0;

    ok = tx_end(tx, !fail, &err) == 0;
    if (fail)
        err_set(&err, ERR_TRANSIENT, "database: planted failure");
    if (ok && tx->changes.n > 0)
        take_changes(tx, b);
    if (ok && (tx->changes.n > 0 || tx->wal_pages != before))
        b->seq = ++st->seq;
    for (struct store_job *j = b->first; j; j = j->next) {
        if (!j->keep)
            continue;
        writes++;
        if (ok)
            j->seq = b->seq;
        else
            j->err = err;
    }
    tx->changes.n = tx->job_changes = 0;
    account(st, tx, ok, b->seq ? writes : 0, clock_mono_us() - start);
}

static void checkpoint(struct store_tx *tx)
{
    if (tx->wal_pages < CHECKPOINT_PAGES)
        return;
    sqlite3_wal_checkpoint_v2(tx->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL,
                              NULL);
    tx->wal_pages = 0;
}

static void *writer_main(void *arg)
{
    struct store_thread *t = arg;
    struct store_job *job;

    while ((job = lane_wait(t->st, t->lane))) {
        struct batch *b = batch_create(t->st);
        run_group(t->st, t->tx, job, b);
        commit_group(t->st, t->tx, b);
        loop_post(t->st->loop, deliver, b);
        checkpoint(t->tx);
    }
    return NULL;
}

/* --- start and stop -------------------------------------------------------*/

static int start_thread(struct store *st, struct store_lane *lane,
                        struct store_tx *tx, void *(*main)(void *),
                        struct err *err)
{
    struct store_thread *t = MEM_NEW(struct store_thread);
    sigset_t all, old;
    int rc;

    *t = (struct store_thread){.st = st, .lane = lane, .tx = tx};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&t->id, NULL, main, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        free(t);
        return err_set_errno(err, rc, "cannot start a thread");
    }
    VEC_PUSH(&st->threads, t);
    return 0;
}

int work_start(struct store *st, unsigned readers, struct err *err)
{
    struct store_tx *tx;

    if (start_thread(st, &st->write, st->txs.v[0], writer_main, err) < 0)
        return -1;
    for (unsigned i = 0; i < readers; i++) {
        if (!(tx = tx_create(st->path, false, st->full, err)))
            return -1;
        VEC_PUSH(&st->txs, tx);
        if (start_thread(st, &st->read, tx, reader_main, err) < 0)
            return -1;
    }
    for (unsigned i = 0; i < SLOW_THREADS; i++)
        if (start_thread(st, &st->slow, NULL, reader_main, err) < 0)
            return -1;
    return 0;
}

void work_stop(struct store *st)
{
    pthread_mutex_lock(&st->lock);
    st->closing = true;
    pthread_cond_broadcast(&st->read.more);
    pthread_cond_broadcast(&st->slow.more);
    pthread_cond_broadcast(&st->write.more);
    pthread_mutex_unlock(&st->lock);
    for (size_t i = 0; i < st->threads.n; i++) {
        pthread_join(st->threads.v[i]->id, NULL);
        free(st->threads.v[i]);
    }
    VEC_FINI(&st->threads);
}
