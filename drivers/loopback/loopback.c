/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loopback driver: VMs on this very machine.
 *
 * All that makes, finds and ends a VM is in cdc-local-vm(8); this file turns
 * each callback into one run of that program and hands its answer on. It
 * keeps no state beyond its settings: a restarted dispatcher finds its VMs
 * because they are on disk.
 *
 * set_open asks the program whether VMs can be made here at all. Where they
 * cannot (no privilege to clone or mount), the program gives one VM of plain
 * processes; the set then says CDC_CAP_SINGLE and the log says why.
 *
 * Only `create` with MaxInstances looks before it acts; a lock makes that
 * hold against other threads of this set (nobody else adds to it).
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cdc/driver.h>

#include "drivers/common/jsonw.h"
#include "drivers/common/vmprog.h"

#ifndef LOCAL_VM
#error "LOCAL_VM is the path of the installed cdc-local-vm"
#endif

struct cdc_set {
    struct vmprog prog;
    const char *options[3]; /* --state DIR */
    const char *set_id;
    const char *images_dir, *address_range, *cgroup_parent;
    const struct cdc_json *shared; /* NULL = none */
    int64_t pids, boot_wait_ms, max_instances;
    int degraded;
    char reason[256];
    pthread_mutex_t creating;
};

/* --- settings --------------------------------------------------------------- */

static const char *str_param(const struct cdc_host *h,
                             const struct cdc_set_config *c, const char *key,
                             const char *other)
{
    const char *s = h->json_str(h->json_get(c->params, key));

    return s ? s : other;
}

static int64_t int_param(const struct cdc_host *h,
                         const struct cdc_set_config *c, const char *key,
                         int64_t other)
{
    h->json_i64(h->json_get(c->params, key), &other);
    return other;
}

static void read_settings(struct cdc_set *set, const struct cdc_host *h,
                          const struct cdc_set_config *c)
{
    set->prog.host = h;
    set->prog.program = str_param(h, c, "Program", LOCAL_VM);
    set->prog.options = set->options;
    set->options[0] = "--state";
    set->options[1] = str_param(h, c, "StateDirectory", c->state_dir);
    set->set_id = c->set_id;
    set->images_dir = str_param(h, c, "ImagesDirectory", "");
    set->address_range = str_param(h, c, "AddressRange", NULL);
    set->cgroup_parent = str_param(h, c, "CgroupParent", NULL);
    set->shared = h->json_get(c->params, "SharedDirs");
    set->pids = int_param(h, c, "MaxProcesses", 0);
    set->boot_wait_ms = int_param(h, c, "BootWait", -1);
    set->max_instances = int_param(h, c, "MaxInstances", 0);
}

static int32_t check_settings(const struct cdc_set *set, struct cdc_op *op)
{
    const char *wrong = set->options[1][0] != '/' ? "StateDirectory"
                        : set->prog.program[0] != '/' ? "Program"
                        : set->images_dir[0] && set->images_dir[0] != '/'
                            ? "ImagesDirectory" : NULL;

    if (!wrong)
        return 0;
    return set->prog.host->fail(op, CDC_CLASS_CONFIG, CDC_SCOPE_NONE, 0, NULL,
                                NULL, "%s must be an absolute path", wrong);
}

static void add_parent(const struct cdc_set *set, struct jsonw *in)
{
    if (set->cgroup_parent)
        jsonw_str(in, "cgroup_parent", set->cgroup_parent);
}

/* --- open and close --------------------------------------------------------- */

static void note_degraded(struct cdc_set *set, struct cdc_op *op,
                          const struct cdc_json *reply)
{
    const struct cdc_host *h = set->prog.host;
    const char *reason = h->json_str(h->json_get(reply, "reason"));
    int32_t degraded = 0;

    h->json_bool(h->json_get(reply, "degraded"), &degraded);
    if (!degraded)
        return;
    set->degraded = 1;
    strncpy(set->reason, reason ? reason : "no reason given",
            sizeof set->reason - 1);
    h->set_caps(op, CDC_CAP_SET_TAGS | CDC_CAP_VERIFY_KEY | CDC_CAP_SINGLE |
                        CDC_CAP_NO_SUDO);
    h->log(op, CDC_LOG_WARNING,
           "degraded: no real VMs can be made here (%s); there will be one "
           "at a time, of plain processes without isolation", set->reason);
}

static int32_t probe(struct cdc_set *set, struct cdc_op *op)
{
    const struct cdc_json *reply;
    struct jsonw in = {0};

    jsonw_obj(&in, NULL);
    add_parent(set, &in);
    jsonw_end_obj(&in);
    reply = vmprog_call(&set->prog, op, "probe", &in);
    jsonw_fini(&in);
    if (!reply)
        return -1;
    note_degraded(set, op, reply);
    return 0;
}

static void set_close(struct cdc_set *set)
{
    pthread_mutex_destroy(&set->creating);
    free(set);
}

static int32_t set_open(const struct cdc_host *host, struct cdc_op *op,
                        const struct cdc_set_config *config,
                        struct cdc_set **ret_set)
{
    struct cdc_set *set = calloc(1, sizeof *set);

    if (!set)
        return host->fail(op, CDC_CLASS_TRANSIENT, CDC_SCOPE_NONE, 0, NULL,
                          NULL, "out of memory");
    pthread_mutex_init(&set->creating, NULL);
    read_settings(set, host, config);
    if (check_settings(set, op) || probe(set, op)) {
        set_close(set);
        return -1;
    }
    *ret_set = set;
    return 0;
}

/* --- create ------------------------------------------------------------------- */

static void write_type(struct jsonw *in, const struct cdc_create_spec *spec)
{
    jsonw_obj(in, "type");
    jsonw_str(in, "name", spec->type_name);
    jsonw_str(in, "provider_type", spec->provider_type);
    jsonw_i64(in, "vcpus", spec->vcpus);
    jsonw_i64(in, "ram", spec->ram);
    jsonw_i64(in, "scratch", spec->scratch);
    jsonw_f64(in, "price", spec->price);
    jsonw_end_obj(in);
}

static void write_shared(const struct cdc_set *set, struct jsonw *in)
{
    const struct cdc_host *h = set->prog.host;

    jsonw_arr(in, "shared_dirs");
    for (uint32_t i = 0; i < h->json_count(set->shared); i++) {
        const char *dir = h->json_str(h->json_at(set->shared, i));

        jsonw_str(in, NULL, dir ? dir : "");
    }
    jsonw_end_arr(in);
}

static void write_create(const struct cdc_set *set, struct jsonw *in,
                         const struct cdc_create_spec *spec)
{
    jsonw_obj(in, NULL);
    jsonw_str(in, "token", spec->token);
    jsonw_str(in, "set_id", set->set_id);
    write_type(in, spec);
    jsonw_str(in, "placement", spec->placement);
    jsonw_str(in, "image", spec->image[0] ? spec->image : "host");
    jsonw_tags(in, "tags", spec->tags, spec->n_tags);
    jsonw_str(in, "init_command", spec->init_command);
    jsonw_str(in, "public_key", spec->public_key);
    jsonw_str(in, "images_dir", set->images_dir);
    write_shared(set, in);
    add_parent(set, in);
    if (set->address_range)
        jsonw_str(in, "address_range", set->address_range);
    if (set->pids > 0)
        jsonw_i64(in, "pids", set->pids);
    if (set->boot_wait_ms >= 0)
        jsonw_i64(in, "wait_ms", set->boot_wait_ms);
    jsonw_end_obj(in);
}

static int32_t do_create(struct cdc_set *set, struct cdc_op *op,
                         const struct cdc_create_spec *spec)
{
    const struct cdc_json *reply;
    struct jsonw in = {0};

    write_create(set, &in, spec);
    reply = vmprog_call(&set->prog, op, "create", &in);
    jsonw_fini(&in);
    if (!reply)
        return -1;
    return vmprog_emit(&set->prog, op,
                       set->prog.host->json_get(reply, "instance"));
}

/* The array of instances that carry the tags, or NULL after fail(). */
static const struct cdc_json *ask_list(const struct cdc_set *set,
                                       struct cdc_op *op,
                                       const struct cdc_tag *filter,
                                       uint32_t n_filter)
{
    const struct cdc_host *h = set->prog.host;
    const struct cdc_json *reply, *instances;
    struct jsonw in = {0};

    jsonw_obj(&in, NULL);
    jsonw_str(&in, "set_id", set->set_id);
    jsonw_tags(&in, "filter", filter, n_filter);
    add_parent(set, &in);
    jsonw_end_obj(&in);
    reply = vmprog_call(&set->prog, op, "list", &in);
    jsonw_fini(&in);
    if (!reply)
        return NULL;
    instances = h->json_get(reply, "instances");
    if (h->json_type(instances) != CDC_JSON_ARRAY) {
        h->fail(op, CDC_CLASS_INTERNAL, CDC_SCOPE_NONE, 0, NULL, NULL,
                "list: the reply has no instances");
        return NULL;
    }
    return instances;
}

static int is(const struct cdc_host *h, const struct cdc_json *j,
              const char *key, const char *value)
{
    const char *s = h->json_str(h->json_get(j, key));

    return s && strcmp(s, value) == 0;
}

/* 0: there is room for it, or it is there already. */
static int32_t check_room(const struct cdc_set *set, struct cdc_op *op,
                          const struct cdc_create_spec *spec)
{
    const struct cdc_host *h = set->prog.host;
    const struct cdc_json *all = ask_list(set, op, NULL, 0);
    int64_t n = 0;

    if (!all)
        return -1;
    for (uint32_t i = 0; i < h->json_count(all); i++) {
        const struct cdc_json *one = h->json_at(all, i);

        if (is(h, one, "create_token", spec->token))
            return 0;
        n += !is(h, one, "state", "gone");
    }
    if (n < set->max_instances)
        return 0;
    return h->fail(op, CDC_CLASS_QUOTA, CDC_SCOPE_ACCOUNT, 0, NULL, NULL,
                   "MaxInstances is %lld", (long long)set->max_instances);
}

static int32_t create(struct cdc_op *op, struct cdc_set *set,
                      const struct cdc_create_spec *spec)
{
    int32_t rc;

    if (set->max_instances <= 0)
        return do_create(set, op, spec);
    pthread_mutex_lock(&set->creating);
    rc = check_room(set, op, spec) ? -1 : do_create(set, op, spec);
    pthread_mutex_unlock(&set->creating);
    return rc;
}

/* --- the others --------------------------------------------------------------- */

static int32_t list(struct cdc_op *op, struct cdc_set *set,
                    const struct cdc_tag *filter, uint32_t n_filter)
{
    const struct cdc_host *h = set->prog.host;
    const struct cdc_json *all = ask_list(set, op, filter, n_filter);

    if (!all)
        return -1;
    for (uint32_t i = 0; i < h->json_count(all); i++)
        if (vmprog_emit(&set->prog, op, h->json_at(all, i)))
            return -1;
    return 0;
}

static int32_t set_tags(struct cdc_op *op, struct cdc_set *set,
                        const char *id, const struct cdc_tag *tags,
                        uint32_t n_tags)
{
    const struct cdc_json *reply;
    struct jsonw in = {0};

    jsonw_obj(&in, NULL);
    jsonw_str(&in, "id", id);
    jsonw_tags(&in, "tags", tags, n_tags);
    jsonw_end_obj(&in);
    reply = vmprog_call(&set->prog, op, "tag", &in);
    jsonw_fini(&in);
    return reply ? 0 : -1;
}

static int32_t destroy(struct cdc_op *op, struct cdc_set *set, const char *id)
{
    const struct cdc_json *reply;
    struct jsonw in = {0};

    jsonw_obj(&in, NULL);
    jsonw_str(&in, "id", id);
    jsonw_end_obj(&in);
    reply = vmprog_call(&set->prog, op, "destroy", &in);
    jsonw_fini(&in);
    return reply ? 0 : -1;
}

static int32_t verify_host_key(struct cdc_op *op, struct cdc_set *set,
                               const char *id, const char *key)
{
    const struct cdc_host *h = set->prog.host;
    const struct cdc_json *all = ask_list(set, op, NULL, 0);

    if (!all)
        return -1;
    for (uint32_t i = 0; i < h->json_count(all); i++) {
        const struct cdc_json *one = h->json_at(all, i);

        if (!is(h, one, "id", id))
            continue;
        if (is(h, one, "host_key", key))
            return 0;
        return h->fail(op, CDC_CLASS_AUTH, CDC_SCOPE_NONE, 0, NULL, NULL,
                       "%s has another host key", id);
    }
    return h->fail(op, CDC_CLASS_NOT_FOUND, CDC_SCOPE_NONE, 0, NULL, NULL,
                   "no instance %s", id);
}

static int32_t describe(struct cdc_op *op, struct cdc_set *set)
{
    const struct cdc_host *h = set->prog.host;

    h->emit_fact(op, "mode", set->degraded ? "degraded" : "namespaces");
    if (set->degraded)
        h->emit_fact(op, "reason", set->reason);
    h->emit_fact(op, "state", set->options[1]);
    h->emit_fact(op, "program", set->prog.program);
    return 0;
}

static const char schema[] =
    "StateDirectory\tstr\t\tfolder of the VMs; default "
    "<StateDirectory of the dispatcher>/loopback\n"
    "ImagesDirectory\tstr\t\"\"\tfolder of unpacked image roots\n"
    "MaxInstances\tint\t0\tmost VMs at a time; 0 = no limit here\n"
    "MaxProcesses\tint\t8192\tmost processes in one VM\n"
    "BootWait\tint\t5000\tmilliseconds that a create waits for the VM to be "
    "reachable\n"
    "AddressRange\tstr\t\"127.64.0.0/10\"\tloopback addresses for the VMs\n"
    "CgroupParent\tstr\t\"cdc\"\tcontrol group below which they are put\n"
    "Program\tstr\t\tpath of cdc-local-vm; default the installed one\n"
    "SharedDirs\tlist\t[]\tfor tests: host folders that the VMs see, "
    "writable\n";

const struct cdc_driver cdc_driver_entry = {
    CDC_DRIVER_PREFIX,
    CDC_THREADS_PARALLEL,
    CDC_CAP_SET_TAGS | CDC_CAP_VERIFY_KEY,
    0,
    "loopback",
    PACKAGE_VERSION,
    "VMs on this machine: namespaces, a control group and an sshd each",
    NULL,
    schema,
    set_open,
    set_close,
    create,
    list,
    set_tags,
    destroy,
    verify_host_key,
    NULL,
    NULL,
    describe,
};
