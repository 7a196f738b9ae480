/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SSH_CHAN_H
#define CORE_SSH_CHAN_H

/*
 * One SSH channel = one command: open, request exec, feed stdin, collect
 * output, take the exit status. Stepped by its connection; shard thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/ssh/conn.h"

struct ssh_session_struct;
struct ssh_channel_struct;
struct ssh_channel_callbacks_struct;
struct shard_op;

enum chan_state {
    CHAN_OPENING,    /* SSH_MSG_CHANNEL_OPEN sent, not confirmed */
    CHAN_REQUESTING, /* exec requested, not confirmed */
    CHAN_RUNNING,
    CHAN_ENDED       /* op->r is filled */
};

struct chan {
    struct chan *next;
    struct shard_op *op;
    enum chan_state state;
    struct ssh_channel_struct *channel;
    struct ssh_channel_callbacks_struct *callbacks;
    size_t sent;           /* bytes of op->input */
    bool requested;        /* the exec request left: an effect may happen */
    bool eof_sent, eof, closed, has_status, killed;
    int status;
    int64_t status_us;     /* when the exit status came */
    struct buf out, errout;
    int64_t second_us;     /* of a stream: when its present second began, */
    size_t second_bytes;   /* and what came in it */
    struct err err;        /* of a stream that exceeds a limit */
    const struct conn_host *host;
};

struct chan *chan_create(const struct conn_host *host, struct shard_op *op);
/* Frees the channel; the op must have been taken before. */
void chan_destroy(struct chan *c);

/* Go on as far as possible; true when something changed. */
bool chan_step(struct chan *c, struct ssh_session_struct *session);
/* End it now: deadline, cancel or a broken connection. */
void chan_abort(struct chan *c, enum err_class class, const char *why);
void chan_cancel(struct chan *c);
/* Its deadline, or the grace after the exit status, has passed. */
void chan_expire(struct chan *c, int64_t now_us);

#endif
