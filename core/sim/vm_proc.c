/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of crunch-run.
 *
 *     start command -> ASKING --(Locked->Running acknowledged)--> RUNNING
 *         refused, TERM, crash: gone          |  payload exits, or is killed
 *                                             v
 *     STALE <--(runner dies)-- RUNNING      ENDING --(final write settled)-->
 * gone |  tree dead v  gone
 *
 * The payload never starts before the acknowledgement. While it runs, the
 * runner writes its log; a refused write means that the attempt is past, and
 * it kills its payload. What the runner writes to the API server is retried
 * while the server is unreachable, up to ten minutes.
 */

#include <inttypes.h>

#include "core/base/text.h"
#include "core/sim/api.h"
#include "core/sim/check.h"
#include "core/sim/cloud.h"
#include "core/sim/vm_impl.h"

enum {
    BEAT_US = 10 * SIM_S,     /* log writes */
    TERM_MAX_US = 10 * SIM_S, /* then KILL */
    KEEP_TRYING_US = 600 * SIM_S
};

static int64_t draw(struct sim_proc *p, int64_t lo_us, int64_t hi_us)
{
    return sim_rng_range(&p->machine->rng, lo_us, hi_us);
}

static struct sim *world(const struct sim_proc *p)
{
    return p->machine->net->w;
}

static void next_in(struct sim_proc *p, int64_t delay_us, sim_fn *fn)
{
    sim_cancel(world(p), p->next);
    p->next = sim_at(world(p), delay_us, fn, p);
}

static void payload_over(struct sim_proc *p)
{
    if (p->phase == SIM_PROC_RUNNING || p->phase == SIM_PROC_STALE) {
        p->ctr->live--;
        sim_point(world(p), SIM_POINT_EXITED);
    }
}

void sim_proc_vanish(struct sim_proc *p)
{
    struct sim_machine *m = p->machine;

    payload_over(p);
    p->ctr->starts.v[p->start].state = SIM_START_OVER;
    sim_cancel(world(p), p->next);
    sim_cancel(world(p), p->beat);
    sim_cancel(world(p), p->death);
    for (size_t i = 0; i < m->procs.n; i++) {
        if (m->procs.v[i] == p) {
            VEC_REMOVE(&m->procs, i);
            break;
        }
    }
    free(p);
}

/* The lock is free. */
static void proc_end(struct sim_proc *p, const char *why)
{
    struct sim_machine *m = p->machine;

    sim_trace(world(p), "runner of %s on %s ends: %s", p->uuid, m->vm->id, why);
    sim_watch_event(m, "exit", p);
    sim_proc_vanish(p);
}

/* --- the end of a payload -------------------------------------------- */

/* May a message pass between this machine and the API server, now? */
static bool reachable(const struct sim_proc *p)
{
    return world(p)->now_us >= p->machine->cut_until_us;
}

static void write_final(void *arg)
{
    struct sim_proc *p = arg;
    struct sim *w = world(p);
    enum ctr_state state = p->killed ? CTR_CANCELLED : CTR_COMPLETE;
    enum sim_verdict v = SIM_UNREACHABLE;

    p->next = NULL;
    if (reachable(p) && !sim_fault(w, SIM_FAULT_API_LOST_REQUEST)) {
        v = sim_api_final(w->api, p->token, state, p->ctr->job.exit_code);
        if (v == SIM_ACCEPTED && sim_fault(w, SIM_FAULT_API_LOST_REPLY))
            v = SIM_UNREACHABLE; /* the retry will be refused */
    }
    if (v != SIM_UNREACHABLE)
        proc_end(p, v == SIM_ACCEPTED ? "final state written"
                                      : "final state refused");
    else if (w->now_us > p->give_up_us)
        proc_end(p, "final state given up");
    else
        next_in(p, draw(p, SIM_S, 5 * SIM_S), write_final);
}

static void payload_dead(struct sim_proc *p)
{
    struct sim *w = world(p);

    payload_over(p);
    sim_cancel(w, p->beat);
    sim_cancel(w, p->death);
    p->beat = p->death = NULL;
    if (!p->killed) {
        p->ctr->exited = true;
        p->ctr->exit_code = p->ctr->job.exit_code;
    }
    sim_trace(w, "payload of %s on %s %s", p->uuid, p->machine->vm->id,
              p->killed ? "killed" : "exits");
    p->phase = SIM_PROC_ENDING;
    p->give_up_us = w->now_us + KEEP_TRYING_US;
    next_in(p, draw(p, 2 * SIM_MS, 60 * SIM_MS), write_final);
}

static void on_payload_exit(void *arg)
{
    struct sim_proc *p = arg;

    p->next = NULL;
    payload_dead(p);
}

static void on_killed(void *arg)
{
    struct sim_proc *p = arg;

    p->death = NULL;
    payload_dead(p);
}

void sim_proc_term(struct sim_proc *p)
{
    struct sim *w = world(p);
    int64_t delay;

    if (p->killed || p->phase == SIM_PROC_STALE)
        return;
    sim_trace(w, "runner of %s on %s gets TERM", p->uuid, p->machine->vm->id);
    if (p->phase == SIM_PROC_ASKING) {
        proc_end(p, "TERM before it ran");
        return;
    }
    if (p->phase != SIM_PROC_RUNNING)
        return;
    p->killed = true;
    sim_cancel(w, p->next); /* it will not exit by itself any more */
    p->next = NULL;
    delay = p->ignore_us > 0 ? p->ignore_us : draw(p, 5 * SIM_MS, 300 * SIM_MS);
    if (delay > 2 * (int64_t) TERM_MAX_US)
        p->machine->unkillable = true;
    p->death = sim_at(w, delay, on_killed, p);
}

/* --- the runner dies ------------------------------------------------- */

static void on_tree_dead(void *arg)
{
    struct sim_proc *p = arg;

    p->next = NULL;
    proc_end(p, "stale tree dead");
}

static void on_crash(void *arg)
{
    struct sim_proc *p = arg;
    struct sim *w = world(p);
    int64_t delay = draw(p, 20 * SIM_MS, 2 * SIM_S);

    p->next = NULL;
    sim_cancel(w, p->beat);
    p->beat = NULL;
    sim_trace(w, "runner of %s on %s crashes", p->uuid, p->machine->vm->id);
    p->phase = SIM_PROC_STALE;
    if (sim_fault(w, SIM_FAULT_STALE_LONG)) {
        delay += draw(p, 20 * SIM_S, 120 * (int64_t) SIM_S);
        p->machine->unkillable = true;
    }
    sim_watch_event(p->machine, "stale", p);
    next_in(p, delay, on_tree_dead);
}

/* --- while it runs --------------------------------------------------- */

static void on_beat(void *arg)
{
    struct sim_proc *p = arg;
    struct sim *w = world(p);

    p->beat = sim_at(w, BEAT_US, on_beat, p);
    if (reachable(p) && sim_api_beat(w->api, p->token) == SIM_REFUSED) {
        sim_trace(w, "runner of %s on %s: token refused", p->uuid,
                  p->machine->vm->id);
        sim_proc_term(p);
    }
}

static void draw_fate(struct sim_proc *p)
{
    struct sim *w = world(p);
    const struct sim_job *job = &p->ctr->job;

    p->ignore_us = job->ignore_term_us;
    if (sim_fault(w, SIM_FAULT_TERM_IGNORED))
        p->ignore_us =
            sim_rng_chance(&p->machine->rng, 3000)
                ? draw(p, 60 * (int64_t) SIM_S, 240 * (int64_t) SIM_S)
                : draw(p, 2 * SIM_S, TERM_MAX_US);
    if (job->run_us > 0 && sim_fault(w, SIM_FAULT_RUNNER_CRASH_LATE))
        next_in(p, draw(p, 1, job->run_us), on_crash);
    else
        next_in(p, job->run_us, on_payload_exit);
}

static void payload_start(void *arg)
{
    struct sim_proc *p = arg;
    struct sim *w = world(p);

    p->next = NULL;
    p->phase = SIM_PROC_RUNNING;
    p->ctr->live++;
    p->ctr->payload_starts++;
    sim_trace(w, "payload of %s starts on %s", p->uuid, p->machine->vm->id);
    check_payload_start(w, p);
    p->beat = sim_at(w, BEAT_US, on_beat, p);
    draw_fate(p);
    sim_point(w, SIM_POINT_RUNNING);
}

static void ask(void *arg)
{
    struct sim_proc *p = arg;
    struct sim *w = world(p);
    enum sim_verdict v = SIM_UNREACHABLE;

    p->next = NULL;
    if (reachable(p) && !sim_fault(w, SIM_FAULT_API_LOST_REQUEST)) {
        v = sim_api_running(w->api, p->token);
        if (v == SIM_ACCEPTED && sim_fault(w, SIM_FAULT_API_LOST_REPLY))
            v = SIM_UNREACHABLE;
    }
    if (v == SIM_REFUSED)
        proc_end(p, "Running refused");
    else if (v == SIM_ACCEPTED && sim_fault(w, SIM_FAULT_RUNNER_CRASH_EARLY))
        proc_end(p, "crash between Running and payload");
    else if (v == SIM_ACCEPTED)
        next_in(p, draw(p, SIM_MS, 20 * SIM_MS), payload_start);
    else if (w->now_us > p->give_up_us)
        proc_end(p, "Running given up");
    else
        next_in(p, draw(p, SIM_S, 5 * SIM_S), ask);
}

static void crash_early(void *arg)
{
    struct sim_proc *p = arg;

    p->next = NULL;
    proc_end(p, "crash before Running");
}

int sim_proc_start(struct sim_machine *m, struct sim_ctr *c, const char *token,
                   int64_t attempt, size_t start)
{
    struct sim *w = m->net->w;
    struct sim_proc *p;

    if (sim_machine_proc(m, c->rec.uuid)) {
        c->starts.v[start].state = SIM_START_OVER;
        return 1; /* the lock is held */
    }
    p = MEM_NEW(struct sim_proc);
    p->machine = m;
    p->ctr = c;
    p->attempt = attempt;
    p->start = start;
    p->pid = ++m->next_pid;
    p->give_up_us = w->now_us + KEEP_TRYING_US;
    text_copy(p->uuid, c->rec.uuid, sizeof p->uuid);
    text_copy(p->token, token, sizeof p->token);
    VEC_PUSH(&m->procs, p);
    c->starts.v[start].state = SIM_START_RUNS;
    sim_trace(w, "runner of %s attempt %" PRId64 " starts on %s", p->uuid,
              attempt, m->vm->id);
    sim_watch_event(m, "start", p);
    if (sim_fault(w, SIM_FAULT_RUNNER_CRASH_EARLY))
        next_in(p, draw(p, SIM_MS, 100 * SIM_MS), crash_early);
    else
        next_in(p, draw(p, 3 * SIM_MS, 80 * SIM_MS), ask);
    return 0;
}
