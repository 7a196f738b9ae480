/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The composition root of crunch-dispatch-cloud.
 *
 *   app_create   configuration -> log -> state directory (locked) -> journal
 *                -> drivers -> SSH -> API client -> management API
 *   app_run      asks the API server who we are, again and again until it
 *                answers; what it is decides three defaults and which runner
 *                is deployed; then core/dispatch is made and started
 *   signals      SIGTERM, SIGINT: no new effects, wait for what is in flight,
 *                leave containers and instances alone, exit 0
 *   app_destroy  the reverse
 *
 * This is the only file of the dispatcher that knows concrete types on both
 * sides of the ports. It decides nothing about containers or instances.
 */
#include "core/dispatcher/app.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arvados/api_client.h"
#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/metric.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/conf/conf.h"
#include "core/dispatch/dispatch.h"
#include "core/dispatcher/admin.h"
#include "core/io/realports.h"
#include "core/dispatcher/runner_file.h"
#include "core/io/crypt.h"
#include "core/io/loop.h"
#include "core/io/notify.h"
#include "core/plugin/iset.h"
#include "core/plugin/registry.h"
#include "core/port/api.h"
#include "core/port/clock.h"
#include "core/port/entropy.h"
#include "core/ssh/ssh_port.h"
#include "core/store/journal.h"
#include "core/store/state_dir.h"

enum { APP_RETRY_US = 1000 * 1000, APP_KEY_MAX = 64 << 10 };

struct app {
    struct conf *conf;
    struct logger *log;
    struct metrics *metrics;
    struct loop *loop;
    struct notify *notify;
    int lock_fd;
    struct journal *journal;
    struct registry *registry;
    struct iset *isets[DISPATCH_BACKENDS];
    struct cloud_port *clouds[DISPATCH_BACKENDS];
    struct ssh_port *ssh;
    struct api_client *api;
    struct clock_port clock;
    struct entropy_port entropy;
    struct admin *admin;
    struct dispatch_cfg cfg;
    char *runner;
    struct dispatch *dispatch;
    struct loop_timer *retry;
    char last_problem[512];
    bool asking, stopping;
    int exit_code;
};

/* --- the end ------------------------------------------------------------------ */

static void on_admin_stopped(void *arg)
{
    struct app *a = arg;

    loop_stop(a->loop);
}

static void on_dispatch_stopped(void *arg)
{
    struct app *a = arg;

    admin_set_dispatch(a->admin, NULL);
    admin_stop(a->admin, on_admin_stopped, a);
}

static void stop(struct app *a)
{
    if (a->stopping)
        return;
    a->stopping = true;
    notify_send(a->notify, "STOPPING=1\nSTATUS=waiting for calls in flight");
    loop_timer_cancel(a->retry);
    a->retry = NULL;
    if (a->dispatch)
        dispatch_stop(a->dispatch, on_dispatch_stopped, a);
    else
        on_dispatch_stopped(a);
}

static void on_signal(void *arg, int signum)
{
    struct app *a = arg;

    log_event(a->log, LOG_INFO,
              a->stopping ? "asked again to end: ending at once"
                          : "ending; containers and instances are left alone",
              "Signal", strsignal(signum), NULL);
    if (a->stopping)
        loop_stop(a->loop);
    stop(a);
}

static void fatal(struct app *a, const struct err *err)
{
    log_failure(a->log, LOG_ERROR, err, "cannot go on", NULL);
    notify_send(a->notify, "STATUS=%s", err->text);
    a->exit_code = err->class == ERR_CONFIG ? 2 : 1;
    stop(a);
}

/* --- the beginning: who are we, then dispatch --------------------------------- */

static void on_ready(void *arg)
{
    struct app *a = arg;

    log_event(a->log, LOG_INFO, "dispatching", NULL);
    notify_send(a->notify, "STATUS=dispatching");
}

static void on_fatal(void *arg, const struct err *err)
{
    fatal(arg, err);
}

/* Arvados' rule: the uuid of a v2 token, else the MD5 of the token. */
static void default_set_id(const struct conf *conf, struct dispatch_cfg *cfg)
{
    const char *token = conf_dispatch_token(conf);

    if (*cfg->instance_set_id)
        return;
    if (!strncmp(token, "v2/", 3))
        snprintf(cfg->instance_set_id, sizeof cfg->instance_set_id, "%.*s",
                 (int) strcspn(token + 3, "/"), token + 3);
    else
        crypt_md5_hex(token, strlen(token), cfg->instance_set_id);
}

static int fill_cfg(struct app *a, bool attempts, struct err *err)
{
    if (conf_dispatch_cfg(a->conf, attempts, &a->cfg, err) < 0 ||
        runner_file_load(a->conf, attempts, &a->cfg, &a->runner, err) < 0)
        return -1;
    default_set_id(a->conf, &a->cfg);
    if (a->conf->deploy_key &&
        text_copy(a->cfg.public_key, ssh_port_public_key(a->ssh),
                  sizeof a->cfg.public_key) >= sizeof a->cfg.public_key)
        return err_set(err, ERR_CONFIG,
                       "the public part of Containers.DispatchPrivateKey is "
                       "too long");
    return 0;
}

/* Without attempts nothing fences a runner that is out of sight. */
static int check_features(uint32_t features, struct err *err)
{
    if (features & API_ATTEMPTS)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "the API server has no attempts (is it an Arvados "
                   "cluster's?): containers could not be released safely; "
                   "this version works with crunch-api-server only");
}

static void start_dispatch(struct app *a, uint32_t features)
{
    struct dispatch_ports ports = {
        .clock = &a->clock, .entropy = &a->entropy,
        .journal = journal_port(a->journal), .api = api_client_port(a->api),
        .exec = ssh_port_exec(a->ssh), .clouds = a->clouds,
    };
    struct err err;

    if (check_features(features, &err) < 0 ||
        fill_cfg(a, features & API_ATTEMPTS, &err) < 0) {
        fatal(a, &err);
        return;
    }
    a->dispatch = dispatch_create(&a->cfg, &ports, a->log, a->metrics);
    admin_set_dispatch(a->admin, a->dispatch);
    dispatch_start(a->dispatch, on_ready, on_fatal, a);
}

static void ask(void *arg);

/* The API server may come up after us: say so once per kind of trouble. */
static void ask_again(struct app *a, const struct err *err)
{
    if (strcmp(a->last_problem, err->text) != 0) {
        log_failure(a->log, LOG_WARN, err, "waiting for the API server", NULL);
        notify_send(a->notify, "STATUS=waiting for the API server: %s",
                    err->text);
        text_copy(a->last_problem, err->text, sizeof a->last_problem);
    }
    admin_set_problem(a->admin, err->text);
    a->retry = loop_timer_arm(a->loop, APP_RETRY_US, ask, a);
}

static void on_whoami(void *arg, const struct api_whoami_result *r)
{
    struct app *a = arg;

    a->asking = false;
    if (a->stopping)
        return;
    if (r->r.outcome == OP_DONE)
        start_dispatch(a, r->features);
    else if (r->r.err.class == ERR_AUTH)
        fatal(a, &r->r.err);
    else
        ask_again(a, &r->r.err);
}

static void ask(void *arg)
{
    struct app *a = arg;
    struct api_port *api = api_client_port(a->api);

    a->retry = NULL;
    a->asking = true;
    api->whoami(api, 10000, on_whoami, a);
}

/* --- making the parts ----------------------------------------------------------- */

struct warnings {
    struct buf text;
};

static void keep_warning(void *arg, const char *text)
{
    struct warnings *w = arg;

    buf_puts(&w->text, text);
    buf_putc(&w->text, 0);
}

static int make_log(struct app *a, const struct warnings *w)
{
    int level = log_level_of(a->conf->log_level);

    a->log = logger_create(2, strcmp(a->conf->log_format, "text") ? LOG_JSON
                                                                  : LOG_TEXT,
                           level < 0 ? LOG_INFO : (enum log_level) level);
    logger_hide(a->log, a->conf->system_root_token);
    logger_hide(a->log, a->conf->management_token);
    logger_hide(a->log, a->conf->api_token);
    for (size_t i = 0; i < w->text.len; i += strlen(w->text.data + i) + 1)
        log_event(a->log, LOG_WARN, w->text.data + i, NULL);
    return 0;
}

static int read_conf(struct app *a, const char *path, struct err *err)
{
    struct warnings w;
    int rc;

    buf_init(&w.text, 64 << 10);
    rc = conf_load(path, keep_warning, &w, &a->conf, err);
    if (rc == 0)
        rc = make_log(a, &w);
    buf_fini(&w.text);
    /* Settings that contradict each other are found now, not later. */
    if (rc == 0)
        rc = conf_dispatch_cfg(a->conf, true, &a->cfg, err);
    return rc;
}

static int open_state(struct app *a, struct err *err)
{
    CLEANUP(mem_free) char *file =
        mem_printf("%s/journal.sqlite", a->conf->state_dir);

    a->lock_fd = state_dir_lock(a->conf->state_dir, err);
    if (a->lock_fd < 0)
        return -1;
    a->journal = journal_open(a->loop, file, err);
    return a->journal ? 0 : -1;
}

static int make_iset(struct app *a, size_t i, struct err *err)
{
    const struct conf_backend *b = &a->conf->backends[i];
    const struct driver *driver = registry_load(a->registry, b->driver, err);
    CLEANUP(jsn_cleanup) struct jsn *params = NULL;
    struct iset_options o = {
        .loop = a->loop, .log = a->log, .backend = b->name,
        .set_id = a->cfg.instance_set_id, .state_dir = a->conf->state_dir,
    };

    if (!driver) {
        if (err)
            err->class = ERR_CONFIG; /* a missing file is one, too */
        return -1;
    }
    params = jsn_parse(b->parameters, strlen(b->parameters), err);
    if (!params)
        return -1;
    o.params = params;
    a->isets[i] = iset_create(driver, &o, err);
    if (!a->isets[i])
        return err_prefix(err, "backend %s", b->name);
    a->clouds[i] = iset_port(a->isets[i]);
    return 0;
}

static int load_drivers(struct app *a, const struct app_options *o,
                        struct err *err)
{
    struct registry_options ro = {
        .log = a->log,
        .dir = *a->conf->driver_dir ? a->conf->driver_dir : NULL,
        .trust_build_tree = o->trust_build_tree,
    };

    default_set_id(a->conf, &a->cfg);
    a->registry = registry_create(&ro);
    for (size_t i = 0; i < a->conf->n_backends; i++)
        if (make_iset(a, i, err) < 0)
            return -1;
    return 0;
}

/* The key itself, or file:///path to it. */
static int make_ssh(struct app *a, struct err *err)
{
    const char *text = a->conf->private_key;
    CLEANUP(secret_cleanup) char *file = NULL;

    if (!strncmp(text, "file://", 7)) {
        file = secret_read(text + 7, APP_KEY_MAX, err);
        if (!file) {
            if (err)
                err->class = ERR_CONFIG; /* a missing file is one, too */
            return err_prefix(err, "Containers.DispatchPrivateKey");
        }
        text = file;
    }
    a->ssh = ssh_port_create(a->loop, text, (int) a->conf->ssh_port, err);
    return a->ssh ? 0 : err_prefix(err, "Containers.DispatchPrivateKey");
}

static int make_api(struct app *a, struct err *err)
{
    struct api_client_cfg cfg = { .url = a->conf->api_url,
                                  .token = conf_dispatch_token(a->conf) };

    a->api = api_client_create(a->loop, &cfg, err);
    return a->api ? 0 : err_prefix(err, "Services.Controller.ExternalURL");
}

/* The first address of Services.DispatchCloud.InternalURLs that can be bound
 * here; in Arvados too, the list may name several hosts. */
static int make_admin(struct app *a, struct err *err)
{
    const struct conf_list *urls = &a->conf->dispatch_listen;
    struct admin_options o = {
        .loop = a->loop, .log = a->log, .metrics = a->metrics,
        .token = a->conf->management_token, .cluster_id = a->cfg.cluster_id,
    };
    const char *chosen = getenv("ARVADOS_SERVICE_INTERNAL_URL");

    err_set(err, ERR_CONFIG,
            "Services.DispatchCloud.InternalURLs: there is none");
    for (size_t i = 0; !a->admin && i < urls->n; i++) {
        if (chosen && strcmp(chosen, urls->v[i]) != 0)
            continue;
        o.url = urls->v[i];
        a->admin = admin_create(&o, err);
    }
    if (!a->admin)
        return err_prefix(err, "management API");
    log_event(a->log, LOG_INFO, "listening", "URL", o.url, "Service",
              "crunch-dispatch-cloud", NULL);
    return 0;
}

static int catch_signals(struct app *a, struct err *err)
{
    signal(SIGPIPE, SIG_IGN);
    if (loop_signal(a->loop, SIGTERM, on_signal, a, err) < 0)
        return -1;
    return loop_signal(a->loop, SIGINT, on_signal, a, err);
}

struct app *app_create(const struct app_options *o, struct err *err)
{
    struct app *a = MEM_NEW(struct app);

    a->lock_fd = -1;
    a->metrics = metrics_create();
    if (read_conf(a, o->config, err) < 0)
        goto error;
    a->loop = loop_create(err);
    if (!a->loop)
        goto error;
    a->notify = notify_create(a->loop);
    realports_clock(&a->clock, a->loop);
    realports_entropy(&a->entropy);
    if (open_state(a, err) < 0 || load_drivers(a, o, err) < 0 ||
        make_ssh(a, err) < 0 || make_api(a, err) < 0 ||
        make_admin(a, err) < 0 || catch_signals(a, err) < 0)
        goto error;
    return a;
error:
    if (a->log)
        log_failure(a->log, LOG_ERROR, err, "cannot start", NULL);
    else
        fprintf(stderr, "crunch-dispatch-cloud: %s\n", err->text);
    app_destroy(a);
    return NULL;
}

int app_run(struct app *a)
{
    notify_send(a->notify, "READY=1\nSTATUS=asking the API server");
    notify_start_watchdog(a->notify);
    ask(a);
    loop_run(a->loop);
    log_event(a->log, LOG_INFO, "ended", NULL);
    return a->exit_code;
}

void app_destroy(struct app *a)
{
    if (!a)
        return;
    dispatch_destroy(a->dispatch);
    admin_destroy(a->admin);
    api_client_destroy(a->api);
    ssh_port_destroy(a->ssh);
    for (size_t i = 0; i < DISPATCH_BACKENDS; i++)
        iset_destroy(a->isets[i], 1000);
    registry_destroy(a->registry);
    journal_close(a->journal);
    mem_close(&a->lock_fd);
    notify_destroy(a->notify);
    loop_destroy(a->loop);
    metrics_destroy(a->metrics);
    logger_destroy(a->log);
    conf_destroy(a->conf);
    free(a->runner);
    free(a);
}

/* --- -check-config --------------------------------------------------------------- */

static void print_warning(void *arg, const char *text)
{
    (void) arg;
    fprintf(stderr, "crunch-dispatch-cloud: warning: %s\n", text);
}

int app_check_config(const char *path)
{
    struct conf *conf = NULL;
    CLEANUP(mem_free) struct dispatch_cfg *cfg =
        MEM_NEW(struct dispatch_cfg);
    CLEANUP(buf_fini) struct buf out;
    struct err err;
    int rc = conf_load(path, print_warning, NULL, &conf, &err);

    buf_init(&out, 1 << 20);
    if (rc == 0)
        rc = conf_dispatch_cfg(conf, true, cfg, &err);
    if (rc < 0) {
        fprintf(stderr, "crunch-dispatch-cloud: %s\n", err.text);
    } else {
        conf_print(conf, &out);
        fwrite(out.data, 1, out.len, stdout);
    }
    conf_destroy(conf);
    return rc < 0 ? 2 : 0;
}
