/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SSH thread.
 *
 * One epoll instance holds a wake-up descriptor and one descriptor per
 * connection. A turn is: take the messages that the loop thread has left,
 * step the connections whose descriptors are ready, and, at most each
 * SHARD_TICK, look for deadlines that have passed (a scan of the connections
 * that have one: operations in flight are few, idle connections have none).
 *
 * The only thing the two threads share is the message list under `lock`.
 * Results go back by loop_post(), in order. Nothing here decides: no retry,
 * no policy. libssh is used on this thread alone.
 */
#include "core/ssh/shard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/io/loop.h"
#include "core/ssh/conn.h"

enum { SHARD_TICK_MS = 50, SHARD_EVENTS = 128 };

enum message_kind { MSG_START, MSG_CANCEL, MSG_CLOSE, MSG_QUIT };

struct message {
    enum message_kind kind;
    struct shard_op *op;
    uint64_t id;
};

struct shard {
    struct loop *loop;
    struct shard_events events;
    struct conn_host host;
    pthread_t thread;
    int epoll, wake;
    pthread_mutex_t lock;       /* inbox, answers; never held across a call */
    VEC(struct message) inbox;
    size_t answers;             /* posted and not yet delivered */
    bool destroyed;             /* loop thread: nobody wants answers now */
    VEC(struct conn *) conns;   /* sorted by number; shard thread only */
    int deadlines;              /* ops in flight that have one */
    bool quit;
};

void shard_op_free(struct shard_op *op)
{
    if (!op)
        return;
    free(op->label);
    free(op->address);
    free(op->user);
    free(op->command);
    if (op->input_copy)
        explicit_bzero(op->input_copy, op->input_len);
    free(op->input_copy);
    free(op->host_key);
    free(op->out);
    free(op->errout);
    free(op);
}

/* --- from the shard thread to the loop ------------------------------------ */

/* One posted answer. The loop delivers it even after shard_destroy(), so the
 * shard lives until the last of them has been. */
struct answer {
    struct shard *shard;
    struct shard_op *op;  /* done */
    char *lines;          /* lines */
    size_t n;
    uint64_t id;
    struct err why;       /* broken */
};

static void shard_free(struct shard *s)
{
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* The answer has been delivered, or nobody wants it. */
static void answer_end(struct answer *a)
{
    struct shard *s = a->shard;
    size_t left;

    pthread_mutex_lock(&s->lock);
    left = --s->answers;
    pthread_mutex_unlock(&s->lock);
    if (s->destroyed && left == 0)
        shard_free(s);
    free(a->lines);
    free(a);
}

static void deliver_done(void *arg)
{
    struct answer *a = arg;

    if (a->shard->destroyed)
        shard_op_free(a->op);
    else
        a->shard->events.done(a->shard->events.arg, a->op);
    answer_end(a);
}

static void deliver_lines(void *arg)
{
    struct answer *a = arg;

    if (!a->shard->destroyed)
        a->shard->events.lines(a->shard->events.arg, a->id, a->lines, a->n);
    answer_end(a);
}

static void deliver_broken(void *arg)
{
    struct answer *a = arg;

    if (!a->shard->destroyed)
        a->shard->events.broken(a->shard->events.arg, a->id, &a->why);
    answer_end(a);
}

static struct answer *answer_create(struct shard *s)
{
    struct answer *a = MEM_NEW(struct answer);

    a->shard = s;
    pthread_mutex_lock(&s->lock);
    s->answers++;
    pthread_mutex_unlock(&s->lock);
    return a;
}

static void on_done(void *arg, struct shard_op *op)
{
    struct answer *a = answer_create(arg);

    a->op = op;
    loop_post(a->shard->loop, deliver_done, a);
}

static void on_lines(void *arg, uint64_t op, const char *lines, size_t bytes,
                     size_t n)
{
    struct answer *a = answer_create(arg);

    a->id = op;
    a->lines = mem_dup(lines, bytes);
    a->n = n;
    loop_post(a->shard->loop, deliver_lines, a);
}

static void on_broken(void *arg, uint64_t session, const struct err *why)
{
    struct answer *a = answer_create(arg);

    a->id = session;
    a->why = *why;
    loop_post(a->shard->loop, deliver_broken, a);
}

/* --- connections ----------------------------------------------------------- */

/* Numbers only grow, so appending keeps the order. */
static struct conn *find(const struct shard *s, uint64_t id, size_t *ret_i)
{
    size_t lo = 0, hi = s->conns.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        uint64_t at = conn_id(s->conns.v[mid]);

        if (at == id) {
            if (ret_i)
                *ret_i = mid;
            return s->conns.v[mid];
        }
        if (at < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static void start(struct shard *s, struct shard_op *op)
{
    struct conn *c;

    if (op->kind == SHARD_CONNECT) {
        VEC_PUSH(&s->conns, conn_create(&s->host, op));
        return;
    }
    c = find(s, op->session, NULL);
    if (c && !conn_broken(c)) {
        conn_start(c, op);
        return;
    }
    op->r.outcome = OP_REFUSED;
    err_set(&op->r.err, ERR_TRANSIENT, "the connection is broken");
    on_done(s, op);
}

static void handle(struct shard *s, const struct message *m)
{
    size_t i;
    struct conn *c;

    switch (m->kind) {
    case MSG_START:
        start(s, m->op);
        break;
    case MSG_CANCEL:
        for (i = 0; i < s->conns.n; i++)
            if (conn_cancel(s->conns.v[i], m->id))
                break;
        break;
    case MSG_CLOSE:
        c = find(s, m->id, &i);
        if (c) {
            VEC_REMOVE(&s->conns, i);
            conn_destroy(c);
        }
        break;
    case MSG_QUIT:
        s->quit = true;
    }
}

static void take_messages(struct shard *s)
{
    VEC(struct message) got = { 0 };
    uint64_t count;

    if (read(s->wake, &count, sizeof count) < 0 && errno != EAGAIN)
        return;
    pthread_mutex_lock(&s->lock);
    got.v = s->inbox.v;
    got.n = s->inbox.n;
    s->inbox.v = NULL;
    s->inbox.n = s->inbox.cap = 0;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < got.n; i++)
        handle(s, &got.v[i]);
    free(got.v);
}

static void expire(struct shard *s)
{
    int64_t now = clock_mono_us();

    for (size_t i = 0; i < s->conns.n; i++)
        if (conn_has_deadline(s->conns.v[i]))
            conn_expire(s->conns.v[i], now);
}

static void *run(void *arg)
{
    struct shard *s = arg;
    struct epoll_event ev[SHARD_EVENTS];
    int64_t next_tick = 0;

    while (!s->quit) {
        int n = epoll_wait(s->epoll, ev, SHARD_EVENTS,
                           s->deadlines ? SHARD_TICK_MS : -1);
        bool woken = false;

        for (int i = 0; i < n; i++) {
            if (ev[i].data.ptr == NULL)
                woken = true;
            else
                conn_step(ev[i].data.ptr);
        }
        /* After the steps: a close frees what an event may still name. */
        if (woken)
            take_messages(s);
        if (clock_mono_us() >= next_tick) {
            expire(s);
            next_tick = clock_mono_us() + SHARD_TICK_MS * 1000;
        }
    }
    for (size_t i = 0; i < s->conns.n; i++)
        conn_destroy(s->conns.v[i]);
    VEC_FINI(&s->conns);
    return NULL;
}

/* --- life ------------------------------------------------------------------ */

static int start_thread(struct shard *s, struct err *err)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&s->thread, NULL, run, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return err_set_errno(err, rc, "cannot start the SSH thread");
    return 0;
}

struct shard *shard_create(struct loop *loop, void *key,
                           const struct shard_events *events,
                           struct err *err)
{
    struct shard *s = MEM_NEW(struct shard);
    struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };

    s->loop = loop;
    s->events = *events;
    pthread_mutex_init(&s->lock, NULL);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->epoll < 0 || s->wake < 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &ev) < 0) {
        err_set_errno(err, errno, "no descriptors for the SSH thread");
        goto error;
    }
    s->host = (struct conn_host){ .done = on_done, .lines = on_lines,
                                  .broken = on_broken, .arg = s, .key = key,
                                  .epoll = s->epoll,
                                  .deadlines = &s->deadlines };
    if (start_thread(s, err) < 0)
        goto error;
    return s;
error:
    mem_close(&s->epoll);
    mem_close(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

static void post(struct shard *s, struct message m)
{
    uint64_t one = 1;

    pthread_mutex_lock(&s->lock);
    VEC_PUSH(&s->inbox, m);
    pthread_mutex_unlock(&s->lock);
    /* An eventfd takes 2^64 - 2 wake-ups before it would block. */
    if (write(s->wake, &one, sizeof one) < 0)
        return;
}

void shard_start(struct shard *s, struct shard_op *op)
{
    post(s, (struct message){ .kind = MSG_START, .op = op });
}

void shard_cancel(struct shard *s, uint64_t op)
{
    post(s, (struct message){ .kind = MSG_CANCEL, .id = op });
}

void shard_close(struct shard *s, uint64_t session)
{
    post(s, (struct message){ .kind = MSG_CLOSE, .id = session });
}

void shard_destroy(struct shard *s)
{
    if (!s)
        return;
    post(s, (struct message){ .kind = MSG_QUIT });
    pthread_join(s->thread, NULL);
    s->destroyed = true;
    for (size_t i = 0; i < s->inbox.n; i++)
        if (s->inbox.v[i].kind == MSG_START)
            shard_op_free(s->inbox.v[i].op);
    VEC_FINI(&s->inbox);
    mem_close(&s->epoll);
    mem_close(&s->wake);
    if (s->answers == 0)
        shard_free(s);
}
