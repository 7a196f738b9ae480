/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_NET_H
#define CORE_SIM_NET_H

/*
 * The network of the world: machines by address, sessions to them, and the
 * exec port. A session carries commands and streams; closing or breaking it
 * ends their ops, but what was accepted on the other side may still happen.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/port/exec.h"
#include "core/sim/world.h"

struct exec_op;
struct sim_machine;

enum { SIM_CHANNELS = 10 }; /* per session, as sshd's MaxSessions */

struct exec_session {
    struct sim_net *net;
    struct sim_machine *machine;
    uint64_t gen;
    bool approved;
    bool over; /* closed, broken, or of a dead dispatcher */
    bool told; /* on_broken has fired or never will */
    VEC(struct op *) ops;
    void (*on_broken)(void *arg, const struct err *why);
    void *arg;
};

struct sim_net {
    struct exec_port port;
    struct sim *w;
    struct sim_rng rng;
    VEC(struct sim_machine *) machines;
    VEC(struct exec_session *) sessions;
    int64_t latency_lo_us, latency_hi_us;

    /* The runner as the dispatcher deploys it; a file is only ever right
     * (these very bytes) or wrong. */
    const void *runner;
    size_t runner_size;
    const char *runner_hash;
    const char *runner_command; /* present without being deployed; or NULL */
    const char *login_user;     /* of machines made from now on */
    const char *boot_probe;
    bool no_watch;          /* the runner has no --watch */
    const char *secret_tag; /* key of the tag with the instance secret */
};

struct sim_net *sim_net_create(struct sim *w);
void sim_net_destroy(struct sim_net *n);
void sim_net_crash(struct sim_net *n);

/* The transport breaks: every op of the session ends, on_broken fires. */
void sim_session_break(struct exec_session *s, const char *why);
/* All sessions to this machine. */
void sim_net_break_all(struct sim_net *n, struct sim_machine *m,
                       const char *why);
struct exec_session *sim_net_session(struct sim_net *n,
                                     const struct sim_machine *m);

#endif
