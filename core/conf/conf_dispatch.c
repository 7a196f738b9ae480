/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From settings to struct dispatch_cfg, the plain record that core/dispatch
 * works by. Here, and only here, live the rules that need more than one
 * setting: defaults that depend on the driver or on whose API server it is,
 * and contradictions. Pure.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/conf/conf.h"
#include "core/model/dispatch_cfg.h"

#define SET(c, member) ((c)->set[CONF_ID_##member])

static int put(char *dst, size_t size, const char *src, const char *key,
               struct err *err)
{
    if (text_copy(dst, src, size) < size)
        return 0;
    return err_set(err, ERR_CONFIG, "%s: longer than %zu characters", key,
                   size - 1);
}

#define PUT(field, src, key) put(field, sizeof(field), src, key, err)

static void put_limits(const struct conf *c, struct dispatch_cfg *d)
{
    d->max_price_factor = c->max_price_factor < 1 ? 1 : c->max_price_factor;
    d->max_instances = c->max_instances;
    d->max_create_ops = c->max_create_ops;
    d->max_cloud_ops_per_s = c->max_cloud_ops;
    d->max_per_instance = c->max_per_instance;
    d->max_probes_per_s = c->max_probes;
    d->max_api_ops = (c->api_max_concurrent + 3) / 4;
    d->max_ssh_per_instance = c->max_sessions;
    d->initial_quota = c->initial_quota;
    d->supervisor_fraction = c->supervisor_fraction;
    d->absent_lists = c->absent_lists;
    d->absent_grace_ms = c->absent_grace;
}

static void put_times(const struct conf *c, struct dispatch_cfg *d)
{
    const int64_t minute = 60000;

    d->poll_ms = c->poll;
    d->probe_ms = c->probe;
    d->sync_ms = c->sync;
    d->timeout_idle_ms = c->timeout_idle;
    d->timeout_booting_ms = c->timeout_booting;
    d->timeout_probe_ms = c->timeout_probe;
    d->timeout_shutdown_ms = c->timeout_shutdown;
    d->timeout_signal_ms = c->timeout_signal;
    d->timeout_term_ms = c->timeout_term;
    d->timeout_stale_run_lock_ms = c->timeout_stale;
    d->stale_lock_ms = c->stale_lock;
    d->api_deadline_ms = c->api_request_timeout < minute
                             ? c->api_request_timeout
                             : minute;
    d->cloud_deadline_ms = c->cloud_deadline;
    d->exec_deadline_ms = c->exec_deadline;
    d->connect_deadline_ms = c->connect_deadline;
}

/* Our runner and API server need neither Keep's memory nor its reserve. */
static void put_need(const struct conf *c, bool attempts,
                     struct dispatch_cfg *d)
{
    d->need.reserve_extra_ram =
        attempts && !SET(c, reserve_ram) ? 0 : c->reserve_ram;
    d->need.keep_buffers_per_vcpu =
        attempts && !SET(c, keep_buffers) ? 0 : c->keep_buffers;
    d->need.ram_discount = !attempts;
}

static int put_backends(const struct conf *c, struct dispatch_cfg *d,
                        struct err *err)
{
    if (!c->n_backends)
        return err_set(err, ERR_CONFIG, "%s: no backend", c->file);
    for (size_t i = 0; i < c->n_backends; i++) {
        const struct conf_backend *from = &c->backends[i];
        struct dispatch_backend *to = &d->backends[d->n_backends++];

        if (PUT(to->name, from->name, "Backends") < 0 ||
            PUT(to->image_id, from->image_id, "ImageID") < 0 ||
            PUT(to->ssh_user, from->ssh_user, "SSHUser") < 0)
            return -1;
        to->max_instances = from->max_instances;
        for (size_t j = 0; j < from->placements.n; j++)
            if (PUT(to->placements[j], from->placements.v[j],
                    "Placements") < 0)
                return -1;
        to->n_placements = (unsigned) from->placements.n;
    }
    return 0;
}

static int put_tags(const struct conf *c, struct dispatch_cfg *d,
                    struct err *err)
{
    const char *key = "Containers.CloudVMs.ResourceTags";

    if (c->resource_tags.n > DISPATCH_TAGS)
        return err_set(err, ERR_CONFIG, "%s: %s: more than %d tags", c->file,
                       key, DISPATCH_TAGS);
    for (size_t i = 0; i < c->resource_tags.n; i++)
        if (PUT(d->tags[i].key, c->resource_tags.v[i].key, key) < 0 ||
            PUT(d->tags[i].value, c->resource_tags.v[i].value, key) < 0)
            return -1;
    d->n_tags = (unsigned) c->resource_tags.n;
    return PUT(d->tag_prefix, c->tag_prefix,
               "Containers.CloudVMs.TagKeyPrefix");
}

static bool all_loopback(const struct conf *c)
{
    for (size_t i = 0; i < c->n_backends; i++)
        if (strcmp(c->backends[i].driver, "loopback") != 0)
            return false;
    return true;
}

/* It becomes a word of shell commands on the instances. */
static int check_runner_dir(const struct conf *c, const char *dir,
                            struct err *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789/._+@%,:=-";

    if (*dir == '/' && dir[strspn(dir, plain)] == '\0')
        return 0;
    return err_set(err, ERR_CONFIG,
                   "%s: Containers.CloudVMs.DeployRunnerDirectory: an "
                   "absolute path of letters, digits and /._+@%%,:=- wanted",
                   c->file);
}

static int put_commands(const struct conf *c, struct dispatch_cfg *d,
                        struct err *err)
{
    const char *probe = c->boot_probe;

    if (!SET(c, boot_probe) && all_loopback(c))
        probe = "true";
    if (PUT(d->boot_probe, probe, "Containers.CloudVMs.BootProbeCommand") < 0 ||
        PUT(d->init_command, c->init_command,
            "Containers.CloudVMs.InstanceInitCommand") < 0 ||
        PUT(d->runner_command, c->runner_command,
            "Containers.CrunchRunCommand") < 0 ||
        PUT(d->runner_dir, c->deploy_dir,
            "Containers.CloudVMs.DeployRunnerDirectory") < 0 ||
        PUT(d->runtime_engine, c->runtime_engine,
            "Containers.RuntimeEngine") < 0)
        return -1;
    if (c->runner_args.n > MEM_COUNT(d->runner_args))
        return err_set(err, ERR_CONFIG,
                       "%s: Containers.CrunchRunArgumentsList: more than %zu "
                       "arguments", c->file, MEM_COUNT(d->runner_args));
    for (size_t i = 0; i < c->runner_args.n; i++)
        if (PUT(d->runner_args[i], c->runner_args.v[i],
                "Containers.CrunchRunArgumentsList") < 0)
            return -1;
    d->n_runner_args = (unsigned) c->runner_args.n;
    return check_runner_dir(c, d->runner_dir, err);
}

/* A type for a backend that does not exist would never be used; say so. */
static int check_itypes(const struct conf *c, struct err *err)
{
    for (size_t i = 0; i < c->itypes.n; i++) {
        const struct itype *it = &c->itypes.v[i];
        bool known = !*it->backend;

        for (size_t j = 0; j < c->n_backends; j++)
            known = known || !strcmp(it->backend, c->backends[j].name);
        if (!known)
            return err_set(err, ERR_CONFIG,
                           "%s: InstanceTypes.%s.Backend: there is no "
                           "backend \"%s\"", c->file, it->name, it->backend);
    }
    return 0;
}

static int check_needed(const struct conf *c, struct err *err)
{
    if (!*c->api_url)
        return err_set(err, ERR_CONFIG,
                       "%s: Services.Controller.ExternalURL: the URL of the "
                       "API server is missing", c->file);
    if (!*conf_dispatch_token(c))
        return err_set(err, ERR_CONFIG,
                       "%s: SystemRootToken: a token for the API server is "
                       "missing (or Containers.CloudVMs.APIToken)", c->file);
    if (!*c->private_key)
        return err_set(err, ERR_CONFIG,
                       "%s: Containers.DispatchPrivateKey: an SSH key for "
                       "the instances is missing", c->file);
    if (!c->itypes.n)
        return err_set(err, ERR_CONFIG, "%s: InstanceTypes: there is none",
                       c->file);
    if (*c->state_dir != '/')
        return err_set(err, ERR_CONFIG,
                       "%s: Containers.CloudVMs.StateDirectory: an absolute "
                       "path wanted", c->file);
    return check_itypes(c, err);
}

int conf_dispatch_cfg(const struct conf *c, bool attempts,
                      struct dispatch_cfg *ret, struct err *err)
{
    struct dispatch_cfg *d = ret;

    memset(d, 0, sizeof *d);
    if (check_needed(c, err) < 0)
        return -1;
    text_copy(d->cluster_id, c->cluster_id, sizeof d->cluster_id);
    d->itypes = c->itypes;
    put_limits(c, d);
    put_times(c, d);
    put_need(c, attempts, d);
    if (PUT(d->instance_set_id, c->instance_set_id,
            "Containers.CloudVMs.InstanceSetID") < 0 ||
        PUT(d->api_url,
            *c->api_url_instances ? c->api_url_instances : c->api_url,
            "Containers.CloudVMs.APIURLForInstances") < 0)
        return -1;
    if (put_backends(c, d, err) < 0 || put_tags(c, d, err) < 0)
        return -1;
    return put_commands(c, d, err);
}
