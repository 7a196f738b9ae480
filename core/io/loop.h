/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_LOOP_H
#define CORE_IO_LOOP_H

/*
 * The event loop of a program: libuv, with timers, deferred calls, calls
 * posted from other threads, signals, and bounded pools of worker threads.
 *
 * Everything runs on the loop thread unless it says otherwise. Modules that
 * need descriptors use libuv directly through loop_uv().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct loop;
struct loop_timer;
struct loop_pool;
struct loop_job;
struct uv_loop_s;

/* NULL only when the system refuses descriptors; err says so. Sets SIGPIPE to
 * be ignored in the whole process. */
struct loop *loop_create(struct err *err);
/* Everything armed must have been cancelled or closed before; handles that
 * are closing, and deferred and posted calls that wait, are run to their end.
 * NULL is fine. */
void loop_destroy(struct loop *l);

int loop_run(struct loop *l);   /* until loop_stop */
void loop_stop(struct loop *l); /* any thread */
struct uv_loop_s *loop_uv(struct loop *l);
int64_t loop_now_us(struct loop *l); /* monotonic, fresh */

/* Call fn(arg) in a later turn, in the order of the calls. */
void loop_defer(struct loop *l, void (*fn)(void *arg), void *arg);
/* The same from any thread. */
void loop_post(struct loop *l, void (*fn)(void *arg), void *arg);

/* One shot, delay_us from now, never early, rounded up to the next
 * millisecond (0 = next turn). Freed when fn begins or at cancel. */
struct loop_timer *loop_timer_arm(struct loop *l, int64_t delay_us,
                                  void (*fn)(void *arg), void *arg);
void loop_timer_cancel(struct loop_timer *t); /* NULL is fine */

/* Call fn(arg, signum) on the loop when the signal arrives. At most 8. */
int loop_signal(struct loop *l, int signum, void (*fn)(void *arg, int signum),
                void *arg, struct err *err);

/*
 * A pool of worker threads of its own (libuv's shared pool also resolves
 * names: long calls there would starve it). Threads block all signals. Jobs
 * start in order; `done` runs on the loop. At most max_queued wait. NULL only
 * when the system refuses the first thread.
 */
struct loop_pool *loop_pool_create(struct loop *l, unsigned threads,
                                   unsigned max_queued);
/* Waits for running jobs, but not for written-off threads. Jobs that have not
 * begun are dropped, and the `done` of one that runs may fire later or never:
 * destroy only when idle. NULL is fine. */
void loop_pool_destroy(struct loop_pool *p);
/* work(arg) on a worker thread, then done(arg) on the loop. -1/TRANSIENT when
 * too many wait. */
int loop_pool_submit(struct loop_pool *p, void (*work)(void *arg),
                     void (*done)(void *arg), void *arg, struct err *err);
/* Write the thread off that has been busy longest, and start a fresh one in
 * its place. Should its job end after all, `done` fires as usual. */
void loop_pool_replace_stuck(struct loop_pool *p);

#endif
