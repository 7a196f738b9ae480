/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunch-api-server: command line, configuration, signals, exit codes.
 *
 *   crunch-api-server -config FILE     serve, until SIGTERM or SIGINT
 *   crunch-api-server init DIR         make a new service (init.c)
 *
 * Options take one or two dashes, "-o v" or "-o=v", as those of Arvados'
 * programs. Exit codes: 0 ended by a signal or done, 1 something failed, 2
 * usage or configuration.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "core/apiserver/app.h"
#include "core/apiserver/init.h"
#include "core/base/err.h"
#include "core/base/fault.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/conf/conf.h"
#include "core/io/loop.h"
#include "core/io/notify.h"
#include "core/io/url.h"
#include "core/store/store.h"

enum { STOP_MS = 10000 };

#define HELP_INDENT "                        "

/*      name             value    help */
#define OPTIONS(X)                                                            \
    X("config",          "FILE",  "cluster configuration (- is standard "     \
      "input), else\n" HELP_INDENT                                            \
      "$ARVADOS_CONFIG, else /etc/arvados/config.yml")                        \
    X("port-file",       "FILE",  "write the port that is listened on there") \
    X("check-config",    NULL,    "read the configuration, end")              \
    X("address",         "ADDR",  "init: address to listen on; 127.0.0.1")    \
    X("port",            "PORT",  "init: port of the API server; else a "     \
      "free one")                                                             \
    X("dispatch-port",   "PORT",  "init: port of the dispatcher's "           \
      "API; else a free one")                                      \
    X("cluster-id",      "ID",    "init: five characters of [a-z0-9]; else "  \
      "random ones")                                                          \
    X("user",            "NAME",  "init: name of the first user; else that "  \
      "of the caller")                                                        \
    X("version",         NULL,    "print the version, end")                   \
    X("help",            NULL,    "print this, end")

enum option {
    O_CONFIG, O_PORT_FILE, O_CHECK, O_ADDRESS, O_PORT, O_DISPATCH_PORT,
    O_CLUSTER_ID, O_USER, O_VERSION, O_HELP, O_COUNT
};

static const struct {
    const char *name, *value, *help;
} options[] = {
#define X(name, value, help) {name, value, help},
    OPTIONS(X)
#undef X
};

/* Values given; "" for a flag, NULL = not given. */
struct given {
    const char *v[O_COUNT];
    const char *init_dir;
};

/* -------------------------------------------------------- command line -- */

static int usage_error(const char *what, const char *arg)
{
    fprintf(stderr, "crunch-api-server: %s: %s (try -help)\n", arg, what);
    return -1;
}

static int find_option(const char *name, size_t n)
{
    for (int i = 0; i < O_COUNT; i++)
        if (strlen(options[i].name) == n &&
            strncmp(options[i].name, name, n) == 0)
            return i;
    return -1;
}

static int take_option(int argc, char **argv, int *i, struct given *g)
{
    const char *name = argv[*i] + strspn(argv[*i], "-");
    const char *equals = strchr(name, '=');
    int o = find_option(name, equals ? (size_t) (equals - name)
                                     : strlen(name));

    if (o < 0 || name - argv[*i] > 2)
        return usage_error("unknown option", argv[*i]);
    if (!options[o].value) {
        g->v[o] = "";
        return equals ? usage_error("takes no value", argv[*i]) : 0;
    }
    if (!equals && *i + 1 >= argc)
        return usage_error("a value is missing", argv[*i]);
    g->v[o] = equals ? equals + 1 : argv[++*i];
    return 0;
}

static int parse(int argc, char **argv, struct given *g)
{
    int i = 1;

    if (argc > 1 && strcmp(argv[1], "init") == 0) {
        g->init_dir = "";
        i = 2;
    }
    for (; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1]) {
            if (take_option(argc, argv, &i, g) < 0)
                return -1;
        } else if (g->init_dir && !*g->init_dir) {
            g->init_dir = argv[i];
        } else {
            return usage_error("not understood", argv[i]);
        }
    }
    if (g->init_dir && !*g->init_dir)
        return usage_error("a folder is missing", "init");
    return 0;
}

static void print_help(void)
{
    puts("usage: crunch-api-server [-config FILE] [-port-file FILE]\n"
         "       crunch-api-server init DIR [options]\n"
         "Serve the containers API of Arvados.\n");
    for (int i = 0; i < O_COUNT; i++) {
        char left[40];

        snprintf(left, sizeof left, "-%s %s", options[i].name,
                 options[i].value ? options[i].value : "");
        printf("  %-*s%s\n", (int) strlen(HELP_INDENT) - 2, left,
               options[i].help);
    }
    puts("\nExit codes: 0 ended by a signal, 1 failed, 2 usage or "
         "configuration.\nManual: crunch-api-server(8)");
}

/* ------------------------------------------------------- configuration -- */

static int read_listen(const struct conf *conf, struct app_cfg *cfg,
                       struct url *listen, struct err *err)
{
    if (conf->api_listen.n == 0) {
        text_copy(listen->host, "127.0.0.1", sizeof listen->host);
        listen->port = 0;
    } else if (url_parse(conf->api_listen.v[0], listen, err) < 0) {
        return err_prefix(err, "Services.Controller.InternalURLs");
    }
    if (listen->tls)
        return err_set(err, ERR_CONFIG,
                       "Services.Controller.InternalURLs: https is not "
                       "served; put a proxy in front");
    cfg->address = listen->host;
    cfg->port = listen->port;
    return 0;
}

static char *without_slash(const char *url)
{
    size_t n = strlen(url);

    while (n > 0 && url[n - 1] == '/')
        n--;
    return mem_strndup(url, n);
}

static int read_cfg(const struct conf *conf, struct app_cfg *cfg,
                    struct url *listen, struct err *err)
{
    *cfg = (struct app_cfg){
        .root_token = conf->system_root_token,
        .management_token = conf->management_token,
        .external_url = without_slash(conf->api_url),
        .database = conf->as_database,
        .files_dir = conf->as_files,
        .dispatch_url = conf->dispatch_listen.n
                            ? without_slash(conf->dispatch_listen.v[0])
                            : mem_strdup(""),
        .durable = strcmp(conf->as_durability, "full") == 0,
        .max_dispatch_attempts = conf->max_dispatch_attempts,
        .max_retry_attempts = conf->max_retry_attempts,
        .max_items = conf->api_max_items,
        .max_body = conf->api_max_request_size,
        .max_calls = conf->api_max_concurrent + conf->api_max_queued,
        .max_conns = conf->as_max_connections,
        .max_conns_peer = conf->as_max_per_peer,
        .max_rate = conf->as_rate,
        .readers = conf->as_readers,
        .max_file = conf->as_max_file,
        .max_attempt_bytes = conf->as_max_attempt,
        .max_attempt_files = conf->as_max_files,
        .feed_length = conf->as_feed};
    text_copy(cfg->cluster_id, conf->cluster_id, sizeof cfg->cluster_id);
    if (strlen(cfg->root_token) < 16)
        return err_set(err, ERR_CONFIG,
                       "SystemRootToken must have at least 16 characters");
    if (!cfg->durable && strcmp(conf->as_durability, "process") != 0)
        return err_set(err, ERR_CONFIG,
                       "APIServer.Durability must be full or process");
    return read_listen(conf, cfg, listen, err);
}

/* --------------------------------------------------------------- serve -- */

struct server {
    struct conf *conf;
    struct app_cfg cfg;
    struct url listen;
    struct loop *loop;
    struct logger *log;
    struct notify *notify;
    struct app *app;
};

static void on_stopped(void *arg)
{
    struct server *s = arg;

    loop_stop(s->loop);
}

static void on_signal(void *arg, int signum)
{
    struct server *s = arg;

    if (s->app->stopping)
        return;
    log_event(s->log, LOG_INFO, "stopping", "Reason",
              signum == SIGTERM ? "SIGTERM" : "SIGINT", NULL);
    notify_send(s->notify, "STOPPING=1");
    app_stop(s->app, STOP_MS, on_stopped, s);
}

static void on_warning(void *arg, const char *text)
{
    struct logger *log = arg;

    log_event(log, LOG_WARN, text, NULL);
}

/* Whole or not at all: whoever waits for it reads it at once. */
static int write_port_file(const char *path, int port, struct err *err)
{
    CLEANUP(mem_free) char *tmp = mem_printf("%s.tmp", path);
    FILE *f = fopen(tmp, "we");

    if (!f)
        return err_set_errno(err, errno, "cannot write %s", tmp);
    fprintf(f, "%d\n", port);
    if (fclose(f) != 0 || rename(tmp, path) < 0)
        return err_set_errno(err, errno, "cannot write %s", path);
    return 0;
}

static struct logger *make_logger(const struct conf *conf, struct err *err)
{
    int level = log_level_of(conf->log_level);
    bool text = strcmp(conf->log_format, "text") == 0;
    struct logger *log;

    if (level < 0 || (!text && strcmp(conf->log_format, "json") != 0)) {
        err_set(err, ERR_CONFIG, "SystemLogs: LogLevel or Format is unknown");
        return NULL;
    }
    log = logger_create(STDERR_FILENO, text ? LOG_TEXT : LOG_JSON, level);
    logger_hide(log, conf->system_root_token);
    logger_hide(log, conf->management_token);
    return log;
}

static int start(struct server *s, const struct given *g, struct err *err)
{
    struct loop *l = s->loop = loop_create(err);

    if (!l)
        return -1;
    s->notify = notify_create(l);
    if (!(s->app = app_create(l, &s->cfg, s->log, err)) ||
        loop_signal(l, SIGTERM, on_signal, s, err) < 0 ||
        loop_signal(l, SIGINT, on_signal, s, err) < 0)
        return -1;
    if (g->v[O_PORT_FILE] &&
        write_port_file(g->v[O_PORT_FILE], app_port(s->app), err) < 0)
        return -1;
    return 0;
}

static void announce(struct server *s)
{
    char port[16];

    snprintf(port, sizeof port, "%d", app_port(s->app));
    log_event(s->log, LOG_INFO, "serving", "ClusterID", s->cfg.cluster_id,
              "Address", s->cfg.address, "Port", port, "Durability",
              store_durability(s->app->store), "Version", PACKAGE_VERSION,
              NULL);
    notify_send(s->notify, "READY=1\nSTATUS=serving on port %s", port);
    notify_start_watchdog(s->notify);
}

static void server_fini(struct server *s)
{
    app_destroy(s->app);
    notify_destroy(s->notify);
    loop_destroy(s->loop);
    logger_destroy(s->log);
    free(s->cfg.external_url);
    free((char *) (uintptr_t) s->cfg.dispatch_url);
    conf_destroy(s->conf);
}

static int fail(const struct err *err)
{
    fprintf(stderr, "crunch-api-server: %s\n", err->text);
    return err->class == ERR_CONFIG ? 2 : 1;
}

static int serve(const struct given *g)
{
    CLEANUP(server_fini) struct server s = {0};
    const char *path = g->v[O_CONFIG] ? g->v[O_CONFIG] : conf_default_path();
    struct logger *early = logger_create(STDERR_FILENO, LOG_TEXT, LOG_WARN);
    struct err err = {0};
    int rc = conf_load(path, on_warning, early, &s.conf, &err);

    logger_destroy(early);
    if (rc < 0) {
        fprintf(stderr, "crunch-api-server: %s\n", err.text);
        return 2;
    }
    if (read_cfg(s.conf, &s.cfg, &s.listen, &err) < 0)
        return fail(&err);
    if (g->v[O_CHECK])
        return 0;
    signal(SIGPIPE, SIG_IGN);
    umask(077);
    if (fault_init(&err) < 0 || !(s.log = make_logger(s.conf, &err)) ||
        start(&s, g, &err) < 0)
        return fail(&err);
    announce(&s);
    loop_run(s.loop);
    log_event(s.log, LOG_INFO, "stopped", NULL);
    return 0;
}

static int run_init(const struct given *g)
{
    struct init_opts opts = {.dir = g->init_dir, .address = g->v[O_ADDRESS],
                             .cluster_id = g->v[O_CLUSTER_ID],
                             .user = g->v[O_USER]};
    struct err err = {0};

    if (g->v[O_PORT] && text_parse_i64(g->v[O_PORT], &opts.port, &err) < 0)
        return fail(&err), 2;
    if (g->v[O_DISPATCH_PORT] &&
        text_parse_i64(g->v[O_DISPATCH_PORT], &opts.dispatch_port, &err) < 0)
        return fail(&err), 2;
    umask(077);
    if (init_run(&opts, &err) < 0)
        return fail(&err);
    return 0;
}

int main(int argc, char **argv)
{
    struct given g = {0};

    if (parse(argc, argv, &g) < 0)
        return 2;
    if (g.v[O_HELP]) {
        print_help();
        return 0;
    }
    if (g.v[O_VERSION]) {
        puts("crunch-api-server " PACKAGE_VERSION "\n"
             "Licence Apache-2.0. There is no warranty.");
        return 0;
    }
    return g.init_dir ? run_init(&g) : serve(&g);
}
