/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch streams: `<runner> --watch` on an instance, line by line.
 *
 * Lines queue up in order and are pumped one per event; while the machine is
 * silent they wait for the thaw. A stream ends when its session does, when it
 * is cancelled, when the machine halts, or by itself (a fault). The op counts
 * as not effected while it is open, so that a cancel ends it as cancelled.
 */

#include <inttypes.h>

#include "core/sim/cloud.h"
#include "core/sim/vm_impl.h"

static void stream_fire(struct op *op, const struct op_result *r)
{
    struct sim_stream *s = (struct sim_stream *) op;

    sim_trace(op->w, "watch of %s ends: %s", s->machine->vm->id,
              r->outcome == OP_DONE ? "by itself" : r->err.text);
    sim_stream_detach(s);
    s->end(s->arg, r);
}

static void unregister(struct sim_stream *s)
{
    struct sim_machine *m = s->machine;

    for (size_t i = 0; i < m->streams.n; i++) {
        if (m->streams.v[i] == s) {
            VEC_REMOVE(&m->streams, i);
            return;
        }
    }
}

static void drop_event(struct sim_stream *s, struct sim_event **e)
{
    if (!*e)
        return;
    sim_cancel(s->op.w, *e);
    *e = NULL;
    s->op.events--; /* never the last: the caller holds it */
}

void sim_stream_detach(struct sim_stream *s)
{
    op_hold(&s->op);
    if (s->open)
        unregister(s);
    s->open = false;
    drop_event(s, &s->pump);
    drop_event(s, &s->beat);
    op_drop(&s->op);
}

static void stream_fini(struct op *op)
{
    struct sim_stream *s = (struct sim_stream *) op;

    sim_session_forget(s->session, op);
    for (size_t i = 0; i < s->lines.n; i++)
        free(s->lines.v[i]);
    VEC_FINI(&s->lines);
    free(s->command);
}

bool sim_op_is_stream(const struct op *op)
{
    return op->fire == stream_fire;
}

/* --- lines ----------------------------------------------------------- */

static void pump(void *arg);

static void pump_in(struct sim_stream *s, int64_t delay_us)
{
    op_hold(&s->op);
    s->pump = sim_at(s->op.w, delay_us, pump, s);
}

static int64_t line_delay(struct sim_stream *s)
{
    return sim_rng_range(&s->machine->rng, 500, 5000);
}

static void pump(void *arg)
{
    struct sim_stream *s = arg;
    struct sim_machine *m = s->machine;
    char *line;

    s->pump = NULL;
    if (!s->open || s->lines.n == 0) {
        op_drop(&s->op);
        return;
    }
    if (sim_machine_silent(m)) {
        pump_in(s, sim_machine_thaw_us(m) - s->op.w->now_us + line_delay(s));
        op_drop(&s->op);
        return;
    }
    if (!sim_awake(s->op.w)) {
        pump_in(s, sim_wake_in(s->op.w) + line_delay(s));
        op_drop(&s->op);
        return;
    }
    line = s->lines.v[0];
    VEC_REMOVE(&s->lines, 0);
    if (op_alive(&s->op)) {
        sim_machine_contact(m);
        sim_machine_told(m, line);
        sim_trace(s->op.w, "watch line %s", line);
        s->on_line(s->arg, line, strlen(line));
    }
    free(line);
    if (s->open && s->lines.n > 0 && !s->pump)
        pump_in(s, line_delay(s));
    op_drop(&s->op);
}

static void push_line(struct sim_stream *s, char *line)
{
    VEC_PUSH(&s->lines, line);
    if (!s->pump)
        pump_in(s, line_delay(s));
}

static void push_proc(struct sim_stream *s, const char *event,
                      const struct sim_proc *p)
{
    push_line(s, mem_printf("{\"event\":\"%s\",\"uuid\":\"%s\","
                            "\"attempt\":%" PRId64 ",\"pid\":%d}",
                            event, p->uuid, p->attempt, p->pid));
}

void sim_watch_event(struct sim_machine *m, const char *event,
                     const struct sim_proc *p)
{
    for (size_t i = 0; i < m->streams.n; i++) {
        if (p)
            push_proc(m->streams.v[i], event, p);
        else
            push_line(m->streams.v[i], mem_printf("{\"event\":\"%s\"}", event));
    }
}

static void on_beat(void *arg)
{
    struct sim_stream *s = arg;

    s->beat = NULL;
    if (s->open) {
        push_line(s, mem_strdup("{\"event\":\"beat\"}"));
        op_hold(&s->op);
        s->beat = sim_at(s->op.w, 15 * SIM_S, on_beat, s);
    }
    op_drop(&s->op);
}

/* --- life ------------------------------------------------------------ */

void sim_machine_watch(struct sim_machine *m, struct sim_stream *s)
{
    s->open = true;
    s->op.effected = false;
    VEC_PUSH(&m->streams, s);
    push_line(s, mem_printf("{\"event\":\"hello\",\"v\":1,"
                            "\"boot\":\"%s/%d\"}",
                            m->vm->id, m->boots));
    for (size_t i = 0; i < m->procs.n; i++)
        push_proc(s, m->procs.v[i]->phase == SIM_PROC_STALE ? "stale" : "run",
                  m->procs.v[i]);
    push_line(s, mem_strdup("{\"event\":\"sync\"}"));
    if (m->broken)
        push_line(s, mem_strdup("{\"event\":\"broken\"}"));
    op_hold(&s->op);
    s->beat = sim_at(s->op.w, 15 * SIM_S, on_beat, s);
}

static void stream_effect(struct op *op)
{
    struct sim_stream *s = (struct sim_stream *) op;
    struct sim_machine *m = s->machine;
    struct sim_command cmd;

    if (m->halted || s->session->over || !op_alive(op))
        return;
    if (sim_machine_silent(m)) {
        op->effected = false;
        op_effect_in(op, sim_machine_thaw_us(m) - op->w->now_us + 1000);
        return;
    }
    sim_command_parse(m->net, s->command, &cmd);
    if (cmd.kind != SIM_CMD_WATCH || m->net->no_watch ||
        !sim_machine_has_runner(m, cmd.path)) {
        op_done_in(op, line_delay(s));
        return;
    }
    sim_machine_watch(m, s);
}

struct op *sim_stream_create(struct exec_session *session, const char *command,
                             void (*on_line)(void *arg, const char *line,
                                             size_t n),
                             void (*end)(void *arg, const struct op_result *r),
                             void *arg)
{
    struct sim_machine *m = session->machine;
    struct sim *w = session->net->w;
    struct sim_stream *s = op_new(w, sizeof *s, "watch");

    s->session = session;
    s->machine = m;
    s->command = mem_strdup(command);
    s->on_line = on_line;
    s->end = end;
    s->arg = arg;
    s->op.writes = true;
    s->op.effect = stream_effect;
    s->op.fire = stream_fire;
    s->op.fini = stream_fini;
    VEC_PUSH(&session->ops, &s->op);
    if (session->over && !w->crashing)
        op_fail_in(&s->op, 0, OP_REFUSED, ERR_TRANSIENT, 0,
                   "session is broken");
    else
        op_effect_in(&s->op, w->crashing ? 0 : line_delay(s));
    return &s->op;
}

void sim_watch_close_all(struct sim_machine *m)
{
    while (m->streams.n > 0) {
        struct sim_stream *s = m->streams.v[0];

        op_done_in(&s->op, line_delay(s));
        sim_stream_detach(s);
    }
}
