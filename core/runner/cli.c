/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line.
 *
 * The syntax is that of Go's flag package, which the real crunch-run uses:
 * getopt_long would take `-detach` for a bundle of short options. One table
 * names every option with the kind of its argument; apply() gives the few that
 * matter their meaning. What remains to be checked (a uuid where one is
 * needed, one mode at a time) is checked once, at the end.
 *
 * Called by main() before anything else is done; touches nothing outside.
 */
#include "core/runner/cli.h"

#include <signal.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mem.h"

enum takes { TAKES_BOOL, TAKES_VALUE };

enum option {
    OPT_IGNORED,
    OPT_DETACH,
    OPT_LIST,
    OPT_WATCH,
    OPT_KILL,
    OPT_STDIN_CONFIG,
    OPT_MEMORY_LIMIT,
    OPT_NETWORKING,
    OPT_VERSION,
    OPT_HELP,
};

static const struct {
    const char *name;
    enum takes takes;
    enum option option;
} options[] = {
#define X(name, takes, option) {name, TAKES_##takes, OPT_##option},
    CLI_OPTIONS(X)
#undef X
};

const char cli_usage[] =
    "usage: crunch-run [--detach] --stdin-config UUID   < config.json\n"
    "       crunch-run --list\n"
    "       crunch-run --watch\n"
    "       crunch-run --kill SIGNAL UUID\n"
    "       crunch-run --version | --help\n"
    "\n"
    "Supervise one container on this machine; see crunch-run(1).\n"
    "Further options of Arvados' crunch-run are accepted and ignored.\n";

static int find(const char *name, size_t len)
{
    for (size_t i = 0; i < MEM_COUNT(options); i++) {
        if (strlen(options[i].name) == len &&
            strncmp(options[i].name, name, len) == 0)
            return (int) i;
    }
    return -1;
}

static int parse_bool(const char *s, bool *ret, struct err *err)
{
    if (strcmp(s, "true") == 0 || strcmp(s, "1") == 0)
        *ret = true;
    else if (strcmp(s, "false") == 0 || strcmp(s, "0") == 0)
        *ret = false;
    else
        return err_set(err, ERR_INVALID, "\"%s\" is neither true nor false",
                       s);
    return 0;
}

/* The modes exclude each other; version and help win over everything. */
static int set_mode(struct cli *cli, enum cli_mode mode, struct err *err)
{
    if (cli->mode == CLI_HELP || cli->mode == CLI_VERSION)
        return 0;
    if (cli->mode != CLI_RUN && cli->mode != mode && mode < CLI_VERSION)
        return err_set(err, ERR_INVALID,
                       "--detach, --list, --watch and --kill exclude each "
                       "other");
    cli->mode = mode;
    return 0;
}

static int parse_signal(const char *s, int *ret, struct err *err)
{
    int64_t n;

    if (text_parse_i64(s, &n, err) < 0)
        return -1;
    if (n < 0 || n >= NSIG)
        return err_set(err, ERR_INVALID, "%s is not a signal number", s);
    *ret = (int) n;
    return 0;
}

static int apply(struct cli *cli, enum option option, bool on,
                 const char *value, struct err *err)
{
    switch (option) {
    case OPT_DETACH:
        return on ? set_mode(cli, CLI_DETACH, err) : 0;
    case OPT_LIST:
        return on ? set_mode(cli, CLI_LIST, err) : 0;
    case OPT_WATCH:
        return on ? set_mode(cli, CLI_WATCH, err) : 0;
    case OPT_VERSION:
        return on ? set_mode(cli, CLI_VERSION, err) : 0;
    case OPT_HELP:
        return on ? set_mode(cli, CLI_HELP, err) : 0;
    case OPT_KILL:
        if (parse_signal(value, &cli->signum, err) < 0)
            return -1;
        return set_mode(cli, CLI_KILL, err);
    case OPT_STDIN_CONFIG:
        cli->stdin_config = on;
        return 0;
    case OPT_MEMORY_LIMIT:
        cli->memory_limit = on;
        return 0;
    case OPT_NETWORKING:
        cli->always_network = strcmp(value, "always") == 0;
        return 0;
    case OPT_IGNORED:
        return 0;
    }
    return 0;
}

/* One option, perhaps with the next argument as its value (then *i moves). */
static int parse_option(struct cli *cli, int argc, char **argv, int *i,
                        struct err *err)
{
    const char *arg = argv[*i];
    const char *name = arg + (arg[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    const char *value = equals ? equals + 1 : NULL;
    int found = find(name, equals ? (size_t) (equals - name) : strlen(name));
    bool on = true;

    if (found < 0)
        return err_set(err, ERR_INVALID, "unknown option %s", arg);
    if (options[found].takes == TAKES_VALUE && !value) {
        if (*i + 1 >= argc)
            return err_set(err, ERR_INVALID, "%s needs a value", arg);
        value = argv[++*i];
    }
    if (options[found].takes == TAKES_BOOL && value &&
        parse_bool(value, &on, err) < 0)
        return err_prefix(err, "%s", arg);
    if (apply(cli, options[found].option, on, value, err) < 0)
        return err_prefix(err, "%s", arg);
    return 0;
}

static int check(const struct cli *cli, int argc, char **argv, int i,
                 struct err *err)
{
    bool wants = cli->mode == CLI_RUN || cli->mode == CLI_DETACH ||
                 cli->mode == CLI_KILL;

    if (cli->mode == CLI_VERSION || cli->mode == CLI_HELP)
        return 0;
    if (argc - i != (wants ? 1 : 0))
        return err_set(err, ERR_INVALID, wants ? "one container uuid is needed"
                                               : "no uuid belongs here");
    if (wants && !text_is_uuid(argv[i], "dz642"))
        return err_set(err, ERR_INVALID, "\"%s\" is not a container uuid",
                       argv[i]);
    if ((cli->mode == CLI_RUN || cli->mode == CLI_DETACH) &&
        !cli->stdin_config)
        return err_set(err, ERR_INVALID, "--stdin-config is needed");
    return 0;
}

int cli_parse(int argc, char **argv, struct cli *ret, struct err *err)
{
    struct cli cli = {.mode = CLI_RUN, .memory_limit = true};
    int i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (argv[i][0] != '-' || argv[i][1] == '\0')
            break;
        if (parse_option(&cli, argc, argv, &i, err) < 0)
            return -1;
    }
    if (check(&cli, argc, argv, i, err) < 0)
        return -1;
    if (cli.mode == CLI_RUN || cli.mode == CLI_DETACH || cli.mode == CLI_KILL)
        text_copy(cli.uuid, argv[i], sizeof cli.uuid);
    *ret = cli;
    return 0;
}
