/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One child process, from spawn to result.
 *
 *   start -> [input written] -> streams at their end + exit seen -> report
 *                \-> deadline or proc_kill: SIGKILL to the session -> the same
 *
 * The result is reported when nothing of the child is left to wait for:
 * `waiting` counts exit and streams. A descendant that keeps a stream open
 * after the exit is waited for one second. The struct is freed when libuv has
 * closed its handles; the callback fires before.
 *
 * libuv spawns without copying our memory and resets signal handling in the
 * child; all our descriptors are close-on-exec, so only the pipes are
 * inherited.
 */

#include "core/io/proc.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/io/loop.h"

enum {
    OUTPUT_MAX = 1 << 20,
    DEADLINE_MS = 60000,
    HELD_MS = 1000,
    READ_SIZE = 65536,
};

struct stream {
    uv_pipe_t pipe;
    struct proc *p;
    struct buf buf;
    bool cut;
};

struct proc {
    struct loop *loop;
    uv_process_t child;
    uv_pipe_t input;
    uv_write_t write;
    struct stream out, errout;
    char *bytes; /* of the input */
    char read_buf[READ_SIZE];
    struct loop_timer *timer;
    unsigned waiting, handles;
    bool spawned;
    struct err err;
    int exit_code, signal;
    void (*cb)(void *arg, const struct proc_result *r);
    void *arg;
};

static void on_closed(uv_handle_t *h)
{
    struct proc *p = h->data;

    if (--p->handles > 0)
        return;
    buf_fini(&p->out.buf);
    buf_fini(&p->errout.buf);
    free(p->bytes);
    free(p);
}

static void close_handle(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, on_closed);
}

static void report(void *arg)
{
    struct proc *p = arg;
    struct proc_result r = {
        .err = p->err, .exit_code = p->exit_code, .signal = p->signal,
        .out = p->out.buf.data, .out_len = p->out.buf.len,
        .out_cut = p->out.cut, .errout = p->errout.buf.data,
        .errout_len = p->errout.buf.len, .errout_cut = p->errout.cut,
    };

    p->timer = NULL;
    p->cb(p->arg, &r);
    close_handle((uv_handle_t *) &p->child);
    close_handle((uv_handle_t *) &p->input);
    close_handle((uv_handle_t *) &p->out.pipe);
    close_handle((uv_handle_t *) &p->errout.pipe);
}

static void one_less(struct proc *p)
{
    if (--p->waiting > 0)
        return;
    loop_timer_cancel(p->timer);
    report(p);
}

/* --- streams -------------------------------------------------------------*/

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
    struct proc *p = h->data;

    (void) suggested;
    *b = uv_buf_init(p->read_buf, READ_SIZE);
}

static void keep(struct stream *s, const char *data, size_t n)
{
    size_t room = s->buf.max - s->buf.len;

    if (n > room) {
        s->cut = true;
        n = room;
    }
    buf_append(&s->buf, data, n);
}

static void on_read(uv_stream_t *pipe, ssize_t n, const uv_buf_t *b)
{
    struct stream *s = MEM_CONTAINER(pipe, struct stream, pipe);

    if (n > 0)
        keep(s, b->base, (size_t) n);
    else if (n < 0) {
        uv_read_stop(pipe);
        one_less(s->p);
    }
}

static void on_written(uv_write_t *req, int status)
{
    struct proc *p = req->data;

    (void) status; /* a child may end without reading everything */
    close_handle((uv_handle_t *) &p->input);
}

static void start_streams(struct proc *p, size_t input_len)
{
    uv_buf_t b = uv_buf_init(p->bytes, (unsigned) input_len);

    uv_read_start((uv_stream_t *) &p->out.pipe, on_alloc, on_read);
    uv_read_start((uv_stream_t *) &p->errout.pipe, on_alloc, on_read);
    p->write.data = p;
    if (input_len == 0 ||
        uv_write(&p->write, (uv_stream_t *) &p->input, &b, 1, on_written) < 0)
        close_handle((uv_handle_t *) &p->input);
}

/* --- the end -------------------------------------------------------------*/

/* The child is gone, but somebody still holds its streams: report anyway. */
static void on_held(void *arg)
{
    report(arg);
}

static void on_end(uv_process_t *child, int64_t status, int signum)
{
    struct proc *p = child->data;

    p->signal = signum;
    p->exit_code = signum ? -1 : (int) status;
    loop_timer_cancel(p->timer);
    p->timer = loop_timer_arm(p->loop, HELD_MS * 1000, on_held, p);
    one_less(p);
}

static bool is_running(const struct proc *p)
{
    return p->spawned && p->exit_code < 0 && p->signal == 0;
}

static void kill_session(struct proc *p)
{
    /* The child is not reaped yet, so its number is still its own. */
    if (is_running(p))
        kill(-p->child.pid, SIGKILL);
}

void proc_kill(struct proc *p)
{
    if (is_running(p) && p->err.class == ERR_NONE)
        err_set(&p->err, ERR_CANCELLED, "the process was killed");
    kill_session(p);
}

static void on_deadline(void *arg)
{
    struct proc *p = arg;

    p->timer = NULL;
    if (p->err.class == ERR_NONE)
        err_set(&p->err, ERR_TIMEOUT, "the process ran out of time");
    kill_session(p);
}

int proc_pid(const struct proc *p)
{
    return p->spawned ? p->child.pid : 0;
}

/* --- the start -----------------------------------------------------------*/

static int spawn(struct proc *p, const struct proc_req *req)
{
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
         .data.stream = (uv_stream_t *) &p->input},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *) &p->out.pipe},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *) &p->errout.pipe},
    };
    uv_process_options_t o = {
        .exit_cb = on_end, .file = req->argv[0],
        .args = (char **) (uintptr_t) req->argv,
        .env = (char **) (uintptr_t) req->env, .cwd = req->cwd,
        .flags = UV_PROCESS_DETACHED, .stdio = stdio, .stdio_count = 3,
    };

    return uv_spawn(loop_uv(p->loop), &p->child, &o);
}

static void init_stream(struct proc *p, struct stream *s, size_t max)
{
    s->p = p;
    buf_init(&s->buf, max ? max : OUTPUT_MAX);
    uv_pipe_init(loop_uv(p->loop), &s->pipe, 0);
    s->pipe.data = p;
}

struct proc *proc_start(struct loop *l, const struct proc_req *req,
                        void (*cb)(void *arg, const struct proc_result *r),
                        void *arg)
{
    struct proc *p = MEM_NEW(struct proc);
    int64_t ms = req->deadline_ms ? req->deadline_ms : DEADLINE_MS;
    int rc;

    p->loop = l;
    p->cb = cb;
    p->arg = arg;
    p->exit_code = -1;
    p->handles = 4;
    p->bytes = mem_dup(req->input ? req->input : "", req->input_len);
    uv_pipe_init(loop_uv(l), &p->input, 0);
    p->input.data = p->child.data = p;
    init_stream(p, &p->out, req->max_output);
    init_stream(p, &p->errout, req->max_output);
    if ((rc = spawn(p, req)) < 0) {
        err_set_errno(&p->err, -rc, "cannot start %s", req->argv[0]);
        p->timer = loop_timer_arm(l, 0, report, p);
        return p;
    }
    p->spawned = true;
    p->waiting = 3;
    p->timer = loop_timer_arm(l, ms * 1000, on_deadline, p);
    start_streams(p, req->input_len);
    return p;
}
