/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of an instance: up, silent or dead.
 *
 * Two kinds of silence: hung (sshd and its sessions are stopped, the runner
 * lives and reaches the API server) and cut (no packet in or out). Whatever
 * arrives meanwhile waits for the thaw and then happens, even when its sender
 * has long given up. A halt ends every process at once.
 */

#include "core/sim/vm.h"

#include <stdio.h>

#include "core/base/text.h"
#include "core/sim/api.h"
#include "core/sim/cloud.h"
#include "core/sim/vm_impl.h"

bool sim_machine_up(const struct sim_machine *m)
{
    return !m->halted && m->net->w->now_us >= m->boot_us;
}

int64_t sim_machine_thaw_us(const struct sim_machine *m)
{
    return m->hung_until_us > m->cut_until_us ? m->hung_until_us
                                              : m->cut_until_us;
}

bool sim_machine_silent(const struct sim_machine *m)
{
    return m->net->w->now_us < sim_machine_thaw_us(m);
}

struct sim_proc *sim_machine_proc(struct sim_machine *m, const char *uuid)
{
    for (size_t i = 0; i < m->procs.n; i++)
        if (strcmp(m->procs.v[i]->uuid, uuid) == 0)
            return m->procs.v[i];
    return NULL;
}

/* How long nothing good was heard by the present dispatcher. */
static int64_t silence(const struct sim_machine *m)
{
    const struct sim *w = m->net->w;
    int64_t since = m->contact_us;

    if (since < w->core_heard_us)
        since = w->core_heard_us;
    return sim_heard_us(w) - since;
}

bool sim_machine_lost(const struct sim_machine *m)
{
    const struct sim *w = m->net->w;

    return w->now_us < m->excused_us || silence(m) >= w->silence_us;
}

void sim_machine_contact(struct sim_machine *m)
{
    struct sim *w = m->net->w;

    if (silence(m) >= w->silence_us)
        m->excused_us = w->now_us + 60 * SIM_S;
    m->contact_us = sim_heard_us(w);
}

static void on_timed_out(void *arg)
{
    struct sim_machine *m = arg;

    sim_net_break_all(m->net, m, "connection timed out");
}

void sim_machine_told(struct sim_machine *m, const char *text)
{
    for (size_t i = 0; i < m->procs.n; i++)
        if (strstr(text, m->procs.v[i]->uuid))
            m->procs.v[i]->ctr->told_gen = m->net->w->gen;
}

void sim_machine_halt(struct sim_machine *m)
{
    if (m->halted)
        return;
    m->halted = true;
    sim_trace(m->net->w, "machine %s halts with %zu processes", m->vm->id,
              m->procs.n);
    while (m->procs.n > 0)
        sim_proc_vanish(m->procs.v[0]);
    sim_at(m->net->w, sim_rng_range(&m->rng, 0, 30 * SIM_S), on_timed_out, m);
}

/* What was accepted, and not executed yet, never will be. */
static void drop_starts(struct sim_machine *m)
{
    const struct sim_api *a = m->net->w->api;

    for (size_t i = 0; i < a->ctrs.n; i++) {
        struct sim_ctr *c = a->ctrs.v[i];

        for (size_t k = 0; k < c->starts.n; k++)
            if (c->starts.v[k].machine == m &&
                c->starts.v[k].state == SIM_START_SENT)
                c->starts.v[k].state = SIM_START_OVER;
    }
}

void sim_machine_reboot(struct sim_machine *m)
{
    struct sim *w = m->net->w;

    if (!sim_machine_up(m))
        return;
    sim_fault_note(w, SIM_FAULT_VM_REBOOT);
    sim_trace(w, "machine %s reboots with %zu processes", m->vm->id,
              m->procs.n);
    while (m->procs.n > 0)
        sim_proc_vanish(m->procs.v[0]);
    drop_starts(m);
    while (m->files.n > 0)
        free(m->files.v[--m->files.n].path);
    m->boots++;
    m->hung_until_us = m->cut_until_us = w->now_us;
    m->boot_us = w->now_us + sim_rng_range(&m->rng, 5 * SIM_S, 30 * SIM_S);
    m->ready_us = m->boot_us;
    sim_net_break_all(m->net, m, "connection reset");
}

void sim_machine_hang(struct sim_machine *m, int64_t for_us)
{
    sim_trace(m->net->w, "machine %s hangs for %d s", m->vm->id,
              (int) (for_us / SIM_S));
    if (m->hung_until_us < m->net->w->now_us + for_us)
        m->hung_until_us = m->net->w->now_us + for_us;
}

void sim_machine_cut(struct sim_machine *m, int64_t for_us)
{
    sim_fault_note(m->net->w, SIM_FAULT_CUT);
    sim_trace(m->net->w, "machine %s is cut off for %d s", m->vm->id,
              (int) (for_us / SIM_S));
    if (m->cut_until_us < m->net->w->now_us + for_us)
        m->cut_until_us = m->net->w->now_us + for_us;
}

void sim_machine_break(struct sim_machine *m)
{
    if (m->halted || m->broken)
        return;
    sim_fault_note(m->net->w, SIM_FAULT_NODE_BROKEN);
    sim_trace(m->net->w, "machine %s marks itself broken", m->vm->id);
    m->broken = true;
    sim_watch_event(m, "broken", NULL);
}

struct sim_machine *sim_machine_create(struct sim_net *n, struct sim_vm *vm,
                                       int64_t boot_us)
{
    struct sim_machine *m = MEM_NEW(struct sim_machine);

    m->net = n;
    m->vm = vm;
    m->boot_us = boot_us;
    m->boots = 1;
    sim_rng_init(&m->rng, n->w->seed, vm->id);
    m->ready_us = boot_us == INT64_MAX
                      ? boot_us
                      : boot_us + sim_rng_range(&m->rng, 0, 5 * SIM_S);
    m->contact_us = sim_heard_us(n->w);
    m->next_pid = 100;
    text_copy(m->user, n->login_user, sizeof m->user);
    snprintf(m->host_key, sizeof m->host_key, "ssh-ed25519 AAAA%s", vm->id);
    VEC_PUSH(&n->machines, m);
    return m;
}

void sim_machine_destroy(struct sim_machine *m)
{
    for (size_t i = 0; i < m->procs.n; i++)
        free(m->procs.v[i]);
    VEC_FINI(&m->procs);
    VEC_FINI(&m->streams);
    for (size_t i = 0; i < m->files.n; i++)
        free(m->files.v[i].path);
    VEC_FINI(&m->files);
    free(m);
}
