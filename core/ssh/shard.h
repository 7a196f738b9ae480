/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SSH_SHARD_H
#define CORE_SSH_SHARD_H

/*
 * The SSH thread: an epoll loop that owns every libssh session. The loop
 * thread talks to it by posting calls; it answers by loop_post(). Sessions
 * and ops are named by numbers across the threads, so that a message that
 * comes late finds nothing instead of the wrong thing.
 */

#include <stdint.h>

#include "core/port/exec.h"

struct loop;
struct shard;

enum shard_op_kind { SHARD_CONNECT, SHARD_EXEC, SHARD_STREAM };

/* What is asked and, later, answered. Built on the loop thread, owned by the
 * shard from shard_start() until it is handed back by `done` on the loop. */
struct shard_op {
    uint64_t id;
    enum shard_op_kind kind;
    uint64_t session;

    /* asked */
    char *label, *address, *user;
    int port;
    char *command;
    const char *input; /* NULL = end of file at once */
    size_t input_len;
    char *input_copy;  /* what input is, unless somebody keeps it */
    int64_t deadline_us; /* monotonic, absolute; 0 = none */

    /* answered */
    struct op_result r;
    char *host_key;
    int code;
    char *out, *errout;
    size_t out_len, errout_len;

    void *owner;      /* the caller's, not looked at */
    struct shard_op *next; /* the shard's: list of a session */
};

void shard_op_free(struct shard_op *op);

/* Called on the loop thread. */
struct shard_events {
    void (*done)(void *arg, struct shard_op *op); /* takes the op */
    /* Lines of a stream, each NUL-terminated, n of them back to back. */
    void (*lines)(void *arg, uint64_t op, const char *lines, size_t n);
    void (*broken)(void *arg, uint64_t session, const struct err *why);
    void *arg;
};

/* key: a libssh ssh_key, borrowed. */
struct shard *shard_create(struct loop *loop, void *key,
                           const struct shard_events *events,
                           struct err *err);
/* Ends the thread. No event is called from then on; answers that wait in the
 * loop are dropped there. NULL is fine. */
void shard_destroy(struct shard *s);

/* From the loop thread. A CONNECT names the new session's number itself. */
void shard_start(struct shard *s, struct shard_op *op);
void shard_cancel(struct shard *s, uint64_t op);
void shard_close(struct shard *s, uint64_t session);

#endif
