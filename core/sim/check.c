/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants, checked as things happen.
 *
 * What our actions may cause is judged here by what is true in the world, not
 * by what the dispatcher knows: an unlock is right only when no payload of
 * that container can be alive or come alive. Where the dispatcher may only act
 * after long silence, the measure is the silence that it really heard, with
 * some tolerance for what was on its way.
 *
 * Called from the commits of api.c, cloud_port.c, net.c and vm_proc.c, and by
 * the owner of the world for the invariants that hold over time.
 */

#include "core/sim/check.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/sim/api.h"
#include "core/sim/cloud.h"
#include "core/sim/journal.h"
#include "core/sim/vm.h"

/* What a hold set in motion may arrive so long after it ended. */
enum { JUST_NOW_US = 200 * SIM_S };

/* Its user does not want it, or did not until a moment ago. */
static bool unwanted(const struct sim *w, const struct sim_ctr *c)
{
    return c->rec.priority == 0 ||
           (c->zero_us >= 0 && sim_heard_us(w) - c->zero_us < JUST_NOW_US);
}

/* --- payloads -------------------------------------------------------- */

static void check_overcommit(struct sim *w, const struct sim_machine *m)
{
    int64_t vcpus = 0, ram = 0, scratch = 0;

    for (size_t i = 0; i < m->procs.n; i++) {
        const struct ctr *c = &m->procs.v[i]->ctr->rec;
        enum sim_phase phase = m->procs.v[i]->phase;

        if (phase != SIM_PROC_RUNNING && phase != SIM_PROC_STALE)
            continue;
        vcpus += c->vcpus;
        ram += c->ram;
        scratch += c->tmp_capacity;
    }
    if (m->vcpus > 0 &&
        (vcpus > m->vcpus || ram > m->ram || scratch > m->scratch))
        sim_fail(w,
                 "%s is over-committed: %" PRId64 " VCPUs of %" PRId64
                 ", %" PRId64 " bytes of %" PRId64,
                 m->vm->id, vcpus, m->vcpus, ram, m->ram);
}

void check_payload_start(struct sim *w, const struct sim_proc *p)
{
    const struct sim_ctr *c = p->ctr;

    if (c->live > 1)
        sim_fail(w, "%s has %u live payloads", c->rec.uuid, c->live);
    if (c->payload_starts > 1)
        sim_fail(w, "the payload of %s was started %u times", c->rec.uuid,
                 c->payload_starts);
    check_overcommit(w, p->machine);
}

void check_final(struct sim *w, const struct sim_ctr *c, enum ctr_state state)
{
    if (state == CTR_COMPLETE && (!c->exited || c->live > 0))
        sim_fail(w, "%s is Complete, but its payload did not exit",
                 c->rec.uuid);
    if (state == CTR_CANCELLED && !unwanted(w, c) && c->zero_us < 0 &&
        !c->operator_kill)
        sim_fail(w, "%s was killed without a cause", c->rec.uuid);
}

/* --- release --------------------------------------------------------- */

/* Can a payload of the present attempt be alive, or come alive? */
static bool may_live(const struct sim_ctr *c)
{
    bool running = c->rec.state == CTR_RUNNING;

    if (c->live > 0)
        return true;
    for (size_t i = 0; i < c->starts.n; i++) {
        const struct sim_start *s = &c->starts.v[i];

        if (s->attempt != c->rec.attempt)
            continue;
        if (s->state == SIM_START_RUNS && (running || !c->revoked))
            return true;
        if (s->state == SIM_START_SENT && !c->revoked)
            return true;
    }
    return false;
}

void check_release(struct sim *w, const struct sim_ctr *c, const char *what)
{
    if (c->final_us == 0 && may_live(c))
        sim_fail(w, "%s of %s (%s, attempt %" PRId64 "%s), which %s", what,
                 c->rec.uuid, ctr_state_name(c->rec.state), c->rec.attempt,
                 c->revoked ? " revoked" : "",
                 c->live > 0 ? "has a live payload"
                             : "may still get a live payload");
}

void check_unlock_cost(struct sim *w, const struct sim_ctr *c)
{
    if (!unwanted(w, c) && !c->locked_started)
        sim_fail(w,
                 "%s unlocked (lock_count %d) although nothing was "
                 "started since it was locked",
                 c->rec.uuid, (int) c->rec.lock_count);
}

void check_cancel_cause(struct sim *w, const struct sim_ctr *c)
{
    if (unwanted(w, c) || c->operator_kill)
        return;
    if (c->rec.state == CTR_RUNNING)
        return; /* its process is gone: check_release */
    if (!*c->error || !c->no_retry)
        sim_fail(w, "%s (%s) cancelled without a cause", c->rec.uuid,
                 ctr_state_name(c->rec.state));
}

void check_revoke_call(struct sim *w, const struct sim_ctr *c)
{
    /* One that it was not told of is out of its sight. */
    if (c->live == 0 || c->rec.state != CTR_RUNNING || unwanted(w, c) ||
        c->operator_kill || c->told_gen != w->gen)
        return;
    for (size_t i = 0; i < c->starts.n; i++) {
        const struct sim_start *s = &c->starts.v[i];

        if (s->state == SIM_START_RUNS && s->attempt == c->rec.attempt &&
            !sim_machine_lost(s->machine) && !sim_vm_going(s->machine->vm) &&
            !s->machine->unkillable && !s->machine->operator_kill)
            sim_fail(w,
                     "attempt of %s revoked under its payload on %s, "
                     "which is healthy",
                     c->rec.uuid, s->machine->vm->id);
    }
}

/* --- intents --------------------------------------------------------- */

void check_create_call(struct sim *w, const struct sim_cloud *c,
                       const struct cloud_create_req *req)
{
    const struct journal_rec *rec =
        sim_journal_heard(w->journal, JOURNAL_CREATE, req->token);

    if (!c->opened)
        sim_fail(w, "create at %s before it was opened", c->name);
    if (!rec)
        sim_fail(w, "create %s without a durable intent", req->token);
    else if (rec->count < req->count || strcmp(rec->backend, c->name) != 0)
        sim_fail(w, "create %s differs from its intent", req->token);
}

void check_start_call(struct sim *w, const struct sim_ctr *c,
                      const struct sim_machine *m, int64_t attempt)
{
    const struct journal_rec *rec;
    char key[64];

    snprintf(key, sizeof key, "%s/%" PRId64, c->rec.uuid, attempt);
    rec = sim_journal_heard(w->journal, JOURNAL_START, key);
    if (!rec)
        sim_fail(w, "start of %s without a durable intent", key);
    else if (strcmp(rec->instance, m->vm->id) != 0)
        sim_fail(w, "start of %s on %s, but its intent says %s", key, m->vm->id,
                 rec->instance);
    for (size_t i = 0; i + 1 < c->starts.n; i++)
        if (c->starts.v[i].attempt == attempt)
            sim_fail(w, "attempt %s is used for a second start", key);
}

/* --- instances ------------------------------------------------------- */

void check_token(struct sim *w, const struct sim_cloud *c, const char *token,
                 int32_t count)
{
    int32_t n = 0;

    for (size_t i = 0; i < c->vms.n; i++)
        n += sim_vm_exists(c->vms.v[i]) &&
             strcmp(c->vms.v[i]->token, token) == 0;
    if (n > count)
        sim_fail(w, "%d instances for token %s of a batch of %d", (int) n,
                 token, (int) count);
}

/* A process that a destroy would end before its time. */
static const struct sim_proc *find_wanted(const struct sim *w,
                                          const struct sim_machine *m)
{
    for (size_t i = 0; i < m->procs.n; i++) {
        const struct sim_proc *p = m->procs.v[i];

        if (!unwanted(w, p->ctr) && p->ctr->final_us == 0 &&
            p->attempt == p->ctr->rec.attempt && !p->ctr->revoked &&
            !p->ctr->operator_kill && p->phase != SIM_PROC_STALE)
            return p;
    }
    return NULL;
}

void check_destroy(struct sim *w, const struct sim_vm *vm)
{
    const struct sim_machine *m = vm->machine;
    const struct sim_proc *p = find_wanted(w, m);

    if (vm->foreign)
        sim_fail(w, "foreign instance %s destroyed", vm->id);
    if (!p || sim_vm_going(vm) || sim_machine_lost(m) || m->unkillable ||
        m->operator_kill)
        return;
    sim_fail(w, "%s destroyed, which is healthy and runs %s", vm->id, p->uuid);
}

static bool held(const struct sim_vm *vm)
{
    for (size_t i = 0; i < vm->tags.n; i++)
        if (strstr(vm->tags.v[i].key, "IdleBehavior") &&
            strcmp(vm->tags.v[i].value, "hold") == 0)
            return true;
    return false;
}

void check_idle(struct sim *w, int64_t grace_us)
{
    int64_t since = w->api->unwanted_since_us;

    if (since < w->core_heard_us)
        since = w->core_heard_us;
    if (w->api->wanted > 0 || sim_heard_us(w) - since < grace_us)
        return;
    for (unsigned k = 0; k < w->n_clouds; k++) {
        const struct sim_cloud *c = w->clouds[k];

        for (size_t i = 0; i < c->vms.n; i++) {
            const struct sim_vm *vm = c->vms.v[i];

            if (!vm->foreign && sim_vm_exists(vm) && !held(vm) &&
                vm->stop_us == INT64_MAX &&
                w->now_us - vm->created_us > grace_us)
                sim_fail(w, "%s is up, but nothing has been wanted for %d s",
                         vm->id, (int) ((sim_heard_us(w) - since) / SIM_S));
        }
    }
}

void check_end(struct sim *w)
{
    for (size_t i = 0; i < w->api->ctrs.n; i++) {
        const struct sim_ctr *c = w->api->ctrs.v[i];

        if (c->final_us == 0 && c->rec.priority > 0)
            sim_fail(w, "%s is still %s at the end", c->rec.uuid,
                     ctr_state_name(c->rec.state));
        if (c->live > 0)
            sim_fail(w, "%s has a live payload at the end", c->rec.uuid);
    }
    for (unsigned k = 0; k < w->n_clouds; k++) {
        const struct sim_cloud *c = w->clouds[k];

        for (size_t i = 0; i < c->vms.n; i++) {
            const struct sim_vm *vm = c->vms.v[i];

            if (!vm->foreign && sim_vm_exists(vm) && !held(vm))
                sim_fail(w, "%s is left at the end", vm->id);
            if (vm->foreign && vm->stop_us != INT64_MAX)
                sim_fail(w, "foreign instance %s was ended", vm->id);
        }
    }
}
