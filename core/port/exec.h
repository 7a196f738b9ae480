/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PORT_EXEC_H
#define CORE_PORT_EXEC_H

/*
 * The exec port: commands on instances, over one session per instance
 * (SSH in life, RFC 4251-4254).
 *
 * connect makes a connection and logs in. The host key it reports is not yet
 * trusted: until approve() names exactly that key, the session runs only
 * commands without stdin, and streams are refused. The core then either knows
 * the key (pinned), asks the driver, or reads the instance secret, and
 * approves or closes.
 *
 * A session breaks when its transport does (`on_broken`, exactly once, not
 * after close): every op on it ends, a command with OP_UNKNOWN. Closing a
 * session proves nothing about what was started through it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/op.h"

struct exec_session; /* the port's; valid until exec_port.close */

struct exec_target {
    const char *label;    /* for logs and errors: instance id */
    const char *address;  /* IP literal */
    int32_t port;
    const char *user;
    int64_t deadline_ms;  /* connect, key exchange and login together */
};

struct exec_connect_result {
    struct op_result r;
    struct exec_session *session; /* OP_DONE: owned by the caller, close it */
    const char *host_key;         /* "ssh-ed25519 AAAA..." */
};

/* ERR classes of connect: TRANSIENT (refused, reset, unreachable), TIMEOUT,
 * AUTH (login refused: wait at least 15 s before trying again). */

struct exec_req {
    const char *command;  /* for the remote shell, already quoted */
    const void *input;    /* NULL = no stdin (end of file at once) */
    size_t input_len;
    bool input_kept;      /* input stays as it is for as long as the port
                           * lives, and is no secret: it is not copied */
    int64_t deadline_ms;
};

enum { EXEC_OUT_MAX = 1 << 20 };

struct exec_result {
    struct op_result r;   /* OP_DONE whenever an exit status arrived */
    int code;             /* 0..255; killed by a signal = -1 */
    const char *out;      /* NUL-terminated, capped at EXEC_OUT_MAX */
    size_t out_len;
    const char *errout;
    size_t errout_len;
};

struct exec_port {
    struct op *(*connect)(struct exec_port *x, const struct exec_target *t,
                          void (*cb)(void *arg,
                                     const struct exec_connect_result *r),
                          void (*on_broken)(void *arg, const struct err *why),
                          void *arg);
    /* From now on stdin and streams are allowed. -1 when key is not the one
     * that was reported. */
    int (*approve)(struct exec_port *x, struct exec_session *s,
                   const char *key, struct err *err);
    struct op *(*exec)(struct exec_port *x, struct exec_session *s,
                       const struct exec_req *req,
                       void (*cb)(void *arg, const struct exec_result *r),
                       void *arg);
    /* A command whose stdout is delivered line by line (without newline, at
     * most 64 KiB each) until it ends, is cancelled, or the session breaks.
     * A longer line, or more output than 4 MiB a second, ends it: TOO_LARGE.
     * No deadline; the caller watches for silence. stdin stays open; cancel
     * closes it. */
    struct op *(*stream)(struct exec_port *x, struct exec_session *s,
                         const char *command,
                         void (*on_line)(void *arg, const char *line,
                                         size_t n),
                         void (*end)(void *arg, const struct op_result *r),
                         void *arg);
    /* Ends every op of the session (their callbacks fire later, OP_UNKNOWN or
     * OP_CANCELLED), then the session is gone; on_broken does not fire. */
    void (*close)(struct exec_port *x, struct exec_session *s);
    void (*op_cancel)(struct exec_port *x, struct op *op);
    void *impl;
};

#endif
