/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command on an SSH channel.
 *
 *   OPENING -> REQUESTING -> RUNNING -> ENDED
 *
 * What libssh does not tell by return values comes by its channel callbacks:
 * data, end of file, close, exit status, exit signal. A command has ended
 * when its exit status is known and its output is complete. A background
 * child that keeps the output open would hold the end back for ever, so after
 * the status the end of file is awaited for GRACE only.
 *
 * An end without a status (the peer closed, the connection broke) is
 * OP_UNKNOWN once the request has left, even when its reply has not come: the
 * command may have run. Before that, and after a reply that says no, it is a
 * refusal.
 *
 * Output is capped; what exceeds the cap is read and dropped, so that a
 * talkative command cannot stop the connection. A stream hands over whole
 * lines as they come. It has a rate: the lines wait for the loop thread, and
 * an instance that writes faster than anybody reads would fill the memory.
 */
#include "core/ssh/chan.h"

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/ssh/shard.h"

enum {
    CHAN_LINE_MAX = 64 << 10,
    CHAN_CHUNK = 1900, /* with its packet around it, below 2 KiB */
    CHAN_GRACE_US = 500 * 1000,
    CHAN_SECOND_US = 1000 * 1000,
    CHAN_STREAM_RATE = 4 << 20, /* bytes a second: 40,000 events */
};

/* --- callbacks of libssh --------------------------------------------------- */

static void keep(struct buf *b, const void *data, size_t n)
{
    size_t room = b->max - b->len;

    buf_append(b, data, n < room ? n : room);
}

/* Hand over the whole lines that have come; keep the rest. */
static void split_lines(struct chan *c)
{
    char *data = c->out.data;
    size_t start = 0, n = 0;

    for (size_t i = 0; i < c->out.len; i++) {
        if (data[i] != '\n')
            continue;
        data[i] = 0;
        start = i + 1;
        n++;
    }
    if (n)
        c->host->lines(c->host->arg, c->op->id, data, start, n);
    buf_consume(&c->out, start);
    if (c->out.len >= CHAN_LINE_MAX)
        err_set(&c->err, ERR_TOO_LARGE, "a line of more than 64 KiB");
}

/* Count what has come. */
static void check_rate(struct chan *c, size_t n)
{
    int64_t now = clock_mono_us();

    if (now - c->second_us >= CHAN_SECOND_US) {
        c->second_us = now;
        c->second_bytes = 0;
    }
    c->second_bytes += n;
    if (c->second_bytes > CHAN_STREAM_RATE)
        err_set(&c->err, ERR_TOO_LARGE, "more than 4 MiB in a second");
}

static int on_data(ssh_session session, ssh_channel channel, void *data,
                   uint32_t len, int is_stderr, void *arg)
{
    struct chan *c = arg;

    (void) session;
    (void) channel;
    if (is_stderr) {
        keep(&c->errout, data, len);
    } else if (c->op->kind == SHARD_EXEC) {
        keep(&c->out, data, len);
    } else if (!c->err.class) {
        check_rate(c, len);
        keep(&c->out, data, len);
        split_lines(c);
    }
    return (int) len;
}

static void on_eof(ssh_session session, ssh_channel channel, void *arg)
{
    (void) session;
    (void) channel;
    ((struct chan *) arg)->eof = true;
}

static void on_close(ssh_session session, ssh_channel channel, void *arg)
{
    (void) session;
    (void) channel;
    ((struct chan *) arg)->closed = true;
}

static void on_status(ssh_session session, ssh_channel channel, int status,
                      void *arg)
{
    struct chan *c = arg;

    (void) session;
    (void) channel;
    c->has_status = true;
    c->status = status;
    c->status_us = clock_mono_us();
}

static void on_signal(ssh_session session, ssh_channel channel,
                      const char *name, int core, const char *text,
                      const char *lang, void *arg)
{
    struct chan *c = arg;

    (void) session;
    (void) channel;
    (void) name;
    (void) core;
    (void) text;
    (void) lang;
    c->has_status = c->killed = true;
    c->status_us = clock_mono_us();
}

/* --- life ------------------------------------------------------------------ */

struct chan *chan_create(const struct conn_host *host, struct shard_op *op)
{
    struct chan *c = MEM_NEW(struct chan);

    c->host = host;
    c->op = op;
    /* Room for a line that is too long, so that it is seen to be. */
    buf_init(&c->out, op->kind == SHARD_EXEC ? EXEC_OUT_MAX
                                             : 2 * CHAN_LINE_MAX);
    buf_init(&c->errout, EXEC_OUT_MAX);
    if (op->deadline_us)
        ++*host->deadlines;
    return c;
}

void chan_destroy(struct chan *c)
{
    if (!c)
        return;
    if (c->channel) {
        ssh_remove_channel_callbacks(c->channel, c->callbacks);
        ssh_channel_free(c->channel);
    }
    free(c->callbacks);
    buf_fini(&c->out);
    buf_fini(&c->errout);
    free(c);
}

/* Fill the op's result from what has been collected. */
static void finish(struct chan *c, enum op_outcome outcome)
{
    struct shard_op *op = c->op;

    if (op->deadline_us)
        --*c->host->deadlines;
    op->r.outcome = outcome;
    op->code = c->killed ? -1 : c->status;
    if (op->kind == SHARD_EXEC) {
        op->out = buf_take(&c->out, &op->out_len);
        op->errout = buf_take(&c->errout, &op->errout_len);
    }
    c->state = CHAN_ENDED;
}

void chan_abort(struct chan *c, enum err_class class, const char *why)
{
    if (c->state == CHAN_ENDED)
        return;
    err_set(&c->op->r.err, class, "%s", why);
    finish(c, c->requested ? OP_UNKNOWN
              : class == ERR_CANCELLED ? OP_CANCELLED
                                       : OP_REFUSED);
}

void chan_cancel(struct chan *c)
{
    chan_abort(c, ERR_CANCELLED, "cancelled");
    if (c->op->kind == SHARD_STREAM && c->requested)
        c->op->r.outcome = OP_CANCELLED;
}

void chan_expire(struct chan *c, int64_t now_us)
{
    if (c->state == CHAN_ENDED)
        return;
    if (c->has_status && now_us - c->status_us >= CHAN_GRACE_US)
        finish(c, OP_DONE);
    else if (c->op->deadline_us && now_us >= c->op->deadline_us)
        chan_abort(c, ERR_TIMEOUT, "the command did not end in time");
}

/* --- steps ----------------------------------------------------------------- */

static int attach(struct chan *c, ssh_session session)
{
    ssh_channel_callbacks cb = mem_zalloc(sizeof *cb);

    c->callbacks = cb;
    cb->userdata = c;
    cb->channel_data_function = on_data;
    cb->channel_eof_function = on_eof;
    cb->channel_close_function = on_close;
    cb->channel_exit_status_function = on_status;
    cb->channel_exit_signal_function = on_signal;
    ssh_callbacks_init(cb);
    c->channel = ssh_channel_new(session);
    if (!c->channel)
        return -1;
    return ssh_set_channel_callbacks(c->channel, cb) == SSH_OK ? 0 : -1;
}

static bool step_opening(struct chan *c, ssh_session session)
{
    int rc;

    if (!c->channel && attach(c, session) < 0) {
        chan_abort(c, ERR_TRANSIENT, "no channel");
        return true;
    }
    rc = ssh_channel_open_session(c->channel);
    if (rc == SSH_AGAIN)
        return false;
    if (rc != SSH_OK)
        chan_abort(c, ERR_TRANSIENT, "the server refused a channel");
    else
        c->state = CHAN_REQUESTING;
    return true;
}

/* Only a reply says no. A request that failed in any other way may have
 * arrived: its command may run. */
static bool is_denied(ssh_session session)
{
    return ssh_is_connected(session) &&
           ssh_get_error_code(session) == SSH_REQUEST_DENIED;
}

static bool step_requesting(struct chan *c, ssh_session session)
{
    int rc;

    if (!c->requested && !ssh_is_connected(session)) {
        chan_abort(c, ERR_TRANSIENT, "the connection broke");
        return true;
    }
    c->requested = true;
    rc = ssh_channel_request_exec(c->channel, c->op->command);
    if (rc == SSH_AGAIN)
        return false;
    if (rc == SSH_OK) {
        c->state = CHAN_RUNNING;
    } else if (is_denied(session)) {
        c->requested = false;
        chan_abort(c, ERR_TRANSIENT, "the server refused the command");
    } else {
        chan_abort(c, ERR_UNKNOWN, "no reply to the command's request");
    }
    return true;
}

/* true when bytes left. libssh takes whatever it is given and keeps the memory
 * for as long as the session lives: a runner of a megabyte, written at once,
 * would cost that instance as much. So it gets little, and no more before the
 * kernel has taken that. */
static bool feed(struct chan *c, ssh_session session)
{
    bool moved = false;

    while (c->sent < c->op->input_len) {
        if (ssh_get_status(session) & SSH_WRITE_PENDING)
            return moved;
        size_t n = c->op->input_len - c->sent;
        int rc = ssh_channel_write(c->channel, c->op->input + c->sent,
                                   (uint32_t) (n < CHAN_CHUNK ? n
                                                              : CHAN_CHUNK));

        if (rc <= 0)
            return moved;
        c->sent += (size_t) rc;
        moved = true;
    }
    if (c->op->kind == SHARD_EXEC && !c->eof_sent) {
        c->eof_sent = true;
        ssh_channel_send_eof(c->channel);
        moved = true;
    }
    return moved;
}

static bool step_running(struct chan *c, ssh_session session)
{
    if (c->err.class) {
        c->op->r.err = c->err;
        finish(c, OP_REFUSED);
        return true;
    }
    if (c->has_status && (c->eof || c->closed)) {
        finish(c, OP_DONE);
        return true;
    }
    if (c->closed) {
        chan_abort(c, ERR_UNKNOWN, "the channel closed without an exit "
                                   "status");
        return true;
    }
    return feed(c, session);
}

bool chan_step(struct chan *c, ssh_session session)
{
    switch (c->state) {
    case CHAN_OPENING:
        return step_opening(c, session);
    case CHAN_REQUESTING:
        return step_requesting(c, session);
    case CHAN_RUNNING:
        return step_running(c, session);
    case CHAN_ENDED:
        break;
    }
    return false;
}
