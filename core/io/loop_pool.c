/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bounded pools of worker threads that report back to the loop.
 *
 * For calls that block: driver callbacks, SQL readers, parsing of large
 * replies. A job waits in a queue of bounded length, runs on one thread, and
 * its `done` is posted to the loop. All functions are called on the loop
 * thread; only thread_main runs elsewhere.
 *
 * A thread may hang for ever inside foreign code. Whoever watches the
 * deadlines calls loop_pool_replace_stuck: the thread that has been busy
 * longest is written off, a fresh one takes its place, and should the old one
 * ever come back it delivers its result and ends. loop_pool_destroy does not
 * wait for written-off threads; the pool's memory is freed by the last one.
 */

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/io/loop.h"

struct loop_job {
    struct loop_job *next;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

struct worker {
    struct loop_pool *pool;
    pthread_t thread;
    uint64_t busy_since; /* job number, 0 = idle: smaller = longer */
    bool written_off;
};

struct loop_pool {
    struct loop *loop;
    unsigned max_queued;
    VEC(struct worker *) workers; /* loop thread only */

    pthread_mutex_t lock; /* guards all below, and struct worker */
    pthread_cond_t more;
    struct loop_job *first, **last;
    unsigned queued;
    uint64_t started; /* jobs begun so far */
    bool closed;
    unsigned refs; /* the owner and each thread */
};

/* Called with the lock held; releases it. */
static void unref_unlock(struct loop_pool *p)
{
    bool last = --p->refs == 0;

    pthread_mutex_unlock(&p->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->more);
    free(p);
}

static struct loop_job *next_job(struct loop_pool *p)
{
    struct loop_job *j;

    while (!p->first && !p->closed)
        pthread_cond_wait(&p->more, &p->lock);
    if (p->closed)
        return NULL;
    j = p->first;
    if (!(p->first = j->next))
        p->last = &p->first;
    p->queued--;
    return j;
}

static void run_job(struct worker *w, struct loop_job *j)
{
    struct loop_pool *p = w->pool;

    w->busy_since = ++p->started;
    pthread_mutex_unlock(&p->lock);
    j->work(j->arg);
    pthread_mutex_lock(&p->lock);
    w->busy_since = 0;
    /* After destroy the loop may be gone. Posting under the lock keeps the
     * two from crossing. */
    if (!p->closed || !w->written_off)
        loop_post(p->loop, j->done, j->arg);
    free(j);
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    struct loop_pool *p = w->pool;
    struct loop_job *j;
    bool written_off;

    pthread_mutex_lock(&p->lock);
    while (!w->written_off && (j = next_job(p)))
        run_job(w, j);
    written_off = w->written_off;
    unref_unlock(p);
    if (written_off)
        free(w);
    return NULL;
}

static int add_thread(struct loop_pool *p)
{
    struct worker *w = MEM_NEW(struct worker);
    sigset_t all, old;
    int rc;

    w->pool = p;
    pthread_mutex_lock(&p->lock);
    p->refs++;
    pthread_mutex_unlock(&p->lock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&w->thread, NULL, thread_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0) {
        VEC_PUSH(&p->workers, w);
        return 0;
    }
    pthread_mutex_lock(&p->lock);
    p->refs--;
    pthread_mutex_unlock(&p->lock);
    free(w);
    return -1;
}

struct loop_pool *loop_pool_create(struct loop *l, unsigned threads,
                                   unsigned max_queued)
{
    struct loop_pool *p = MEM_NEW(struct loop_pool);

    assert(threads > 0);
    p->loop = l;
    p->max_queued = max_queued;
    p->last = &p->first;
    p->refs = 1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    for (unsigned i = 0; i < threads; i++)
        if (add_thread(p) < 0)
            break;
    if (p->workers.n > 0)
        return p;
    loop_pool_destroy(p);
    return NULL;
}

void loop_pool_destroy(struct loop_pool *p)
{
    struct loop_job *j;

    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->closed = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->workers.n; i++) {
        pthread_join(p->workers.v[i]->thread, NULL);
        free(p->workers.v[i]);
    }
    VEC_FINI(&p->workers);
    while ((j = p->first)) {
        p->first = j->next;
        free(j);
    }
    pthread_mutex_lock(&p->lock);
    unref_unlock(p);
}

int loop_pool_submit(struct loop_pool *p, void (*work)(void *arg),
                     void (*done)(void *arg), void *arg, struct err *err)
{
    struct loop_job *j;

    pthread_mutex_lock(&p->lock);
    if (p->queued >= p->max_queued) {
        pthread_mutex_unlock(&p->lock);
        return err_set(err, ERR_TRANSIENT, "too many calls are waiting");
    }
    j = MEM_NEW(struct loop_job);
    j->work = work;
    j->done = done;
    j->arg = arg;
    *p->last = j;
    p->last = &j->next;
    p->queued++;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

void loop_pool_replace_stuck(struct loop_pool *p)
{
    size_t oldest = p->workers.n;
    struct worker *w = NULL;

    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->workers.n; i++)
        if (p->workers.v[i]->busy_since > 0 &&
            (!w || p->workers.v[i]->busy_since < w->busy_since)) {
            oldest = i;
            w = p->workers.v[i];
        }
    if (w) {
        w->written_off = true;
        pthread_detach(w->thread);
    }
    pthread_mutex_unlock(&p->lock);
    if (w) {
        VEC_REMOVE(&p->workers, oldest);
        add_thread(p);
    }
}
