/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunch-dispatch-cloud: command line and exit codes.
 *
 * The options are those of arvados-dispatch-cloud (one or two dashes, "-o v"
 * or "-o=v"), so that a site's unit files keep working; those that have no
 * meaning here are accepted with a warning. Exit codes: 0 after SIGTERM, 1
 * something failed, 2 usage or configuration (systemd does not restart then).
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/base/err.h"
#include "core/base/fault.h"
#include "core/base/mem.h"
#include "core/conf/conf.h"
#include "core/dispatcher/app.h"
#include "core/plugin/preflight.h"

#define HELP_INDENT "                      "

enum option_kind { OPT_VALUE, OPT_FLAG, OPT_IGNORED, OPT_IGNORED_VALUE };

/*      name                     kind             help */
#define OPTIONS(X)                                                            \
    X("config",               OPT_VALUE,                                      \
      "FILE  cluster configuration (- is standard input), else\n"             \
      HELP_INDENT "$ARVADOS_CONFIG, else /etc/arvados/config.yml")            \
    X("check-config",         OPT_FLAG,                                       \
      "read the configuration, print the values in force, end")               \
    X("version",              OPT_FLAG, "print the version, end")             \
    X("help",                 OPT_FLAG, "print this, end")                    \
    X("trust-build-tree",     OPT_FLAG,                                       \
      "tests only: load drivers whose folders others may write to")           \
    X("pprof",                OPT_IGNORED_VALUE, "ADDR  accepted, ignored")   \
    X("skip-legacy",          OPT_IGNORED, "accepted, ignored")               \
    X("legacy-crunch-dispatch-slurm-config", OPT_IGNORED_VALUE,               \
      "FILE  accepted, ignored")                                              \
    X("legacy-git-httpd-config", OPT_IGNORED_VALUE, "FILE  accepted, ignored") \
    X("legacy-keepbalance-config", OPT_IGNORED_VALUE,                         \
      "FILE  accepted, ignored")                                              \
    X("legacy-keepproxy-config", OPT_IGNORED_VALUE,                           \
      "FILE  accepted, ignored")                                              \
    X("legacy-keepstore-config", OPT_IGNORED_VALUE,                           \
      "FILE  accepted, ignored")                                              \
    X("legacy-keepweb-config", OPT_IGNORED_VALUE, "FILE  accepted, ignored")  \
    X("legacy-ws-config",     OPT_IGNORED_VALUE, "FILE  accepted, ignored")

static const struct option_row {
    const char *name;
    enum option_kind kind;
    const char *help;
} options[] = {
#define X(name, kind, help) { name, kind, help },
    OPTIONS(X)
#undef X
};

struct given {
    const char *config;
    bool check, version, help, trust;
};

static int usage_error(const char *what, const char *arg)
{
    fprintf(stderr, "crunch-dispatch-cloud: %s: %s (try -help)\n", arg, what);
    return -1;
}

/* Help begins with the name of the value, if any, and two spaces. */
static void print_option(const struct option_row *row)
{
    const char *gap = strstr(row->help, "  ");
    int n = row->kind == OPT_VALUE && gap ? (int) (gap - row->help) : 0;
    char left[40];

    snprintf(left, sizeof left, "-%s %.*s", row->name, n, row->help);
    printf("  %-*s%s\n", (int) strlen(HELP_INDENT) - 2, left,
           row->help + (n ? n + 2 : 0));
}

static void print_help(void)
{
    puts("usage: crunch-dispatch-cloud [-config FILE]\n"
         "Run queued containers on cloud instances.\n");
    for (size_t i = 0; i < MEM_COUNT(options); i++)
        if (options[i].kind < OPT_IGNORED)
            print_option(&options[i]);
    puts("Options of Arvados' dispatcher that have no use here (-pprof, "
         "-skip-legacy,\n-legacy-*-config) are accepted and ignored.");
    puts("\nExit codes: 0 ended by a signal, 1 failed, 2 usage or "
         "configuration.\nManual: crunch-dispatch-cloud(8), "
         "crunch-dispatch-cloud.yml(5)");
}

static void take(struct given *g, const struct option_row *row,
                 const char *value)
{
    if (row->kind >= OPT_IGNORED)
        fprintf(stderr, "crunch-dispatch-cloud: -%s: ignored\n", row->name);
    else if (!strcmp(row->name, "config"))
        g->config = value;
    else if (!strcmp(row->name, "check-config"))
        g->check = true;
    else if (!strcmp(row->name, "version"))
        g->version = true;
    else if (!strcmp(row->name, "help"))
        g->help = true;
    else
        g->trust = true;
}

static const struct option_row *find_option(const char *name, size_t n)
{
    for (size_t i = 0; i < MEM_COUNT(options); i++)
        if (strlen(options[i].name) == n &&
            !strncmp(options[i].name, name, n))
            return &options[i];
    return NULL;
}

static int parse(int argc, char **argv, struct given *g)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i] + strspn(argv[i], "-"), *equals, *value;
        const struct option_row *row;
        size_t dashes = (size_t) (name - argv[i]);
        bool takes_value;

        if (dashes < 1 || dashes > 2)
            return usage_error("no arguments are taken", argv[i]);
        equals = strchr(name, '=');
        row = find_option(name, equals ? (size_t) (equals - name)
                                       : strlen(name));
        if (!row)
            return usage_error("unknown option", argv[i]);
        takes_value = row->kind == OPT_VALUE || row->kind == OPT_IGNORED_VALUE;
        if (!takes_value && equals)
            return usage_error("takes no value", argv[i]);
        value = equals ? equals + 1 : NULL;
        if (takes_value && !value && i + 1 < argc)
            value = argv[++i];
        if (takes_value && !value)
            return usage_error("a value is missing", argv[i]);
        take(g, row, value);
    }
    return 0;
}

static int run(const struct given *g)
{
    struct app_options o = { g->config, g->trust };
    struct err err;
    struct app *app;
    int rc;

    /* Threads that call drivers need memory for moments only, and never all
     * at once: an arena for each would multiply what a long list leaves. */
    mallopt(M_ARENA_MAX, 2);
    if (fault_init(&err) < 0) {
        fprintf(stderr, "crunch-dispatch-cloud: %s\n", err.text);
        return 2;
    }
    app = app_create(&o, &err);
    if (!app)
        return err.class == ERR_CONFIG ? 2 : 1;
    rc = app_run(app);
    app_destroy(app);
    return rc;
}

int main(int argc, char **argv)
{
    struct given g = { .config = conf_default_path() };
    int rc = preflight_child_main(argc, argv);

    if (rc >= 0)
        return rc;
    if (parse(argc, argv, &g) < 0)
        return 2;
    if (g.help) {
        print_help();
        return 0;
    }
    if (g.version) {
        puts("crunch-dispatch-cloud " PACKAGE_VERSION "\n"
             "Licence Apache-2.0. There is no warranty.");
        return 0;
    }
    if (g.check)
        return app_check_config(g.config);
    return run(&g);
}
