/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one session per instance.
 *
 *   DOWN -> CONNECTING -> TRUSTING -> UP -> (breaks) -> DOWN
 *
 * Wanted as long as the instance is neither ending nor gone. Failed tries
 * back off per instance, quickly while it boots; all tries together are paced
 * by MaxProbesPerSecond. In TRUSTING only the fixed identity command runs;
 * hostkey.c says which proof is due. A wrong key is not a nuisance but an
 * alarm: the session is closed, the reason shown, and tried again only after
 * a long pause.
 *
 * A broken or closed session says nothing about the processes on the
 * instance: runs keep their state until somebody looks.
 *
 * Loop thread only.
 */

#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/logger.h"
#include "core/base/text.h"
#include "core/dispatch/hostkey.h"
#include "core/dispatch/pool.h"
#include "core/dispatch/runner_cmd.h"
#include "core/dispatch/sched.h"
#include "core/dispatch/stats.h"
#include "core/dispatch/worker.h"
#include "core/port/cloud.h"

enum {
    BOOT_RETRY_US = 100000,      /* first pause between tries while it boots, */
    BOOT_RETRY_MAX_US = 1600000, /* doubled up to this */
    RETRY_MAX_US = 15000000,
    WRONG_KEY_US = 60000000
};

bool session_up(const struct worker *w)
{
    return w->link == LINK_UP && w->session;
}

static bool wanted(const struct worker *w)
{
    return core_acts(w->d) && !w->dead && w->state <= WORKER_RUNNING &&
           w->address[0] != '\0';
}

static void on_link_timer(void *arg)
{
    session_want(arg);
}

static void retry_at(struct worker *w, int64_t at_us)
{
    deadline_set(w->d->deadlines, &w->link_timer, at_us, on_link_timer, w);
}

/* sshd comes up at some moment that nobody can know: ask often at first. */
static int64_t boot_pause(const struct worker *w)
{
    unsigned level = w->link_hold.level;

    return level < 4 ? BOOT_RETRY_US << level : BOOT_RETRY_MAX_US;
}

/* The session, or the try to get one, is over. */
static void down(struct worker *w, const struct err *why, int64_t pause_us)
{
    struct dispatch *d = w->d;
    int64_t now = core_now(d);
    int64_t most = w->state == WORKER_BOOTING ? boot_pause(w) : RETRY_MAX_US;

    if (w->link == LINK_UP || w->link_lost_us == 0)
        w->link_lost_us = now;
    w->link = LINK_DOWN;
    worker_trouble(w, why);
    holdoff_hit(&w->link_hold, why, now, core_random(d));
    /* Boot and reconnect are quick; a refused login or a wrong key is not. */
    if (why->class != ERR_AUTH && w->link_hold.until_us > now + most)
        w->link_hold.until_us = now + most;
    if (w->link_hold.until_us < now + pause_us)
        w->link_hold.until_us = now + pause_us;
    boot_reset(w);
    sched_mark(d);
    retry_at(w, w->link_hold.until_us);
}

static void drop_session(struct worker *w)
{
    struct exec_port *x = w->d->port.exec;

    if (w->session)
        x->close(x, w->session);
    w->session = NULL;
}

void session_close(struct worker *w, const char *why)
{
    struct err err;

    if (!w->session)
        return;
    err_set(&err, ERR_TRANSIENT, "%s", why);
    drop_session(w);
    if (w->link != LINK_DOWN)
        down(w, &err, 0);
}

static void on_broken(void *arg, const struct err *why)
{
    struct worker *w = arg;

    if (w->dead)
        return;
    log_failure(w->d->lg, LOG_DEBUG, why, "session broke", "Instance", w->id,
                NULL);
    /* The port still uses it; it is closed before the next connect. */
    down(w, why, 0);
}

static void approve(struct worker *w)
{
    struct exec_port *x = w->d->port.exec;
    struct err err;

    if (x->approve(x, w->session, w->offered, &err) == -1) {
        drop_session(w);
        down(w, &err, WRONG_KEY_US);
        return;
    }
    if (w->pinned[0] == '\0') {
        mem_set_str(&w->pinned, w->offered);
        pool_record(w);
    }
    w->link = LINK_UP;
    w->link_lost_us = 0;
    holdoff_clear(&w->link_hold);
    stats_connected(w);
    worker_alive(w);
    sched_mark(w->d);
    boot_go(w);
}

static void distrust(struct worker *w, const char *why)
{
    struct err err;

    err_set(&err, ERR_AUTH, "%s", why);
    worker_log(w, LOG_ERROR, "host key is not trusted", why);
    drop_session(w);
    down(w, &err, WRONG_KEY_US);
}

static void trust(struct worker *w);

/* The answer to a question about an earlier session says nothing about the key
 * of this one. */
static bool answer_is_for_this(struct worker *w)
{
    bool yes = w->asked_no == w->session_no;

    w->asked_no = 0;
    return yes;
}

static void on_verified(void *arg, const struct op_result *r)
{
    struct worker *w = arg;

    bool this_one = answer_is_for_this(w);

    core_op_end(w->d);
    if (worker_unref(w) || w->link != LINK_TRUSTING)
        return;
    if (!this_one) {
        trust(w);
    } else if (r->outcome == OP_DONE) {
        approve(w);
    } else if (r->err.class == ERR_UNSUPPORTED) {
        w->no_verify = true;
        trust(w);
    } else if (r->outcome == OP_REFUSED && r->err.class == ERR_AUTH) {
        distrust(w, r->err.text);
    } else {
        drop_session(w);
        down(w, &r->err, 0);
    }
}

static void on_identity(void *arg, const struct exec_result *res)
{
    struct worker *w = arg;

    bool this_one = answer_is_for_this(w);

    core_op_end(w->d);
    w->channels--;
    if (worker_unref(w) || w->link != LINK_TRUSTING)
        return;
    if (!this_one) {
        trust(w);
    } else if (res->r.outcome != OP_DONE) {
        drop_session(w);
        down(w, &res->r.err, 0);
    } else if (res->code != 0) {
        /* Not written yet: the init command is still to come. */
        struct err err;

        err_set(&err, ERR_TRANSIENT, "the instance secret cannot be read");
        drop_session(w);
        down(w, &err, 0);
    } else if (hostkey_secret_matches(w->secret, res->out, res->out_len)) {
        approve(w);
    } else {
        distrust(w, "the machine does not know the instance secret");
    }
}

static void read_identity(struct worker *w)
{
    struct dispatch *d = w->d;
    CLEANUP(buf_fini) struct buf cmd;
    struct exec_req req = {.deadline_ms = d->cfg->exec_deadline_ms};

    buf_init(&cmd, RUNNER_CMD_MAX);
    runner_cmd_identity(worker_command_user(w), &cmd);
    req.command = cmd.data;
    w->asked_no = w->session_no;
    w->channels++;
    worker_ref(w);
    core_op_begin(d);
    d->port.exec->exec(d->port.exec, w->session, &req, on_identity, w);
}

static void ask_driver(struct worker *w)
{
    struct cloud_port *c = w->b->cloud;

    w->asked_no = w->session_no;
    worker_ref(w);
    core_op_begin(w->d);
    c->verify_host_key(c, w->id, w->offered, w->d->cfg->cloud_deadline_ms,
                       on_verified, w);
}

static void trust(struct worker *w)
{
    struct hostkey_facts f = {
        .offered = w->offered,
        .pinned = w->pinned,
        .listed = w->listed_key,
        .secret = w->secret,
        .can_verify = (w->b->cloud->caps & CLOUD_CAP_VERIFY_KEY) &&
                      !w->no_verify,
    };

    if (w->asked_no != 0)
        return; /* its end comes back here */
    switch (hostkey_step(&f)) {
    case HOSTKEY_APPROVE:
        approve(w);
        break;
    case HOSTKEY_WRONG:
        distrust(w, "it offers another host key than the known one");
        break;
    case HOSTKEY_ASK:
        ask_driver(w);
        break;
    case HOSTKEY_READ:
        read_identity(w);
        break;
    case HOSTKEY_NONE:
        distrust(w, "nothing tells which host key is right");
        break;
    }
}

static void on_connected(void *arg, const struct exec_connect_result *res)
{
    struct worker *w = arg;
    struct exec_port *x = w->d->port.exec;

    core_op_end(w->d);
    w->connecting = false;
    if (worker_unref(w)) {
        if (res->r.outcome == OP_DONE)
            x->close(x, res->session);
        return;
    }
    if (res->r.outcome != OP_DONE) {
        down(w, &res->r.err, 0);
        return;
    }
    w->session = res->session;
    w->session_no++;
    mem_set_str(&w->offered, res->host_key);
    if (!wanted(w)) {
        session_close(w, "not wanted any more");
        return;
    }
    w->link = LINK_TRUSTING;
    trust(w);
}

void session_want(struct worker *w)
{
    struct dispatch *d = w->d;
    struct exec_target t = {
        .label = w->id,
        .address = w->address,
        .port = w->port,
        .user = worker_user(w),
        .deadline_ms = d->cfg->connect_deadline_ms,
    };
    int64_t now = core_now(d), next = 0;

    if (w->link != LINK_DOWN || w->connecting || !wanted(w))
        return;
    if (now < w->link_hold.until_us) {
        retry_at(w, w->link_hold.until_us);
        return;
    }
    if (!pace_take(&d->pool->probes, now, &next)) {
        retry_at(w, next);
        return;
    }
    drop_session(w); /* a broken one */
    w->link = LINK_CONNECTING;
    w->connecting = true;
    worker_ref(w);
    core_op_begin(d);
    d->port.exec->connect(d->port.exec, &t, on_connected, on_broken, w);
}
