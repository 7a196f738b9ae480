/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop thread's side of SSH: the exec port.
 *
 * Keeps what the port contract promises and the shard need not know: which
 * host key a session has reported, whether it was approved, that stdin and
 * streams wait for that, and which callback belongs to which number. An op is
 * found by its number in a table of those in flight; a session that was
 * closed is remembered until its last op has come back, so that no callback
 * ever meets freed memory.
 */
#include "core/ssh/ssh_port.h"

#include <libssh/libssh.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/io/loop.h"
#include "core/port/exec.h"
#include "core/ssh/shard.h"

struct ssh_port {
    struct exec_port exec;
    struct loop *loop;
    struct shard *shard;
    ssh_key key;
    char *public_key;
    int default_port;
    uint64_t last_id;
    struct map *ops;      /* id -> struct op, in flight */
    struct map *sessions; /* id -> struct exec_session, not closed */
};

struct exec_session {
    uint64_t id;
    char *host_key;
    bool approved;
    void (*on_broken)(void *arg, const struct err *why);
    void *arg;
};

struct op {
    uint64_t id;
    enum shard_op_kind kind;
    void *cb;                      /* by kind, cast back when called */
    void (*on_line)(void *arg, const char *line, size_t n);
    void (*on_broken)(void *arg, const struct err *why);
    void *arg;
    struct ssh_port *port;
    struct op_result refusal;      /* of an op that never left */
};

typedef void connect_cb(void *, const struct exec_connect_result *);
typedef void exec_cb(void *, const struct exec_result *);
typedef void end_cb(void *, const struct op_result *);

/* Numbers as map keys: fixed width, so that the order is numeric. */
static const char *key_of(uint64_t id, char out[20])
{
    snprintf(out, 20, "%016llx", (unsigned long long) id);
    return out;
}

static struct op *op_create(struct ssh_port *p, enum shard_op_kind kind,
                            void *cb, void *arg)
{
    struct op *op = MEM_NEW(struct op);
    char key[20];

    op->id = ++p->last_id;
    op->kind = kind;
    op->cb = cb;
    op->arg = arg;
    op->port = p;
    map_set(p->ops, key_of(op->id, key), op);
    return op;
}

static struct shard_op *ask(const struct op *op, uint64_t session)
{
    struct shard_op *so = MEM_NEW(struct shard_op);

    so->id = op->id;
    so->kind = op->kind;
    so->session = session;
    return so;
}

static int64_t deadline(int64_t ms)
{
    return ms > 0 ? clock_mono_us() + ms * 1000 : 0;
}

/* --- answers ---------------------------------------------------------------- */

static void answer_connect(struct op *op, struct shard_op *so)
{
    struct ssh_port *p = op->port;
    struct exec_connect_result r = { .r = so->r };
    char key[20];

    if (so->r.outcome == OP_DONE) {
        struct exec_session *s = MEM_NEW(struct exec_session);

        s->id = so->session;
        s->host_key = mem_strdup(so->host_key);
        s->on_broken = op->on_broken;
        s->arg = op->arg;
        map_set(p->sessions, key_of(s->id, key), s);
        r.session = s;
        r.host_key = s->host_key;
    } else {
        shard_close(p->shard, so->session);
    }
    ((connect_cb *) op->cb)(op->arg, &r);
}

static void answer_exec(struct op *op, struct shard_op *so)
{
    struct exec_result r = {
        .r = so->r, .code = so->code,
        .out = so->out ? so->out : "", .out_len = so->out_len,
        .errout = so->errout ? so->errout : "", .errout_len = so->errout_len,
    };

    ((exec_cb *) op->cb)(op->arg, &r);
}

static void answer(struct op *op, struct shard_op *so)
{
    switch (op->kind) {
    case SHARD_CONNECT:
        answer_connect(op, so);
        break;
    case SHARD_EXEC:
        answer_exec(op, so);
        break;
    case SHARD_STREAM:
        ((end_cb *) op->cb)(op->arg, &so->r);
    }
    free(op);
}

static void on_done(void *arg, struct shard_op *so)
{
    struct ssh_port *p = arg;
    char key[20];
    struct op *op = map_take(p->ops, key_of(so->id, key));

    if (op)
        answer(op, so);
    shard_op_free(so);
}

static void on_lines(void *arg, uint64_t id, const char *lines, size_t n)
{
    struct ssh_port *p = arg;
    char key[20];

    /* A line's receiver may cancel the stream; look it up each time. */
    for (; n > 0; n--) {
        struct op *op = map_get(p->ops, key_of(id, key));
        size_t len = strlen(lines);

        if (!op)
            return;
        op->on_line(op->arg, lines, len);
        lines += len + 1;
    }
}

static void on_broken(void *arg, uint64_t id, const struct err *why)
{
    struct ssh_port *p = arg;
    char key[20];
    struct exec_session *s = map_get(p->sessions, key_of(id, key));

    if (s && s->on_broken)
        s->on_broken(s->arg, why);
}

/* An op that is refused before it reaches the shard. */
static void deliver_refusal(void *arg)
{
    struct op *op = arg;
    struct shard_op so = { .r = op->refusal };
    char key[20];

    if (!op->port) {
        free(op);
        return;
    }
    map_take(op->port->ops, key_of(op->id, key));
    answer(op, &so);
}

/* The port goes away. The loop still holds an op that is refused. */
static void op_abandon(struct op *op)
{
    op->port = NULL;
    if (op->refusal.outcome != OP_REFUSED)
        free(op);
}

static struct op *refuse(struct op *op, enum err_class class,
                         const char *why)
{
    op->refusal.outcome = OP_REFUSED;
    err_set(&op->refusal.err, class, "%s", why);
    loop_defer(op->port->loop, deliver_refusal, op);
    return op;
}

/* --- the port ---------------------------------------------------------------- */

static struct op *do_connect(struct exec_port *x, const struct exec_target *t,
                             connect_cb *cb,
                             void (*broken)(void *arg, const struct err *why),
                             void *arg)
{
    struct ssh_port *p = x->impl;
    struct op *op = op_create(p, SHARD_CONNECT, (void *) cb, arg);
    struct shard_op *so = ask(op, ++p->last_id);

    op->on_broken = broken;
    so->label = mem_strdup(t->label);
    so->address = mem_strdup(t->address ? t->address : "");
    so->user = mem_strdup(t->user && *t->user ? t->user : "root");
    so->port = t->port ? t->port : p->default_port;
    so->deadline_us = deadline(t->deadline_ms);
    shard_start(p->shard, so);
    return op;
}

static int do_approve(struct exec_port *x, struct exec_session *s,
                      const char *key, struct err *err)
{
    (void) x;
    if (strcmp(s->host_key, key) != 0)
        return err_set(err, ERR_AUTH, "the host key is another one");
    s->approved = true;
    return 0;
}

static struct op *do_exec(struct exec_port *x, struct exec_session *s,
                          const struct exec_req *req, exec_cb *cb, void *arg)
{
    struct ssh_port *p = x->impl;
    struct op *op = op_create(p, SHARD_EXEC, (void *) cb, arg);
    struct shard_op *so;

    if (req->input && !s->approved)
        return refuse(op, ERR_INTERNAL, "stdin on a session whose host key "
                                        "was not approved");
    so = ask(op, s->id);
    so->command = mem_strdup(req->command);
    if (req->input) {
        if (!req->input_kept)
            so->input_copy = mem_dup(req->input, req->input_len);
        so->input = req->input_kept ? req->input : so->input_copy;
        so->input_len = req->input_len;
    }
    so->deadline_us = deadline(req->deadline_ms);
    shard_start(p->shard, so);
    return op;
}

static struct op *do_stream(struct exec_port *x, struct exec_session *s,
                            const char *command,
                            void (*on_line)(void *arg, const char *line,
                                            size_t n),
                            end_cb *end, void *arg)
{
    struct ssh_port *p = x->impl;
    struct op *op = op_create(p, SHARD_STREAM, (void *) end, arg);
    struct shard_op *so;

    op->on_line = on_line;
    if (!s->approved)
        return refuse(op, ERR_INTERNAL, "a stream on a session whose host "
                                        "key was not approved");
    so = ask(op, s->id);
    so->command = mem_strdup(command);
    shard_start(p->shard, so);
    return op;
}

static void session_free(struct exec_session *s)
{
    free(s->host_key);
    free(s);
}

static void do_close(struct exec_port *x, struct exec_session *s)
{
    struct ssh_port *p = x->impl;
    char key[20];

    shard_close(p->shard, s->id);
    map_take(p->sessions, key_of(s->id, key));
    session_free(s);
}

static void do_cancel(struct exec_port *x, struct op *op)
{
    struct ssh_port *p = x->impl;

    shard_cancel(p->shard, op->id);
}

/* --- life --------------------------------------------------------------------- */

static int read_key(struct ssh_port *p, const char *private_key,
                    struct err *err)
{
    char *text = NULL;

    if (ssh_pki_import_privkey_base64(private_key, NULL, NULL, NULL,
                                      &p->key) != SSH_OK)
        return err_set(err, ERR_CONFIG,
                       "the SSH private key cannot be read (PEM or OpenSSH "
                       "text without a passphrase wanted)");
    if (ssh_pki_export_pubkey_base64(p->key, &text) != SSH_OK)
        return err_set(err, ERR_CONFIG,
                       "the SSH private key has no public part");
    p->public_key = mem_printf(
        "%s %s", ssh_key_type_to_char(ssh_key_type(p->key)), text);
    ssh_string_free_char(text);
    return 0;
}

struct ssh_port *ssh_port_create(struct loop *loop, const char *private_key,
                                 int default_port, struct err *err)
{
    struct ssh_port *p = MEM_NEW(struct ssh_port);
    struct shard_events events = { on_done, on_lines, on_broken, p };

    p->loop = loop;
    p->default_port = default_port;
    p->ops = map_create(NULL);
    p->sessions = map_create(NULL);
    p->exec = (struct exec_port){
        .connect = do_connect, .approve = do_approve, .exec = do_exec,
        .stream = do_stream, .close = do_close, .op_cancel = do_cancel,
        .impl = p,
    };
    if (read_key(p, private_key, err) < 0)
        goto error;
    p->shard = shard_create(loop, p->key, &events, err);
    if (!p->shard)
        goto error;
    return p;
error:
    ssh_port_destroy(p);
    return NULL;
}

void ssh_port_destroy(struct ssh_port *p)
{
    const char *key = NULL;
    void *value;

    if (!p)
        return;
    shard_destroy(p->shard);
    while ((value = map_next(p->ops, &key)))
        op_abandon(value);
    key = NULL;
    while ((value = map_next(p->sessions, &key)))
        session_free(value);
    map_destroy(p->ops);
    map_destroy(p->sessions);
    ssh_key_free(p->key);
    free(p->public_key);
    free(p);
}

struct exec_port *ssh_port_exec(struct ssh_port *p)
{
    return &p->exec;
}

const char *ssh_port_public_key(const struct ssh_port *p)
{
    return p->public_key;
}
