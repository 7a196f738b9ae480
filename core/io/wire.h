/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_WIRE_H
#define CORE_IO_WIRE_H

/*
 * The byte stream under one server connection: what HTTP talks to.
 *
 * This is the seam where TLS goes in: a wire hands up plain bytes and takes
 * plain bytes, whatever is on the network. Today there is one kind, TCP.
 * Loop thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <uv.h>

enum { WIRE_PEER_SIZE = 46, WIRE_READ_SIZE = 65536 };

struct wire_ops {
    /* Bytes arrived; borrowed during the call. */
    void (*bytes)(void *arg, const char *data, size_t n);
    /* The peer closed its side (status 0), or the connection broke (a
     * negative errno): nothing more will arrive or can be sent then. */
    void (*end)(void *arg, int status);
    /* All that was written has been taken by the kernel; only after a
     * wire_write that could not send at once. */
    void (*drained)(void *arg);
    /* After wire_close: the wire's memory may go. */
    void (*closed)(void *arg);
};

/* Embedded in its user; private. */
struct wire {
    uv_tcp_t tcp;
    uv_shutdown_t shutdown;
    const struct wire_ops *ops;
    void *arg;
    char *read_buf;
    bool reading, closing;
};

/* Take the next connection of a listening socket. read_buf: WIRE_READ_SIZE
 * bytes, may be shared by all wires of a loop. A negative errno on failure;
 * `closed` then still comes. */
int wire_accept(struct wire *w, uv_stream_t *server,
                const struct wire_ops *ops, void *arg, char *read_buf);
/* The peer's numeric address, "?" if it is gone. */
void wire_get_peer(const struct wire *w, char out[WIRE_PEER_SIZE]);

void wire_read(struct wire *w, bool on);
/* Send the n (<= 2) pieces in one system call if the socket takes them; what
 * it does not take is copied and sent later. own: NULL, or the malloc'ed last
 * piece, which the wire then keeps and frees instead of copying. -1: broken;
 * close it. */
int wire_write(struct wire *w, const struct iovec *v, unsigned n, void *own);
size_t wire_unsent(const struct wire *w);
/* Close our side after what is unsent. */
void wire_shut(struct wire *w);
/* Twice is fine. */
void wire_close(struct wire *w);

#endif
