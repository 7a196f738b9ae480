/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Commands for instances, as texts.
 *
 * They are those of the peer wherever it has them, so that images, sudo rules
 * and the real crunch-run keep working; two differ on purpose. Deploying
 * writes to a file of its own, verifies the checksum there and renames: the
 * peer writes in place, and a cut connection leaves half a binary that is
 * found out only at the next check. And the start command's stdin is a few
 * hundred bytes: the peer ships its whole configuration.
 *
 * Called by boot.c, session.c, starts.c, kill.c and creates.c. Pure.
 */

#include "core/dispatch/runner_cmd.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/model/dispatch_cfg.h"
#include "core/model/itypes.h"

#define SECRET_FILE "/var/run/arvados-instance-secret"

static void put_sudo(const char *user, struct buf *out)
{
    if (strcmp(user, "root") != 0)
        buf_puts(out, "sudo ");
}

static void put_quoted(struct buf *out, const char *arg)
{
    buf_putc(out, ' ');
    text_quote_shell(out, arg);
}

void runner_cmd_path(const struct dispatch_cfg *cfg, struct buf *out)
{
    if (cfg->runner)
        buf_printf(out, "%s/crunch-run~%s", cfg->runner_dir,
                   cfg->runner_hash);
    else
        buf_puts(out, cfg->runner_command);
}

static void put_runner(const struct dispatch_cfg *cfg, const char *user,
                       struct buf *out)
{
    put_sudo(user, out);
    runner_cmd_path(cfg, out);
}

void runner_cmd_start(const struct dispatch_cfg *cfg, const char *user,
                      const char *uuid, struct buf *out)
{
    put_runner(cfg, user, out);
    buf_puts(out, " --detach --stdin-config");
    if (cfg->runtime_engine[0] != '\0') {
        CLEANUP(mem_free) char *arg =
            mem_printf("--runtime-engine=%s", cfg->runtime_engine);

        put_quoted(out, arg);
    }
    for (unsigned i = 0; i < cfg->n_runner_args; i++)
        put_quoted(out, cfg->runner_args[i]);
    put_quoted(out, uuid);
}

/* The type as the peer's runner reads it: a JSON text inside Env. */
static void put_itype(const struct itype *it, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_str(&w, "ProviderType", it->provider_type);
    jsn_w_i64(&w, "VCPUs", it->vcpus);
    jsn_w_i64(&w, "RAM", it->ram);
    jsn_w_i64(&w, "IncludedScratch", it->included_scratch);
    jsn_w_i64(&w, "AddedScratch", it->added_scratch);
    jsn_w_f64(&w, "Price", it->price);
    jsn_w_bool(&w, "Preemptible", it->preemptible);
    if (it->gpu_count > 0) {
        jsn_w_obj(&w, "GPU");
        jsn_w_str(&w, "Stack", it->gpu_stack);
        jsn_w_str(&w, "DriverVersion", it->gpu_driver);
        jsn_w_str(&w, "HardwareTarget", it->gpu_target);
        jsn_w_i64(&w, "DeviceCount", it->gpu_count);
        jsn_w_i64(&w, "VRAM", it->gpu_vram);
        jsn_w_end_obj(&w);
    }
    jsn_w_end_obj(&w);
}

/* host[:port] of a URL. */
static void url_host(const char *url, char *out, size_t size)
{
    const char *p = strstr(url, "://");

    text_copy(out, p ? p + 3 : url, size);
    out[strcspn(out, "/?#")] = '\0';
}

int runner_cmd_stdin(const struct dispatch_cfg *cfg, const struct itype *it,
                     const char *token, int64_t attempt, struct buf *out)
{
    CLEANUP(buf_fini) struct buf type;
    char host[sizeof cfg->api_url];
    struct jsn_w w;
    size_t ca = cfg->ca_bundle ? strlen(cfg->ca_bundle) : 0;

    buf_init(&type, RUNNER_STDIN_MAX);
    put_itype(it, &type);
    url_host(cfg->api_url, host, sizeof host);
    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_obj(&w, "Env");
    jsn_w_str(&w, "ARVADOS_API_HOST", host);
    jsn_w_str(&w, "ARVADOS_API_TOKEN", token);
    jsn_w_str(&w, "InstanceType", type.data);
    jsn_w_end_obj(&w);
    jsn_w_obj(&w, "CDC");
    jsn_w_str(&w, "APIURL", cfg->api_url);
    jsn_w_i64(&w, "Attempt", attempt);
    size_t before = out->len;

    if (ca > 0)
        jsn_w_str(&w, "CABundle", cfg->ca_bundle);
    size_t bundle = out->len - before;

    jsn_w_end_obj(&w);
    jsn_w_end_obj(&w);
    return type.over || out->over || out->len - bundle > RUNNER_STDIN_MAX ? -1
                                                                          : 0;
}

void runner_cmd_list(const struct dispatch_cfg *cfg, const char *user,
                     struct buf *out)
{
    put_runner(cfg, user, out);
    buf_puts(out, " --list");
}

void runner_cmd_watch(const struct dispatch_cfg *cfg, const char *user,
                      struct buf *out)
{
    put_runner(cfg, user, out);
    buf_puts(out, " --watch");
}

void runner_cmd_kill(const struct dispatch_cfg *cfg, const char *user,
                     int signum, const char *uuid, struct buf *out)
{
    put_runner(cfg, user, out);
    buf_printf(out, " --kill %d %s", signum, uuid);
}

void runner_cmd_boot_probe(const struct dispatch_cfg *cfg, struct buf *out)
{
    buf_puts(out, cfg->boot_probe[0] != '\0' ? cfg->boot_probe : "true");
}

void runner_cmd_check(const struct dispatch_cfg *cfg, struct buf *out)
{
    buf_puts(out, "md5sum ");
    runner_cmd_path(cfg, out);
}

int runner_cmd_deployed(const struct dispatch_cfg *cfg, const char *out_text)
{
    CLEANUP(buf_fini) struct buf want;

    buf_init(&want, RUNNER_CMD_MAX);
    buf_printf(&want, "%s  ", cfg->runner_hash);
    runner_cmd_path(cfg, &want);
    buf_putc(&want, '\n');
    return strcmp(out_text, want.data) == 0;
}

void runner_cmd_deploy(const struct dispatch_cfg *cfg, const char *user,
                       const char *nonce, struct buf *out)
{
    CLEANUP(buf_fini) struct buf path;
    CLEANUP(mem_free) char *script = NULL;

    buf_init(&path, RUNNER_CMD_MAX);
    runner_cmd_path(cfg, &path);
    script = mem_printf("set -e; umask 022; mkdir -p %s; f=%s; t=$f.%s; "
                        "trap 'rm -f $t' EXIT; cat >$t; "
                        "test \"$(md5sum <$t)\" = \"%s  -\"; "
                        "chmod 0755 $t; mv -f $t $f",
                        cfg->runner_dir, path.data, nonce, cfg->runner_hash);
    put_sudo(user, out);
    buf_puts(out, "sh -c");
    put_quoted(out, script);
}

void runner_cmd_identity(const char *user, struct buf *out)
{
    put_sudo(user, out);
    buf_puts(out, "cat " SECRET_FILE);
}

void runner_cmd_init(const struct dispatch_cfg *cfg, const char *secret,
                     struct buf *out)
{
    buf_printf(out, "umask 0177 && printf %%s %s >" SECRET_FILE
               "; umask 0022\n%s", secret, cfg->init_command);
}
