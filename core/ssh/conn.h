/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SSH_CONN_H
#define CORE_SSH_CONN_H

/*
 * One SSH connection on the shard's thread: TCP, key exchange, login, then
 * channels. A state machine that is stepped whenever its descriptor is ready,
 * something new is asked, or a deadline has passed; it never blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct err;
struct shard_op;

struct conn_host {
    void (*done)(void *arg, struct shard_op *op);
    void (*lines)(void *arg, uint64_t op, const char *lines, size_t bytes,
                  size_t n);
    void (*broken)(void *arg, uint64_t session, const struct err *why);
    void *arg;
    void *key;       /* ssh_key */
    int epoll;
    int *deadlines;  /* how many ops in flight have one */
};

/* Takes the CONNECT op. Never fails at once: the op's result tells. */
struct conn *conn_create(const struct conn_host *host, struct shard_op *op);
/* Ends every op (they are handed to done), closes the descriptor. */
void conn_destroy(struct conn *c);

uint64_t conn_id(const struct conn *c);
/* A broken connection takes no more ops and waits for conn_destroy(). */
bool conn_broken(const struct conn *c);

void conn_start(struct conn *c, struct shard_op *op); /* EXEC or STREAM */
bool conn_cancel(struct conn *c, uint64_t op);        /* false: not mine */
void conn_step(struct conn *c);   /* the descriptor is ready */
void conn_expire(struct conn *c, int64_t now_us);
bool conn_has_deadline(const struct conn *c);

#endif
