/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cloud of the world: what exists, and what it cost.
 *
 * An instance's life is a row of moments (created, listed, running, told to
 * stop, gone); its state at any time follows from them, so that only the halt
 * of its machine needs an event. Calls and their mishaps are in cloud_port.c.
 */

#include "core/sim/cloud_impl.h"

#include <stdio.h>

#include "core/base/text.h"
#include "core/sim/check.h"
#include "core/sim/vm.h"

static const int64_t never = INT64_MAX;

bool sim_vm_exists(const struct sim_vm *vm)
{
    int64_t now = vm->cloud->w->now_us;

    return now >= vm->created_us && now < vm->gone_us;
}

enum cloud_state sim_vm_state(const struct sim_vm *vm)
{
    int64_t now = vm->cloud->w->now_us;

    if (now >= vm->gone_us)
        return CLOUD_GONE;
    if (now >= vm->stop_us)
        return CLOUD_STOPPING;
    if (now >= vm->failed_us)
        return CLOUD_FAILED;
    return now >= vm->running_us ? CLOUD_RUNNING : CLOUD_PENDING;
}

bool sim_vm_going(const struct sim_vm *vm)
{
    enum cloud_state s = sim_vm_state(vm);

    return s != CLOUD_PENDING && s != CLOUD_RUNNING;
}

const char *sim_vm_tag(const struct sim_vm *vm, const char *key)
{
    for (size_t i = 0; i < vm->tags.n; i++)
        if (strcmp(vm->tags.v[i].key, key) == 0)
            return vm->tags.v[i].value;
    return NULL;
}

void sim_vm_set_tags(struct sim_vm *vm, const struct cloud_tag *tags, size_t n)
{
    while (vm->tags.n > 0) {
        vm->tags.n--;
        free(vm->tags.v[vm->tags.n].key);
        free(vm->tags.v[vm->tags.n].value);
    }
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(&vm->tags, (struct sim_tag){mem_strdup(tags[i].key),
                                             mem_strdup(tags[i].value)});
}

static struct sim_vm *vm_new(struct sim_cloud *c)
{
    struct sim_vm *vm = MEM_NEW(struct sim_vm);
    struct sim *w = c->w;
    unsigned n = ++c->next_id;

    vm->cloud = c;
    vm->created_us = vm->listed_us = w->now_us;
    vm->failed_us = vm->stop_us = vm->gone_us = never;
    snprintf(vm->id, sizeof vm->id, "i-%.16s-%04u", c->name, n);
    snprintf(vm->address, sizeof vm->address, "10.%u.%u.%u", sim_cloud_index(c),
             n / 250, n % 250 + 1);
    VEC_PUSH(&c->vms, vm);
    return vm;
}

/* Decide how it will boot, if ever. */
static void vm_boot(struct sim_vm *vm)
{
    struct sim_cloud *c = vm->cloud;
    struct sim *w = c->w;
    int64_t boot = sim_rng_range(&c->rng, c->boot_lo_us, c->boot_hi_us);

    vm->running_us = w->now_us + boot / 2;
    if (sim_fault(w, SIM_FAULT_CREATE_DOOMED)) {
        vm->running_us = never;
        vm->failed_us = w->now_us + boot;
        vm->gone_us = w->now_us + 600 * (int64_t) SIM_S;
        boot = never;
    } else if (sim_fault(w, SIM_FAULT_VM_DUD)) {
        boot = never;
    }
    if (sim_fault(w, SIM_FAULT_CREATE_HIDDEN))
        vm->listed_us += sim_rng_range(&c->rng, SIM_S, 20 * SIM_S);
    vm->machine = sim_machine_create(w->net, vm,
                                     boot == never ? never : w->now_us + boot);
}

struct sim_vm *sim_cloud_make(struct sim_cloud *c,
                              const struct cloud_create_req *req,
                              int32_t member)
{
    struct sim_vm *vm = vm_new(c);

    vm->member = member;
    vm->price = req->price;
    text_copy(vm->token, req->token, sizeof vm->token);
    text_copy(vm->type, req->type_name, sizeof vm->type);
    text_copy(vm->provider_type, req->provider_type, sizeof vm->provider_type);
    text_copy(vm->placement, req->placement, sizeof vm->placement);
    sim_vm_set_tags(vm, req->tags, req->n_tags);
    vm_boot(vm);
    vm->machine->vcpus = req->vcpus;
    vm->machine->ram = req->ram;
    vm->machine->scratch = req->scratch;
    c->made++;
    sim_trace(c->w, "vm %s made for token %s, type %s", vm->id, vm->token,
              vm->type);
    return vm;
}

struct sim_vm *sim_cloud_add_foreign(struct sim_cloud *c, const char *set_id)
{
    struct sim_vm *vm = vm_new(c);
    struct cloud_tag tag = {.key = "CDCInstanceSetID", .value = set_id};

    vm->foreign = true;
    vm->running_us = c->w->now_us;
    sim_vm_set_tags(vm, &tag, 1);
    vm->machine = sim_machine_create(c->w->net, vm, c->w->now_us);
    return vm;
}

static void on_halt(void *arg)
{
    sim_machine_halt(arg);
}

void sim_vm_stop(struct sim_vm *vm)
{
    struct sim_cloud *c = vm->cloud;
    struct sim *w = c->w;
    int64_t stop = sim_rng_range(&c->rng, c->stop_lo_us, c->stop_hi_us);

    if (vm->stop_us != never || w->now_us >= vm->gone_us)
        return;
    if (sim_fault(w, SIM_FAULT_DESTROY_SLOW))
        stop += sim_rng_range(&c->rng, 30 * SIM_S, 180 * SIM_S);
    vm->stop_us = w->now_us;
    vm->gone_us = w->now_us + stop;
    vm->lingers = sim_rng_chance(&c->rng, 3000);
    sim_trace(w, "vm %s told to stop", vm->id);
    sim_at(w, sim_rng_range(&c->rng, 0, stop), on_halt, vm->machine);
}

void sim_vm_die(struct sim_vm *vm)
{
    struct sim *w = vm->cloud->w;

    if (!sim_vm_exists(vm) || vm->stop_us != never)
        return;
    sim_fault_note(w, SIM_FAULT_VM_DEATH);
    sim_trace(w, "vm %s dies", vm->id);
    vm->stop_us = w->now_us;
    vm->gone_us = w->now_us + sim_rng_range(&vm->cloud->rng, 0, 5 * SIM_S);
    sim_machine_halt(vm->machine);
}

size_t sim_cloud_count(const struct sim_cloud *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->vms.n; i++)
        n += !c->vms.v[i]->foreign && sim_vm_exists(c->vms.v[i]);
    return n;
}

static double vm_seconds(const struct sim_vm *vm)
{
    int64_t now = vm->cloud->w->now_us;
    int64_t end = vm->gone_us < now ? vm->gone_us : now;

    return (double) (end - vm->created_us) / SIM_S;
}

double sim_cloud_seconds(const struct sim_cloud *c)
{
    double sum = 0;

    for (size_t i = 0; i < c->vms.n; i++)
        if (!c->vms.v[i]->foreign)
            sum += vm_seconds(c->vms.v[i]);
    return sum;
}

double sim_cloud_cost(const struct sim_cloud *c)
{
    double sum = 0;

    for (size_t i = 0; i < c->vms.n; i++)
        if (!c->vms.v[i]->foreign)
            sum += vm_seconds(c->vms.v[i]) / 3600 * c->vms.v[i]->price;
    return sum;
}

void sim_cloud_limit_type(struct sim_cloud *c, const char *type, int64_t max)
{
    struct sim_type_limit limit = {.max = max};

    text_copy(limit.type, type, sizeof limit.type);
    for (size_t i = 0; i < c->limits.n; i++) {
        if (strcmp(c->limits.v[i].type, type) == 0) {
            c->limits.v[i].max = max;
            return;
        }
    }
    VEC_PUSH(&c->limits, limit);
}

unsigned sim_cloud_index(const struct sim_cloud *c)
{
    unsigned i = 0;

    while (i < c->w->n_clouds && c->w->clouds[i] != c)
        i++;
    return i;
}

struct sim_cloud *sim_cloud_create(struct sim *w, const char *name)
{
    struct sim_cloud *c = MEM_NEW(struct sim_cloud);
    char stream[80];

    c->w = w;
    text_copy(c->name, name, sizeof c->name);
    snprintf(stream, sizeof stream, "cloud %s", name);
    sim_rng_init(&c->rng, w->seed, stream);
    c->create_lo_us = 300 * SIM_MS;
    c->create_hi_us = 3 * SIM_S;
    c->list_lo_us = 50 * SIM_MS;
    c->list_hi_us = 500 * SIM_MS;
    c->boot_lo_us = 8 * SIM_S;
    c->boot_hi_us = 40 * SIM_S;
    c->stop_lo_us = 1 * SIM_S;
    c->stop_hi_us = 15 * SIM_S;
    c->last_create_us = INT64_MIN / 2;
    w->clouds[w->n_clouds++] = c;
    sim_cloud_port_init(c);
    return c;
}

void sim_cloud_destroy(struct sim_cloud *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->vms.n; i++) {
        sim_vm_set_tags(c->vms.v[i], NULL, 0);
        VEC_FINI(&c->vms.v[i]->tags);
        free(c->vms.v[i]);
    }
    VEC_FINI(&c->vms);
    VEC_FINI(&c->limits);
    VEC_FINI(&c->last_list);
    free(c);
}
