/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions and the exec port.
 *
 * A command is an op: parsed when it is sent (a start command is entered in
 * the container's list of starts at once: from then on a payload may come of
 * it), executed on the machine when it arrives, answered after that. A machine
 * that is silent keeps it until the thaw. When a session ends first, its ops
 * end as unknown, while what was sent is executed or not.
 *
 * Called by the dispatcher through the port, by vm.c and by chaos.
 */

#include "core/sim/net.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/text.h"
#include "core/sim/api.h"
#include "core/sim/check.h"
#include "core/sim/cloud.h"
#include "core/sim/vm_impl.h"

static int64_t latency(struct sim_net *n)
{
    return sim_rng_range(&n->rng, n->latency_lo_us, n->latency_hi_us);
}

/* --- sessions -------------------------------------------------------- */

void sim_session_forget(struct exec_session *s, struct op *op)
{
    for (size_t i = 0; i < s->ops.n; i++) {
        if (s->ops.v[i] == op) {
            VEC_REMOVE(&s->ops, i);
            return;
        }
    }
}

/* No op of the session has a future. */
static void session_end(struct exec_session *s, const char *why)
{
    s->over = true;
    for (size_t i = 0; i < s->ops.n; i++) {
        struct op *op = s->ops.v[i];

        op_fail_in(op, 0, OP_UNKNOWN, ERR_TRANSIENT, 0, why);
    }
    /* Detaching may free ops and so shorten the list. */
    for (size_t i = s->ops.n; i-- > 0;)
        if (i < s->ops.n && sim_op_is_stream(s->ops.v[i]))
            sim_stream_detach((struct sim_stream *) s->ops.v[i]);
}

static void on_broken(void *arg)
{
    struct exec_session *s = arg;
    struct err err = {0};

    if (s->told || s->gen != s->net->w->gen)
        return;
    if (!sim_awake(s->net->w)) {
        sim_at(s->net->w, sim_wake_in(s->net->w) + 1, on_broken, s);
        return;
    }
    s->told = true;
    err_set(&err, ERR_TRANSIENT, "connection broken");
    sim_trace(s->net->w, "session to %s broken", s->machine->vm->id);
    s->on_broken(s->arg, &err);
}

void sim_session_break(struct exec_session *s, const char *why)
{
    if (s->over)
        return;
    session_end(s, why);
    sim_at(s->net->w, 0, on_broken, s);
}

void sim_net_break_all(struct sim_net *n, struct sim_machine *m,
                       const char *why)
{
    for (size_t i = 0; i < n->sessions.n; i++) {
        struct exec_session *s = n->sessions.v[i];

        if (s->machine == m && !s->over)
            sim_session_break(s, why);
    }
}

struct exec_session *sim_net_session(struct sim_net *n,
                                     const struct sim_machine *m)
{
    for (size_t i = 0; i < n->sessions.n; i++)
        if (n->sessions.v[i]->machine == m && !n->sessions.v[i]->over)
            return n->sessions.v[i];
    return NULL;
}

/* --- connect --------------------------------------------------------- */

struct connect_op {
    struct op op;
    struct sim_net *net;
    char address[64];
    char user[32];
    int32_t port;
    bool refused;
    struct exec_session *session;
    void (*cb)(void *arg, const struct exec_connect_result *r);
    void (*on_broken)(void *arg, const struct err *why);
    void *arg;
};

static struct sim_machine *find_machine(const struct sim_net *n,
                                        const char *address)
{
    for (size_t i = 0; i < n->machines.n; i++)
        if (strcmp(n->machines.v[i]->vm->address, address) == 0)
            return n->machines.v[i];
    return NULL;
}

static const char *offered_key(const struct sim_machine *m)
{
    return m->impostor ? "ssh-ed25519 AAAAimpostor" : m->host_key;
}

static void connect_fire(struct op *op, const struct op_result *r)
{
    struct connect_op *o = (struct connect_op *) op;
    struct exec_connect_result res = {.r = *r, .host_key = ""};

    sim_trace(op->w, "connect to %s => %s", o->address,
              r->outcome == OP_DONE ? "session" : r->err.text);
    if (r->outcome == OP_DONE) {
        res.session = o->session;
        res.host_key = offered_key(o->session->machine);
        if (!o->session->machine->impostor)
            sim_machine_contact(o->session->machine);
    } else if (o->session) {
        o->session->over = o->session->told = true; /* nobody took it */
    }
    o->cb(o->arg, &res);
    if (r->outcome == OP_DONE)
        sim_point(op->w, SIM_POINT_CONNECTED);
}

static struct exec_session *session_new(struct connect_op *o,
                                        struct sim_machine *m)
{
    struct exec_session *s = MEM_NEW(struct exec_session);

    s->net = o->net;
    s->machine = m;
    s->gen = o->op.gen;
    s->on_broken = o->on_broken;
    s->arg = o->arg;
    VEC_PUSH(&o->net->sessions, s);
    return s;
}

static void connect_effect(struct op *op)
{
    struct connect_op *o = (struct connect_op *) op;
    struct sim_machine *m = find_machine(o->net, o->address);

    if (!op_alive(op))
        return;
    if (m && sim_machine_up(m) && sim_machine_silent(m)) {
        op->effected = false;
        op_effect_in(op, sim_machine_thaw_us(m) - op->w->now_us + 1000);
        return;
    }
    if (!m || !sim_machine_up(m) || o->refused) {
        op_fail_in(op, 1, OP_REFUSED, ERR_TRANSIENT, 0, "connection refused");
        return;
    }
    if (strcmp(o->user, m->user) != 0) {
        op_fail_in(op, latency(o->net), OP_REFUSED, ERR_AUTH, 0,
                   "permission denied");
        return;
    }
    o->session = session_new(o, m);
    op_done_in(op, latency(o->net));
}

static struct op *connect_to(struct exec_port *x, const struct exec_target *t,
                             void (*cb)(void *arg,
                                        const struct exec_connect_result *r),
                             void (*broken)(void *arg, const struct err *why),
                             void *arg)
{
    struct sim_net *n = x->impl;
    struct connect_op *o = op_new(n->w, sizeof *o, "connect");

    o->net = n;
    o->cb = cb;
    o->on_broken = broken;
    o->arg = arg;
    o->port = t->port;
    text_copy(o->address, t->address, sizeof o->address);
    text_copy(o->user, t->user, sizeof o->user);
    o->op.effect = connect_effect;
    o->op.fire = connect_fire;
    if (n->w->crashing) {
        op_effect_in(&o->op, 0);
        return &o->op;
    }
    o->refused = sim_fault(n->w, SIM_FAULT_CONNECT_REFUSED);
    op_effect_in(&o->op, 3 * latency(n));
    op_deadline(&o->op, t->deadline_ms);
    return &o->op;
}

static int approve(struct exec_port *x, struct exec_session *s, const char *key,
                   struct err *err)
{
    (void) x;
    if (s->machine->impostor)
        sim_fail(s->net->w, "an impostor's host key is approved for %s",
                 s->machine->vm->id);
    if (strcmp(key, offered_key(s->machine)) != 0)
        return err_set(err, ERR_AUTH, "not the key that was offered");
    s->approved = true;
    return 0;
}

/* --- commands -------------------------------------------------------- */

struct exec_op {
    struct op op;
    struct exec_session *session;
    struct sim_machine *machine;
    struct sim_command cmd;
    void *input;
    size_t input_len;
    int boot; /* of the machine, when it was sent */
    bool lost, no_reply, late;
    /* a start command */
    struct sim_ctr *ctr;
    char token[64];
    int64_t attempt;
    size_t start;
    int64_t kill_until_us;
    /* answer */
    int code;
    struct buf out;
    void (*cb)(void *arg, const struct exec_result *r);
    void *arg;
};

static void exec_fire(struct op *op, const struct op_result *r)
{
    struct exec_op *o = (struct exec_op *) op;
    struct exec_result res = {
        .r = *r,
        .code = o->code,
        .out = o->out.data,
        .out_len = o->out.len,
        .errout = "",
    };

    if (r->outcome == OP_DONE)
        sim_machine_contact(o->machine);
    if (r->outcome == OP_DONE &&
        (o->cmd.kind == SIM_CMD_LIST || o->cmd.kind == SIM_CMD_START))
        sim_machine_told(o->machine, o->out.data);
    sim_trace(op->w, "exec on %s (%d %s) => %s %d", o->machine->vm->id,
              o->cmd.kind, o->cmd.uuid,
              r->outcome == OP_DONE ? "exit" : r->err.text, o->code);
    o->cb(o->arg, &res);
    if (o->cmd.kind == SIM_CMD_START)
        sim_point(op->w, SIM_POINT_START_HEARD);
}

static void start_over(struct op *op)
{
    struct exec_op *o = (struct exec_op *) op;

    if (o->ctr && o->ctr->starts.v[o->start].state == SIM_START_SENT)
        o->ctr->starts.v[o->start].state = SIM_START_OVER;
}

static void exec_reply(struct exec_op *o)
{
    if (o->no_reply)
        op_fail_in(&o->op, latency(o->session->net), OP_UNKNOWN, ERR_TRANSIENT,
                   0, "channel closed without exit status");
    else
        op_done_in(&o->op, latency(o->session->net));
}

/* --kill waits up to a second for the process to be gone. */
static void kill_wait(void *arg)
{
    struct exec_op *o = arg;
    struct sim *w = o->op.w;
    bool there = sim_machine_proc(o->machine, o->cmd.uuid) != NULL;

    if (there && w->now_us < o->kill_until_us) {
        op_hold(&o->op);
        sim_at(w, 100 * SIM_MS, kill_wait, o);
    } else if (!o->machine->halted) {
        o->code = there ? 1 : 0;
        exec_reply(o);
    }
    op_drop(&o->op);
}

static void execute(struct exec_op *o)
{
    struct sim_machine *m = o->machine;
    struct sim_proc *p;

    if (o->cmd.kind == SIM_CMD_START && o->ctr &&
        sim_machine_has_runner(m, o->cmd.path)) {
        o->code = sim_proc_start(m, o->ctr, o->token, o->attempt, o->start);
        if (o->code == 0)
            buf_printf(&o->out, "{\"UUID\":\"%s\",\"PID\":%d}\n", o->cmd.uuid,
                       m->next_pid);
        sim_point(o->op.w, SIM_POINT_START_DONE);
    } else if (o->cmd.kind == SIM_CMD_KILL &&
               sim_machine_has_runner(m, o->cmd.path)) {
        p = sim_machine_proc(m, o->cmd.uuid);
        if (p)
            sim_proc_term(p);
        o->kill_until_us = o->op.w->now_us + SIM_S;
        op_hold(&o->op);
        sim_at(o->op.w, 10 * SIM_MS, kill_wait, o);
        return;
    } else {
        start_over(&o->op);
        sim_command_answer(m, &o->cmd, o->input, o->input_len, &o->code,
                           &o->out);
    }
    exec_reply(o);
}

static void exec_effect(struct op *op)
{
    struct exec_op *o = (struct exec_op *) op;
    struct sim_machine *m = o->machine;
    struct sim *w = op->w;

    if (m->halted || o->boot != m->boots) {
        start_over(op);
        return; /* nobody answers */
    }
    if (sim_machine_silent(m)) {
        op->effected = false;
        op_effect_in(op, sim_machine_thaw_us(m) - w->now_us +
                             latency(o->session->net));
        return;
    }
    if (o->lost || (o->session->over && !o->late &&
                    sim_rng_chance(&o->session->net->rng, 5000))) {
        start_over(op);
        op_fail_in(op, 1, OP_UNKNOWN, ERR_TRANSIENT, 0, "channel closed");
        return;
    }
    sim_trace(w, "exec arrives on %s (%d %s)", m->vm->id, o->cmd.kind,
              o->cmd.uuid);
    execute(o);
}

static void exec_fini(struct op *op)
{
    struct exec_op *o = (struct exec_op *) op;

    sim_session_forget(o->session, op);
    free(o->input);
    buf_fini(&o->out);
}

static struct exec_op *exec_new(
    struct exec_session *s, const struct exec_req *req,
    void (*cb)(void *arg, const struct exec_result *r), void *arg)
{
    struct exec_op *o = op_new(s->net->w, sizeof *o, "exec");

    o->session = s;
    o->machine = s->machine;
    o->boot = s->machine->boots;
    o->cb = cb;
    o->arg = arg;
    if (req->input) {
        o->input = mem_dup(req->input, req->input_len);
        o->input_len = req->input_len;
    }
    buf_init(&o->out, EXEC_OUT_MAX);
    o->op.writes = true;
    o->op.cancel_unknown = true;
    o->op.effect = exec_effect;
    o->op.dropped = start_over;
    o->op.fire = exec_fire;
    o->op.fini = exec_fini;
    VEC_PUSH(&s->ops, &o->op);
    return o;
}

/* From now on a payload may come of it. */
static void enter_start(struct exec_op *o)
{
    struct sim *w = o->op.w;
    struct sim_ctr *c;

    sim_command_token(o->input, o->input_len, o->token, sizeof o->token);
    c = sim_api_token(w->api, o->token, &o->attempt);
    if (!c || strcmp(c->rec.uuid, o->cmd.uuid) != 0) {
        sim_fail(w, "start of %s with a token that is not its own",
                 o->cmd.uuid);
        return;
    }
    o->ctr = c;
    o->start = c->starts.n;
    c->locked_started = true;
    VEC_PUSH(&c->starts, (struct sim_start){.machine = o->machine,
                                            .attempt = o->attempt,
                                            .state = SIM_START_SENT});
    check_start_call(w, c, o->machine, o->attempt);
}

static void late_break(void *arg)
{
    sim_session_break(arg, "connection reset");
}

static unsigned channels(const struct exec_session *s)
{
    unsigned n = 0;

    for (size_t i = 0; i < s->ops.n; i++)
        n += op_alive(s->ops.v[i]);
    return n;
}

static void exec_send(struct exec_op *o, const char *command)
{
    struct exec_session *s = o->session;
    struct sim *w = o->op.w;
    int64_t delay = latency(s->net);

    sim_command_parse(s->net, command, &o->cmd);
    sim_trace(w, "exec sent to %s: %.120s", o->machine->vm->id, command);
    if (o->cmd.kind == SIM_CMD_OTHER)
        sim_fail(w, "a command that no instance understands: %s", command);
    o->lost = sim_fault(w, SIM_FAULT_EXEC_LOST);
    o->no_reply = sim_fault(w, SIM_FAULT_EXEC_NO_REPLY);
    if (o->cmd.kind == SIM_CMD_START) {
        enter_start(o);
        if (!o->lost && sim_fault(w, SIM_FAULT_START_LATE)) {
            o->late = true;
            sim_at(w, delay, late_break, s);
            delay +=
                sim_rng_range(&s->net->rng, 5 * SIM_S, 180 * (int64_t) SIM_S);
        }
    }
    op_effect_in(&o->op, delay);
}

static struct op *exec(struct exec_port *x, struct exec_session *s,
                       const struct exec_req *req,
                       void (*cb)(void *arg, const struct exec_result *r),
                       void *arg)
{
    struct exec_op *o = exec_new(s, req, cb, arg);
    struct sim *w = s->net->w;

    (void) x;
    if (w->crashing) {
        op_effect_in(&o->op, 0);
        return &o->op;
    }
    if (req->input && !s->approved) {
        sim_fail(w, "stdin on an unapproved session to %s", s->machine->vm->id);
        op_fail_in(&o->op, 0, OP_REFUSED, ERR_AUTH, 0, "not approved");
    } else if (s->over) {
        op_fail_in(&o->op, 0, OP_REFUSED, ERR_TRANSIENT, 0,
                   "session is broken");
    } else if (channels(s) > SIM_CHANNELS) {
        op_fail_in(&o->op, 0, OP_REFUSED, ERR_TRANSIENT, 0,
                   "too many channels");
    } else {
        exec_send(o, req->command);
    }
    op_deadline(&o->op, req->deadline_ms);
    return &o->op;
}

static struct op *stream(struct exec_port *x, struct exec_session *s,
                         const char *command,
                         void (*on_line)(void *arg, const char *line, size_t n),
                         void (*end)(void *arg, const struct op_result *r),
                         void *arg)
{
    (void) x;
    if (!s->net->w->crashing && !s->approved)
        sim_fail(s->net->w, "stream on an unapproved session to %s",
                 s->machine->vm->id);
    return sim_stream_create(s, command, on_line, end, arg);
}

static void close_session(struct exec_port *x, struct exec_session *s)
{
    (void) x;
    s->told = true;
    if (s->over)
        return;
    if (!s->net->w->crashing)
        sim_trace(s->net->w, "session to %s closed", s->machine->vm->id);
    session_end(s, "session closed");
}

static void port_cancel(struct exec_port *x, struct op *op)
{
    (void) x;
    op_cancel(op);
}

/* --- life ------------------------------------------------------------ */

void sim_net_crash(struct sim_net *n)
{
    for (size_t i = 0; i < n->sessions.n; i++) {
        struct exec_session *s = n->sessions.v[i];

        if (s->gen == n->w->gen)
            continue;
        s->told = true;
        if (!s->over)
            session_end(s, "peer died");
    }
    /* What the dead one decided may still arrive. */
    for (size_t i = 0; i < n->machines.n; i++)
        if (sim_machine_lost(n->machines.v[i]))
            n->machines.v[i]->excused_us = n->w->now_us + 60 * SIM_S;
}

struct sim_net *sim_net_create(struct sim *w)
{
    struct sim_net *n = MEM_NEW(struct sim_net);

    n->w = w;
    n->latency_lo_us = 2 * SIM_MS;
    n->latency_hi_us = 40 * SIM_MS;
    n->login_user = "root";
    n->runner_command = "crunch-run";
    n->secret_tag = "CDCInstanceSecret";
    sim_rng_init(&n->rng, w->seed, "net");
    n->port = (struct exec_port){
        .connect = connect_to,
        .approve = approve,
        .exec = exec,
        .stream = stream,
        .close = close_session,
        .op_cancel = port_cancel,
        .impl = n,
    };
    return n;
}

void sim_net_destroy(struct sim_net *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->sessions.n; i++) {
        VEC_FINI(&n->sessions.v[i]->ops);
        free(n->sessions.v[i]);
    }
    VEC_FINI(&n->sessions);
    for (size_t i = 0; i < n->machines.n; i++)
        sim_machine_destroy(n->machines.v[i]);
    VEC_FINI(&n->machines);
    free(n);
}
