/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While the payload lives.
 *
 *   running --(signal, max_run_time)--> stopping --(grace over)--> killed
 *      |                                   |                         |
 *      +-------- the command ended --------+-------------------------+--> out
 *
 * One epoll descriptor is readable whenever something must be done at once: a
 * signal, a message of init, its death, a deadline (timerfd). It is also what
 * cuts API calls short, so a server that does not answer never delays a kill.
 * What may wait, the log and the sign of life, is done once a second.
 *
 * The server's refusal of our token, or a state other than Running, means that
 * the container is no longer ours: the payload is killed at once and nothing
 * more is written.
 */
#include "core/runner/run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/runner/api.h"
#include "core/runner/logs.h"

enum {
    TICK_US = 1000 * 1000,
    LIFE_US = 15 * 1000 * 1000,     /* silence after which we ask */
    TICK_BUDGET = 4 * 1024 * 1024,  /* bytes of each log per tick */
    STATE_MAX = 64 * 1024,
};

/* 0 = disarm. */
static void arm(struct run *r, int64_t at_us)
{
    struct itimerspec t = {
        .it_value = {.tv_sec = at_us / 1000000,
                     .tv_nsec = at_us % 1000000 * 1000},
    };

    timerfd_settime(r->timerfd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void kill_now(struct run *r, const char *why)
{
    if (r->killed)
        return;
    logs_printf(r->stage.logs, "killing all processes: %s", why);
    r->killed = true;
    payload_kill(&r->payload);
}

static void begin_stop(struct run *r, enum run_stop why)
{
    if (r->stop != RUN_NOT_STOPPED)
        return;
    r->stop = why;
    logs_printf(r->stage.logs,
                "sending SIGTERM to all processes; SIGKILL in %d s",
                RUN_GRACE_MS / 1000);
    payload_term(&r->payload);
    arm(r, clock_mono_us() + RUN_GRACE_MS * INT64_C(1000));
}

static void on_signal(struct run *r)
{
    struct signalfd_siginfo si;

    while (read(r->sigfd, &si, sizeof si) == (ssize_t) sizeof si) {
        if (r->stop == RUN_NOT_STOPPED)
            logs_printf(r->stage.logs, "received signal %u: cancelling",
                        si.ssi_signo);
        begin_stop(r, RUN_SIGNAL);
    }
}

static void on_timer(struct run *r)
{
    uint64_t drop;

    if (read(r->timerfd, &drop, sizeof drop) < 0)
        return;
    if (r->stop != RUN_NOT_STOPPED) {
        kill_now(r, "the time after SIGTERM is over");
        return;
    }
    logs_printf(r->stage.logs, "max_run_time of %lld s exceeded",
                (long long) r->job.max_run_time_s);
    begin_stop(r, RUN_MAX_RUN_TIME);
}

static void on_message(struct run *r)
{
    struct payload_msg m;

    for (;;) {
        switch (payload_read(&r->payload, 0, &m)) {
        case PAYLOAD_NOT_RUN:
            r->not_run = true;
            report_error(&r->report, "%s", m.text);
            logs_printf(r->stage.logs, "%s", m.text);
            break;
        case PAYLOAD_FAILED:
            report_error(&r->report, "%s", m.text);
            logs_printf(r->stage.logs, "%s", m.text);
            kill_now(r, "it could not be started");
            break;
        case PAYLOAD_EXITED:
            r->exited = true;
            r->status = m.value;
            return;
        default:
            return;
        }
    }
}

/* The answer to a call: is the container still ours? */
static void judge(struct run *r, const struct err *err)
{
    if (err->class == ERR_AUTH || err->class == ERR_NOT_FOUND) {
        r->revoked = true;
        kill_now(r, err->text);
    } else if (err->class != ERR_CANCELLED && !r->api_down) {
        logs_printf(r->stage.logs, "API server: %s", err->text);
        r->api_down = true; /* once, not every second */
    }
}

static void ask_state(struct run *r)
{
    CLEANUP(buf_fini) struct buf text;
    CLEANUP(jsn_cleanup) struct jsn *j = NULL;
    const char *state = NULL;
    struct err err = {0};

    buf_init(&text, STATE_MAX);
    if (api_get_state(r->api, &text, &err) < 0) {
        judge(r, &err);
        return;
    }
    j = jsn_parse(text.data, text.len, NULL);
    if (j && jsn_str(j, "state", &state, NULL) == 0 &&
        strcmp(state, "Running") != 0) {
        r->revoked = true;
        kill_now(r, "the container is not Running any more");
    }
}

static void tick(struct run *r)
{
    struct err err = {0};

    if (r->revoked)
        return;
    if (logs_send(r->stage.logs, r->api, TICK_BUDGET, &err) < 0) {
        judge(r, &err);
        return;
    }
    r->api_down = false;
    if (clock_mono_us() - api_last_ok_us(r->api) > LIFE_US)
        ask_state(r);
}

static int watch(struct run *r, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(r->ep, EPOLL_CTL_ADD, fd, &ev);
}

/* True when the tree's first process has died without a last message. */
static bool handle(struct run *r, const struct epoll_event *ev)
{
    int fd = ev->data.fd;

    if (fd == r->sigfd)
        on_signal(r);
    else if (fd == r->timerfd)
        on_timer(r);
    else
        on_message(r);
    /* Init has closed its end, but all that it was pid 1 of must die before
     * it is dead: an end of file would wake us in a circle until then. */
    if (fd == r->payload.ctl_fd && ev->events & EPOLLHUP)
        epoll_ctl(r->ep, EPOLL_CTL_DEL, fd, NULL);
    return fd == r->payload.pidfd && !r->exited;
}

static void loop(struct run *r)
{
    int64_t next = clock_mono_us() + TICK_US;
    bool died = false;

    while (!r->exited && !died) {
        int64_t left = next - clock_mono_us();
        struct epoll_event ev[4];
        int n = epoll_wait(r->ep, ev, 4,
                           left > 0 ? (int) ((left + 999) / 1000) : 0);

        for (int i = 0; i < n; i++)
            died |= handle(r, &ev[i]);
        if (n <= 0 && clock_mono_us() >= next) {
            tick(r);
            next = clock_mono_us() + TICK_US;
        }
    }
}

void supervise(struct run *r)
{
    /* A signal that came before the start: then there is none. */
    on_signal(r);
    if (r->stop == RUN_NOT_STOPPED) {
        if (r->job.max_run_time_s)
            arm(r, clock_mono_us() + r->job.max_run_time_s * 1000000);
        logs_printf(r->stage.logs, "starting the command");
        payload_go(&r->payload);
        if (watch(r, r->timerfd) == 0 && watch(r, r->payload.ctl_fd) == 0 &&
            watch(r, r->payload.pidfd) == 0)
            loop(r);
    }
}
