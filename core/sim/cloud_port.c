/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cloud port of the world: calls on their way to cloud.c, and replies.
 *
 * create is idempotent by token: a second request returns what the first one
 * made, in whatever state that is now. A list is a snapshot, taken when the
 * request arrives, delivered in pages; what a list may do wrong is drawn when
 * it is taken. Limits are checked before anything is made.
 */

#include <stdio.h>

#include "core/base/text.h"
#include "core/sim/check.h"
#include "core/sim/cloud_impl.h"
#include "core/sim/op.h"
#include "core/sim/vm.h"

enum { LIST_PAGE = 3 };

static int64_t latency(struct sim_cloud *c)
{
    return sim_rng_range(&c->rng, c->list_lo_us, c->list_hi_us) / 2;
}

static struct sim_vm *find_vm(struct sim_cloud *c, const char *id)
{
    for (size_t i = 0; i < c->vms.n; i++)
        if (strcmp(c->vms.v[i]->id, id) == 0)
            return c->vms.v[i];
    return NULL;
}

/* A record for the dispatcher; tags into `tags` (room for vm->tags.n). */
static void describe(const struct sim_vm *vm, enum cloud_state state,
                     struct cloud_tag *tags, struct cloud_instance *ret)
{
    bool up = vm->running_us <= vm->cloud->w->now_us;

    *ret = (struct cloud_instance){
        .id = vm->id,
        .name = vm->id,
        .create_token = vm->token,
        .member = vm->member,
        .state = state,
        .provider_type = vm->provider_type,
        .placement = vm->placement,
        .address = up && state == CLOUD_RUNNING ? vm->address : "",
        .port = 22,
        .user = vm->machine->user,
        .tags = tags,
        .n_tags = vm->tags.n,
        .created_ms = (vm->created_us + vm->cloud->w->wall_base_us) / SIM_MS,
        .price = vm->price,
    };
    if (state == CLOUD_FAILED)
        err_set(&ret->err, ERR_CAPACITY, "no host for %s", vm->id);
    for (size_t i = 0; i < vm->tags.n; i++)
        tags[i] = (struct cloud_tag){vm->tags.v[i].key, vm->tags.v[i].value};
}

/* --- create ---------------------------------------------------------- */

struct create_op {
    struct op op;
    struct sim_cloud *c;
    struct cloud_create_req req;
    char token[32], type[64], provider_type[64], placement[64];
    VEC(struct cloud_tag) tags;
    bool lost, no_reply;
    VEC(struct sim_vm *) vms;
    void (*cb)(void *arg, const struct cloud_create_result *r);
    void *arg;
};

static void create_fire(struct op *op, const struct op_result *r)
{
    struct create_op *o = (struct create_op *) op;
    struct cloud_create_result res = {.r = *r};
    VEC(struct cloud_instance) v = {0};
    VEC(struct cloud_tag *) tags = {0};

    sim_trace(op->w, "cloud create %s => %s", o->token,
              r->outcome == OP_DONE      ? "done"
              : r->outcome == OP_REFUSED ? r->err.text
                                         : "unknown");
    for (size_t i = 0; r->outcome == OP_DONE && i < o->vms.n; i++) {
        struct sim_vm *vm = o->vms.v[i];

        VEC_PUSH(&tags, mem_calloc(vm->tags.n, sizeof **tags.v));
        VEC_PUSH(&v, (struct cloud_instance){0});
        describe(vm, sim_vm_state(vm), tags.v[i], &v.v[i]);
    }
    res.v = v.v;
    res.n = v.n;
    o->cb(o->arg, &res);
    for (size_t i = 0; i < tags.n; i++)
        free(tags.v[i]);
    VEC_FINI(&tags);
    VEC_FINI(&v);
    sim_point(op->w, SIM_POINT_CREATE_HEARD);
}

/* How many of this type exist. */
static int64_t count_type(const struct sim_cloud *c, const char *type)
{
    int64_t n = 0;

    for (size_t i = 0; i < c->vms.n; i++)
        n += sim_vm_exists(c->vms.v[i]) && strcmp(c->vms.v[i]->type, type) == 0;
    return n;
}

static bool no_capacity(const struct sim_cloud *c, const char *type)
{
    if (c->w->now_us < c->capacity_until_us &&
        strcmp(c->capacity_type, type) == 0)
        return true;
    for (size_t i = 0; i < c->limits.n; i++)
        if (strcmp(c->limits.v[i].type, type) == 0 &&
            count_type(c, type) >= c->limits.v[i].max)
            return true;
    return false;
}

static int create_refused(struct create_op *o, struct err *err)
{
    struct sim_cloud *c = o->c;
    struct sim *w = c->w;

    if (sim_fault(w, SIM_FAULT_CREATE_RATE) ||
        (c->create_gap_us > 0 &&
         w->now_us - c->last_create_us < c->create_gap_us)) {
        err_set(err, ERR_RATE_LIMITED, "too many creates");
        err->retry_ms = c->create_gap_us > 0 ? c->create_gap_us / SIM_MS : 3000;
        return -1;
    }
    c->last_create_us = w->now_us;
    if (sim_fault(w, SIM_FAULT_CREATE_TRANSIENT))
        return err_set(err, ERR_TRANSIENT, "internal error, try again");
    if (sim_fault(w, SIM_FAULT_CREATE_QUOTA))
        c->quota_until_us =
            w->now_us + sim_rng_range(&c->rng, 5 * SIM_S, 40 * SIM_S);
    if (w->now_us < c->quota_until_us ||
        (c->quota > 0 && (int64_t) sim_cloud_count(c) >= c->quota)) {
        err_set(err, ERR_QUOTA, "quota reached");
        err->scope = ERR_SCOPE_ACCOUNT;
        return -1;
    }
    if (sim_fault(w, SIM_FAULT_CREATE_CAPACITY)) {
        text_copy(c->capacity_type, o->type, sizeof c->capacity_type);
        c->capacity_until_us =
            w->now_us + sim_rng_range(&c->rng, 5 * SIM_S, 90 * SIM_S);
    }
    if (no_capacity(c, o->type)) {
        err_set(err, ERR_CAPACITY, "no more %s", o->provider_type);
        err->scope = ERR_SCOPE_TYPE;
        return -1;
    }
    return 0;
}

static void create_commit(struct create_op *o, struct op_result *r)
{
    struct sim_cloud *c = o->c;

    for (size_t i = 0; i < c->vms.n; i++)
        if (strcmp(c->vms.v[i]->token, o->token) == 0)
            VEC_PUSH(&o->vms, c->vms.v[i]);
    if (o->vms.n > 0)
        return;
    if (create_refused(o, &r->err) != 0) {
        r->outcome = OP_REFUSED;
        return;
    }
    for (int32_t i = 0; i < o->req.count; i++)
        VEC_PUSH(&o->vms, sim_cloud_make(c, &o->req, i));
    check_token(c->w, c, o->token, o->req.count);
    sim_point(c->w, SIM_POINT_CREATE_DONE);
}

static void create_effect(struct op *op)
{
    struct create_op *o = (struct create_op *) op;
    struct op_result r = {.outcome = OP_DONE};

    if (!o->lost) {
        o->c->creates++;
        create_commit(o, &r);
    }
    if (o->lost || o->no_reply)
        op_fail_in(op, latency(o->c), OP_UNKNOWN, ERR_UNKNOWN, 0,
                   "connection lost");
    else
        op_reply_in(op, latency(o->c), &r);
}

static void create_fini(struct op *op)
{
    struct create_op *o = (struct create_op *) op;

    for (size_t i = 0; i < o->tags.n; i++) {
        free((void *) (uintptr_t) o->tags.v[i].key);
        free((void *) (uintptr_t) o->tags.v[i].value);
    }
    VEC_FINI(&o->tags);
    VEC_FINI(&o->vms);
}

static void create_copy(struct create_op *o, const struct cloud_create_req *req)
{
    text_copy(o->token, req->token, sizeof o->token);
    text_copy(o->type, req->type_name, sizeof o->type);
    text_copy(o->provider_type, req->provider_type, sizeof o->provider_type);
    text_copy(o->placement, req->placement, sizeof o->placement);
    for (size_t i = 0; i < req->n_tags; i++)
        VEC_PUSH(&o->tags, (struct cloud_tag){mem_strdup(req->tags[i].key),
                                              mem_strdup(req->tags[i].value)});
    o->req = *req;
    o->req.token = o->token;
    o->req.type_name = o->type;
    o->req.provider_type = o->provider_type;
    o->req.placement = o->placement;
    o->req.tags = o->tags.v;
    o->req.image = o->req.init_command = o->req.public_key = NULL;
}

static struct op *create(
    struct cloud_port *port, const struct cloud_create_req *req,
    void (*cb)(void *arg, const struct cloud_create_result *r), void *arg)
{
    struct sim_cloud *c = port->impl;
    struct sim *w = c->w;
    struct create_op *o = op_new(w, sizeof *o, "cloud create");
    int64_t delay = sim_rng_range(&c->rng, c->create_lo_us, c->create_hi_us);

    o->c = c;
    o->cb = cb;
    o->arg = arg;
    o->op.writes = true;
    o->op.cancel_unknown = true;
    o->op.effect = create_effect;
    o->op.fire = create_fire;
    o->op.fini = create_fini;
    create_copy(o, req);
    if (w->crashing) {
        op_effect_in(&o->op, 0);
        return &o->op;
    }
    sim_trace(w, "cloud create %s type %s sent", o->token, o->type);
    check_create_call(w, c, req);
    o->lost = sim_fault(w, SIM_FAULT_CREATE_LOST);
    o->no_reply = sim_fault(w, SIM_FAULT_CREATE_NO_REPLY);
    if (req->deadline_ms > 0 && sim_fault(w, SIM_FAULT_CREATE_LATE))
        delay = req->deadline_ms * SIM_MS +
                sim_rng_range(&c->rng, SIM_S, 60 * SIM_S);
    op_effect_in(&o->op, delay);
    op_deadline(&o->op, req->deadline_ms);
    return &o->op;
}

/* --- list ------------------------------------------------------------ */

struct list_op {
    struct op op;
    struct sim_cloud *c;
    VEC(struct sim_tag) filter;
    VEC(struct sim_listed) items;
    size_t sent;
    bool partial;
    bool breaks;
    void (*on_data)(void *arg, const struct cloud_instance *i);
    void (*end)(void *arg, const struct cloud_list_result *r);
    void *arg;
};

static void list_fire(struct op *op, const struct op_result *r)
{
    struct list_op *o = (struct list_op *) op;
    struct cloud_list_result res = {
        .r = *r,
        .complete = r->outcome == OP_DONE && !o->partial,
        .unknown = o->partial ? "zone-b" : "",
    };

    sim_trace(op->w, "cloud list => %zu of %zu, %s", o->sent, o->items.n,
              r->outcome != OP_DONE ? r->err.text
              : o->partial          ? "partial"
                                    : "complete");
    o->end(o->arg, &res);
}

static void list_emit(struct list_op *o, const struct sim_listed *item)
{
    struct cloud_tag *tags = mem_calloc(item->vm->tags.n, sizeof *tags);
    struct cloud_instance i;

    describe(item->vm, item->state, tags, &i);
    o->on_data(o->arg, &i);
    free(tags);
}

static void list_page(void *arg)
{
    struct list_op *o = arg;
    struct op *op = &o->op;
    size_t stop = o->breaks ? o->items.n / 2 : o->items.n;

    for (int k = 0; k < LIST_PAGE && o->sent < stop && op_alive(op); k++)
        list_emit(o, &o->items.v[o->sent++]);
    if (o->sent < stop && op_alive(op)) {
        op_hold(op);
        sim_at(op->w, latency(o->c) / 4, list_page, o);
    } else if (o->breaks) {
        op_fail_in(op, 1, OP_REFUSED, ERR_TRANSIENT, 0, "page not served");
    } else {
        op_done_in(op, 1);
    }
    op_drop(op);
}

static bool listed(const struct sim_vm *vm, int64_t now)
{
    if (now < vm->listed_us)
        return false;
    return now < vm->gone_us ||
           (vm->lingers && now < vm->gone_us + 30 * (int64_t) SIM_S);
}

static bool list_matches(const struct list_op *o, const struct sim_vm *vm)
{
    for (size_t i = 0; i < o->filter.n; i++) {
        const char *value = sim_vm_tag(vm, o->filter.v[i].key);

        if (!value || strcmp(value, o->filter.v[i].value) != 0)
            return false;
    }
    return true;
}

static void list_add(struct list_op *o, struct sim_vm *vm,
                     enum cloud_state state)
{
    if (list_matches(o, vm))
        VEC_PUSH(&o->items, (struct sim_listed){vm, state});
}

static bool has_live(const struct list_op *o)
{
    for (size_t i = 0; i < o->items.n; i++)
        if (!sim_vm_going(o->items.v[i].vm))
            return true;
    return false;
}

/* What the list says wrongly. Two in a row only when forced. */
static void list_distort(struct list_op *o)
{
    struct sim_cloud *c = o->c;
    struct sim *w = c->w;
    bool may = !c->last_bad && has_live(o);

    c->last_bad = false;
    if ((may || w->faults[SIM_FAULT_LIST_EMPTY].forced > 0) && has_live(o) &&
        sim_fault(w, SIM_FAULT_LIST_EMPTY)) {
        VEC_CLEAR(&o->items);
        c->last_bad = true;
        return;
    }
    if (may && sim_fault(w, SIM_FAULT_LIST_SHORT)) {
        VEC_REMOVE(&o->items, (size_t) sim_rng_range(&c->rng, 0,
                                                     (int64_t) o->items.n - 1));
        c->last_bad = true;
    } else if (may && sim_fault(w, SIM_FAULT_LIST_PARTIAL)) {
        o->items.n /= 2;
        o->partial = true;
    } else if (may && sim_fault(w, SIM_FAULT_LIST_FAIL)) {
        o->breaks = true;
    }
}

static void list_stale(struct list_op *o)
{
    struct sim_cloud *c = o->c;

    VEC_CLEAR(&o->items);
    for (size_t i = 0; i < c->last_list.n; i++)
        list_add(o, c->last_list.v[i].vm, c->last_list.v[i].state);
    c->last_bad = true;
}

static void list_effect(struct op *op)
{
    struct list_op *o = (struct list_op *) op;
    struct sim_cloud *c = o->c;
    struct sim *w = op->w;

    for (size_t i = 0; i < c->vms.n; i++)
        if (listed(c->vms.v[i], w->now_us))
            list_add(o, c->vms.v[i], sim_vm_state(c->vms.v[i]));
    if (!c->last_bad && c->last_list.n > 0 &&
        sim_fault(w, SIM_FAULT_LIST_STALE))
        list_stale(o);
    else
        list_distort(o);
    VEC_CLEAR(&c->last_list);
    for (size_t i = 0; i < c->vms.n; i++)
        if (listed(c->vms.v[i], w->now_us))
            VEC_PUSH(
                &c->last_list,
                (struct sim_listed){c->vms.v[i], sim_vm_state(c->vms.v[i])});
    op_hold(op);
    sim_at(w, latency(c), list_page, o);
}

static void list_fini(struct op *op)
{
    struct list_op *o = (struct list_op *) op;

    for (size_t i = 0; i < o->filter.n; i++) {
        free(o->filter.v[i].key);
        free(o->filter.v[i].value);
    }
    VEC_FINI(&o->filter);
    VEC_FINI(&o->items);
}

static struct op *list(
    struct cloud_port *port, const struct cloud_tag *filter, size_t n_filter,
    int64_t deadline_ms,
    void (*on_data)(void *arg, const struct cloud_instance *i),
    void (*end)(void *arg, const struct cloud_list_result *r), void *arg)
{
    struct sim_cloud *c = port->impl;
    struct list_op *o = op_new(c->w, sizeof *o, "cloud list");
    int64_t delay = latency(c);

    o->c = c;
    o->on_data = on_data;
    o->end = end;
    o->arg = arg;
    o->op.effect = list_effect;
    o->op.fire = list_fire;
    o->op.fini = list_fini;
    for (size_t i = 0; i < n_filter; i++)
        VEC_PUSH(&o->filter, (struct sim_tag){mem_strdup(filter[i].key),
                                              mem_strdup(filter[i].value)});
    if (!c->w->crashing && deadline_ms > 0 &&
        sim_fault(c->w, SIM_FAULT_LIST_SLOW))
        delay += deadline_ms * SIM_MS;
    op_effect_in(&o->op, delay);
    op_deadline(&o->op, deadline_ms);
    return &o->op;
}

/* --- the small calls ------------------------------------------------- */

enum small { OPEN, SET_TAGS, DESTROY, VERIFY };

static const char *const small_names[] = {
    "cloud open", "cloud set_tags", "cloud destroy", "cloud verify_host_key"};

struct small_op {
    struct op op;
    struct sim_cloud *c;
    enum small call;
    char id[64];
    VEC(struct sim_tag) tags;
    char *key;
    bool lost, no_reply;
    cloud_cb *cb;
    void *arg;
};

static void small_fire(struct op *op, const struct op_result *r)
{
    struct small_op *o = (struct small_op *) op;

    if (o->call == OPEN && r->outcome == OP_DONE)
        o->c->opened = true;
    sim_trace(op->w, "%s %s => %s", op->what, o->id,
              r->outcome == OP_DONE ? "done" : r->err.text);
    o->cb(o->arg, r);
    if (o->call == DESTROY && r->outcome == OP_DONE)
        sim_point(op->w, SIM_POINT_DESTROY_HEARD);
}

static void destroy_commit(struct small_op *o, struct op_result *r)
{
    struct sim *w = o->c->w;
    struct sim_vm *vm = find_vm(o->c, o->id);

    if (sim_fault(w, SIM_FAULT_DESTROY_REFUSED)) {
        r->outcome = OP_REFUSED;
        err_set(&r->err, ERR_TRANSIENT, "internal error, try again");
        return;
    }
    o->c->destroys++;
    if (!vm || !sim_vm_exists(vm))
        return;
    check_destroy(w, vm);
    sim_vm_stop(vm);
    sim_point(w, SIM_POINT_DESTROY_DONE);
}

static void tags_commit(struct small_op *o)
{
    struct sim_vm *vm = find_vm(o->c, o->id);
    VEC(struct cloud_tag) tags = {0};

    if (!vm || !sim_vm_exists(vm))
        return;
    if (vm->foreign)
        sim_fail(o->c->w, "tags of foreign instance %s replaced", vm->id);
    for (size_t i = 0; i < o->tags.n; i++)
        VEC_PUSH(&tags,
                 (struct cloud_tag){o->tags.v[i].key, o->tags.v[i].value});
    sim_vm_set_tags(vm, tags.v, tags.n);
    VEC_FINI(&tags);
}

static void verify_commit(struct small_op *o, struct op_result *r)
{
    struct sim_vm *vm = find_vm(o->c, o->id);

    r->outcome = OP_REFUSED;
    if (!(o->c->port.caps & CLOUD_CAP_VERIFY_KEY))
        err_set(&r->err, ERR_UNSUPPORTED, "cannot tell");
    else if (!vm || vm->machine->impostor ||
             strcmp(vm->machine->host_key, o->key) != 0)
        err_set(&r->err, ERR_AUTH, "host key is wrong");
    else
        r->outcome = OP_DONE;
}

static void small_effect(struct op *op)
{
    struct small_op *o = (struct small_op *) op;
    struct op_result r = {.outcome = OP_DONE};

    if (!o->lost) {
        if (o->call == DESTROY)
            destroy_commit(o, &r);
        else if (o->call == SET_TAGS)
            tags_commit(o);
        else if (o->call == VERIFY)
            verify_commit(o, &r);
    }
    if (o->lost || o->no_reply)
        op_fail_in(op, latency(o->c), OP_UNKNOWN, ERR_UNKNOWN, 0,
                   "connection lost");
    else
        op_reply_in(op, latency(o->c), &r);
}

static void small_fini(struct op *op)
{
    struct small_op *o = (struct small_op *) op;

    for (size_t i = 0; i < o->tags.n; i++) {
        free(o->tags.v[i].key);
        free(o->tags.v[i].value);
    }
    VEC_FINI(&o->tags);
    free(o->key);
}

static struct small_op *small_new(struct cloud_port *port, enum small call,
                                  const char *id, cloud_cb *cb, void *arg)
{
    struct sim_cloud *c = port->impl;
    struct small_op *o = op_new(c->w, sizeof *o, small_names[call]);

    o->c = c;
    o->call = call;
    o->cb = cb;
    o->arg = arg;
    if (id)
        text_copy(o->id, id, sizeof o->id);
    o->op.writes = call == SET_TAGS || call == DESTROY;
    o->op.effect = small_effect;
    o->op.fire = small_fire;
    o->op.fini = small_fini;
    return o;
}

static struct op *small_send(struct small_op *o, int64_t deadline_ms)
{
    if (o->c->w->crashing) {
        op_effect_in(&o->op, 0);
        return &o->op;
    }
    sim_trace(o->c->w, "%s %s sent", o->op.what, o->id);
    op_effect_in(&o->op, latency(o->c));
    op_deadline(&o->op, deadline_ms);
    return &o->op;
}

static struct op *open_set(struct cloud_port *port, int64_t deadline_ms,
                           cloud_cb *cb, void *arg)
{
    return small_send(small_new(port, OPEN, NULL, cb, arg), deadline_ms);
}

static struct op *set_tags(struct cloud_port *port, const char *id,
                           const struct cloud_tag *tags, size_t n_tags,
                           int64_t deadline_ms, cloud_cb *cb, void *arg)
{
    struct small_op *o = small_new(port, SET_TAGS, id, cb, arg);

    for (size_t i = 0; i < n_tags; i++)
        VEC_PUSH(&o->tags, (struct sim_tag){mem_strdup(tags[i].key),
                                            mem_strdup(tags[i].value)});
    if (!o->c->w->crashing)
        o->lost = sim_fault(o->c->w, SIM_FAULT_TAGS_LOST);
    return small_send(o, deadline_ms);
}

static struct op *destroy(struct cloud_port *port, const char *id,
                          int64_t deadline_ms, cloud_cb *cb, void *arg)
{
    struct small_op *o = small_new(port, DESTROY, id, cb, arg);

    if (!o->c->w->crashing) {
        o->lost = sim_fault(o->c->w, SIM_FAULT_DESTROY_LOST);
        o->no_reply = sim_fault(o->c->w, SIM_FAULT_DESTROY_NO_REPLY);
    }
    return small_send(o, deadline_ms);
}

static struct op *verify_host_key(struct cloud_port *port, const char *id,
                                  const char *key, int64_t deadline_ms,
                                  cloud_cb *cb, void *arg)
{
    struct small_op *o = small_new(port, VERIFY, id, cb, arg);

    o->key = mem_strdup(key);
    return small_send(o, deadline_ms);
}

static void quota_group(struct cloud_port *port, const char *provider_type,
                        bool preemptible, char *out, size_t size)
{
    (void) port;
    snprintf(out, size, "%.1s%s", provider_type, preemptible ? "-p" : "");
}

static void port_cancel(struct cloud_port *port, struct op *op)
{
    (void) port;
    op_cancel(op);
}

void sim_cloud_port_init(struct sim_cloud *c)
{
    c->port = (struct cloud_port){
        .backend = c->name,
        .driver = "sim",
        .caps = CLOUD_CAP_SET_TAGS | CLOUD_CAP_VERIFY_KEY,
        .open = open_set,
        .create = create,
        .list = list,
        .set_tags = set_tags,
        .destroy = destroy,
        .verify_host_key = verify_host_key,
        .quota_group = quota_group,
        .op_cancel = port_cancel,
        .impl = c,
    };
}
