/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunchctl: parsing of the command line by the verb table, help, and the
 * exit codes of errors. A verb's own work is in the file of its name.
 *
 *   crunchctl VERB [options] [arguments]
 *
 * Options may stand before or after arguments, up to "--"; for `submit` the
 * first argument ends them, because what follows is the container's command.
 * Credentials never come from the command line (cred.h).
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/ctl/client.h"
#include "core/ctl/cred.h"
#include "core/ctl/ctl.h"
#include "core/ctl/help.h"
#include "core/ctl/verbs.h"

int ctl_fail(int code, const char *fmt, ...)
{
    char text[2048];
    struct buf b;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_init(&b, 4 * sizeof text);
    text_quote_terminal(&b, text, strlen(text));
    fprintf(stderr, "crunchctl: %s\n", b.data);
    buf_fini(&b);
    return code;
}

int ctl_fail_err(const struct err *err)
{
    static const struct {
        enum err_class class;
        int code;
    } codes[] = {
        { ERR_CONFIG, CTL_USAGE },          { ERR_NOT_FOUND, CTL_NOT_FOUND },
        { ERR_AUTH, CTL_REFUSED },          { ERR_INVALID, CTL_REFUSED },
        { ERR_CONFLICT, CTL_REFUSED },      { ERR_RATE_LIMITED, CTL_REFUSED },
        { ERR_TRANSIENT, CTL_UNREACHABLE }, { ERR_TIMEOUT, CTL_UNREACHABLE },
    };

    for (size_t i = 0; i < MEM_COUNT(codes); i++)
        if (codes[i].class == err->class)
            return ctl_fail(codes[i].code, "%s", err->text);
    return ctl_fail(CTL_FAILED, "%s", err->text);
}

int ctl_usage(const struct ctl *ctl, const char *what)
{
    return ctl_fail(CTL_USAGE, "%s: %s (try crunchctl %s --help)",
                    ctl->verb->name, what, ctl->verb->name);
}

/* --- options ------------------------------------------------------------------ */

const char *ctl_opt(const struct ctl *ctl, const char *name)
{
    for (size_t i = ctl->n_opts; i-- > 0;)
        if (!strcmp(ctl->opts[i].name, name))
            return ctl->opts[i].value;
    return NULL;
}

bool ctl_has(const struct ctl *ctl, const char *name)
{
    return ctl_opt(ctl, name) != NULL;
}

const char *ctl_opt_at(const struct ctl *ctl, const char *name, size_t i)
{
    for (size_t j = 0; j < ctl->n_opts; j++)
        if (!strcmp(ctl->opts[j].name, name) && i-- == 0)
            return ctl->opts[j].value;
    return NULL;
}

static int wrong_option(const char *name, const struct err *err)
{
    ctl_fail(CTL_USAGE, "--%s: %s", name, err->text);
    return -1;
}

int ctl_opt_i64(const struct ctl *ctl, const char *name, int64_t def,
                int64_t min, int64_t max, int64_t *ret)
{
    const char *v = ctl_opt(ctl, name);
    struct err err;

    *ret = def;
    if (!v)
        return 0;
    if (text_parse_i64(v, ret, &err) < 0)
        return wrong_option(name, &err);
    if (*ret < min || *ret > max) {
        ctl_fail(CTL_USAGE, "--%s: %s is not in %lld to %lld", name, v,
                 (long long) min, (long long) max);
        return -1;
    }
    return 0;
}

int ctl_opt_size(const struct ctl *ctl, const char *name, int64_t def,
                 int64_t *ret)
{
    const char *v = ctl_opt(ctl, name);
    struct err err;

    *ret = def;
    return v && text_parse_size(v, ret, &err) < 0 ? wrong_option(name, &err)
                                                  : 0;
}

int ctl_opt_duration(const struct ctl *ctl, const char *name, int64_t def,
                     int64_t *ret_ms)
{
    const char *v = ctl_opt(ctl, name);
    struct err err;

    *ret_ms = def;
    return v && text_parse_duration(v, ret_ms, &err) < 0
               ? wrong_option(name, &err) : 0;
}

static const struct verb_opt *find_in(const struct verb_opt *o,
                                      const char *name, size_t n, char letter)
{
    for (; o->name; o++)
        if (letter ? o->letter == letter
                   : strlen(o->name) == n && !strncmp(o->name, name, n))
            return o;
    return NULL;
}

static const struct verb_opt *find_opt(const struct ctl *ctl,
                                       const char *name, size_t n,
                                       char letter)
{
    const struct verb_opt *o = find_in(ctl->verb->opts, name, n, letter);

    return o ? o : find_in(verb_common_opts, name, n, letter);
}

/* argv[*i] is an option: take it and its value. */
static int take_option(struct ctl *ctl, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    bool is_long = arg[1] == '-';
    const char *name = arg + 2, *equals = is_long ? strchr(name, '=') : NULL;
    size_t n = equals ? (size_t) (equals - name) : strlen(name);
    const struct verb_opt *o =
        is_long ? find_opt(ctl, name, n, 0)
                : arg[2] ? NULL : find_opt(ctl, NULL, 0, arg[1]);
    const char *value = equals ? equals + 1 : NULL;

    if (!o)
        return ctl_fail(CTL_USAGE, "%s: unknown option %s", ctl->verb->name,
                        arg);
    if (*o->value && !value && *i + 1 < argc)
        value = argv[++*i];
    if (*o->value && !value)
        return ctl_fail(CTL_USAGE, "--%s: a value is missing", o->name);
    if (!*o->value && value)
        return ctl_fail(CTL_USAGE, "--%s takes no value", o->name);
    ctl->opts[ctl->n_opts++] = (struct ctl_opt){ o->name,
                                                 value ? value : "" };
    return 0;
}

static int parse(struct ctl *ctl, int argc, char **argv)
{
    bool open = true;
    bool greedy = !strcmp(ctl->verb->name, "submit");

    for (int i = 2; i < argc; i++) {
        if (open && !strcmp(argv[i], "--")) {
            open = false;
        } else if (open && argv[i][0] == '-' && argv[i][1]) {
            int rc = take_option(ctl, argc, argv, &i);

            if (rc)
                return rc;
        } else {
            ctl->args[ctl->n_args++] = argv[i];
            open = open && !greedy;
        }
    }
    ctl->json = ctl_has(ctl, "json");
    return 0;
}

/* --- life ----------------------------------------------------------------------- */

struct client *ctl_client(struct ctl *ctl)
{
    struct cred cred = { 0 };
    struct err err;

    if (ctl->client)
        return ctl->client;
    if (cred_read(&cred, &err) < 0) {
        ctl_fail(CTL_USAGE, "%s", err.text);
        return NULL;
    }
    ctl->client = client_create(&cred, &err);
    if (!ctl->client)
        ctl_fail(CTL_FAILED, "%s", err.text);
    return ctl->client;
}

static const struct verb *find_verb(const char *name)
{
    for (const struct verb *v = verbs; v->name; v++)
        if (!strcmp(v->name, name))
            return v;
    return NULL;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    struct ctl ctl = { .verb = verb, .tty = isatty(1) };
    int rc;

    ctl.opts = mem_calloc((size_t) argc, sizeof *ctl.opts);
    ctl.args = mem_calloc((size_t) argc + 1, sizeof *ctl.args);
    rc = parse(&ctl, argc, argv);
    if (rc == 0 && ctl_has(&ctl, "help"))
        help_verb(verb);
    else if (rc == 0)
        rc = verb->run(&ctl);
    client_destroy(ctl.client);
    free(ctl.opts);
    free(ctl.args);
    return rc;
}

/* What could not be written was not said: a script would take it for done. */
static int close_output(int rc)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && rc == 0)
        return ctl_fail(CTL_FAILED, "cannot write to standard output");
    return rc;
}

static int run_word(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    const struct verb *verb = find_verb(name);

    if (verb)
        return run(verb, argc, argv);
    if (!strcmp(name, "--help") || !strcmp(name, "-h") ||
        !strcmp(name, "help")) {
        help_all();
        return argc > 1 ? CTL_OK : CTL_USAGE;
    }
    if (!strcmp(name, "--version")) {
        puts("crunchctl (crunch-dispatch-cloud) " PACKAGE_VERSION "\n"
             "Licence Apache-2.0. There is no warranty.");
        return CTL_OK;
    }
    if (!strcmp(name, "--man-verbs")) {
        help_man();
        return CTL_OK;
    }
    return ctl_fail(CTL_USAGE, "unknown verb %s (try crunchctl --help)", name);
}

int main(int argc, char **argv)
{
    return close_output(run_word(argc, argv));
}
