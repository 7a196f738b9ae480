/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cdc-driver-check: does a driver keep the contract of <cdc/driver.h>?
 *
 *     cdc-driver-check [options] FILE.so|NAME
 *
 * For authors of drivers, in their own tests too: the report is TAP version
 * 12 on standard output, one line a step, and the exit code is 0 only when
 * no step failed. The steps themselves are in check_steps.c.
 *
 * The driver runs in a child, so that a crash or a hang ends in a line that
 * says during which step. The parent has no other purpose.
 *
 * Real instances are made and destroyed: at most three at a time, all marked
 * with the set id, none of anybody else touched.
 */

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cdc/driver.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/plugin/preflight.h"
#include "core/plugin/registry.h"
#include "tests/conformance/check.h"

enum { EXIT_USAGE = 2, PARAMS_MAX = 1 << 20, TOTAL_S = 1800 };

static const char usage[] =
    "Usage: cdc-driver-check [option]... FILE.so|NAME\n"
    "Test a cloud driver against its contract. Makes real instances.\n"
    "\n"
    "  -d, --driver-dir DIR    where NAME.so is (default: as installed)\n"
    "  -p, --params JSON       DriverParameters, or @FILE\n"
    "  -i, --image ID          image of the instances\n"
    "  -t, --type NAME         provider type of the instances\n"
    "  -z, --placement NAME    zone or subnet\n"
    "  -s, --set-id ID         tag value that marks what is ours\n"
    "  -S, --state-dir DIR     folder for the driver's state\n"
    "  -k, --public-key KEY    OpenSSH public key for the instances\n"
    "      --call-timeout TIME deadline of one call (default 1m)\n"
    "      --boot-timeout TIME until an instance has an address, and until it\n"
    "                          is gone (default 5m)\n"
    "      --destroy-existing  begin by destroying what carries the set id\n"
    "      --describe          only say what the file is\n"
    "      --trust-build-tree  do not check who may write the file\n"
    "  -v, --verbose           what the driver logs, on standard error\n"
    "  -h, --help\n";

enum {
    OPT_CALL = 256, OPT_BOOT, OPT_DESTROY, OPT_DESCRIBE, OPT_TRUST
};

static const struct option long_options[] = {
    {"driver-dir", required_argument, NULL, 'd'},
    {"params", required_argument, NULL, 'p'},
    {"image", required_argument, NULL, 'i'},
    {"type", required_argument, NULL, 't'},
    {"placement", required_argument, NULL, 'z'},
    {"set-id", required_argument, NULL, 's'},
    {"state-dir", required_argument, NULL, 'S'},
    {"public-key", required_argument, NULL, 'k'},
    {"call-timeout", required_argument, NULL, OPT_CALL},
    {"boot-timeout", required_argument, NULL, OPT_BOOT},
    {"destroy-existing", no_argument, NULL, OPT_DESTROY},
    {"describe", no_argument, NULL, OPT_DESCRIBE},
    {"trust-build-tree", no_argument, NULL, OPT_TRUST},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* --- the report -------------------------------------------------------------- */

void check_step(struct check *c, const char *what)
{
    c->steps++;
    text_copy(*c->stage, what, sizeof *c->stage);
}

void check_ok(struct check *c)
{
    printf("ok %u - %s\n", c->steps, *c->stage);
}

void check_failed(struct check *c, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->failures++;
    printf("not ok %u - %s\n# %s\n", c->steps, *c->stage, text);
}

void check_skip(struct check *c, const char *why)
{
    c->skipped++;
    printf("ok %u - %s # SKIP %s\n", c->steps, *c->stage, why);
}

/* --- options ------------------------------------------------------------------ */

static int fail_usage(const char *text)
{
    fprintf(stderr, "cdc-driver-check: %s\n"
                    "Try 'cdc-driver-check --help'.\n", text);
    return -1;
}

static int read_file(const char *path, struct buf *out, struct err *err)
{
    FILE *f = fopen(path, "re");
    char chunk[4096];
    size_t n;

    if (!f)
        return err_set_errno(err, errno, "%s", path);
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_append(out, chunk, n);
    fclose(f);
    return out->over ? err_set(err, ERR_TOO_LARGE, "%s", path) : 0;
}

static int parse_params(const char *arg, struct jsn **ret, struct err *err)
{
    CLEANUP(buf_fini) struct buf text;

    buf_init(&text, PARAMS_MAX);
    if (arg[0] == '@' ? read_file(arg + 1, &text, err)
                      : buf_puts(&text, arg))
        return -1;
    jsn_free(*ret);
    *ret = jsn_parse(text.data, text.len, err);
    return *ret ? 0 : -1;
}

static int set_option(struct check_options *o, int opt, char *arg,
                      struct err *err)
{
    switch (opt) {
    case 'd': o->dir = arg; return 0;
    case 'p': return parse_params(arg, &o->params, err);
    case 'i': o->image = arg; return 0;
    case 't': o->type = arg; return 0;
    case 'z': o->placement = arg; return 0;
    case 's': o->set_id = arg; return 0;
    case 'S': o->state_dir = arg; return 0;
    case 'k': o->public_key = arg; return 0;
    case OPT_CALL: return text_parse_duration(arg, &o->call_ms, err);
    case OPT_BOOT: return text_parse_duration(arg, &o->boot_ms, err);
    case OPT_DESTROY: o->destroy_existing = true; return 0;
    case OPT_DESCRIBE: o->describe_only = true; return 0;
    case OPT_TRUST: o->trust_build_tree = true; return 0;
    case 'v':
        if (!o->log)
            o->log = logger_create(STDERR_FILENO, LOG_TEXT, LOG_DEBUG);
        return 0;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default: return err_set(err, ERR_INVALID, "wrong option");
    }
}

static int parse_options(int argc, char **argv, struct check_options *o)
{
    struct err err = {0};
    int opt;

    while ((opt = getopt_long(argc, argv, "d:p:i:t:z:s:S:k:vh", long_options,
                              NULL)) != -1)
        if (set_option(o, opt, optarg, &err))
            return fail_usage(err.text);
    if (optind + 1 != argc)
        return fail_usage("name one driver");
    o->file = argv[optind];
    return 0;
}

/* --- the child ----------------------------------------------------------------- */

static void print_caps(uint32_t caps)
{
    printf("capabilities %s%s%s%s%s\n", caps & CDC_CAP_BATCH ? "batch " : "",
           caps & CDC_CAP_SET_TAGS ? "set-tags " : "",
           caps & CDC_CAP_VERIFY_KEY ? "verify-key " : "",
           caps & CDC_CAP_PRICES ? "prices " : "",
           caps & CDC_CAP_SINGLE ? "single" : "");
}

static void print_description(const struct driver *d)
{
    const struct cdc_driver *e = d->descriptor;

    printf("file         %s\nname         %s\nversion      %s\n"
           "description  %s\nurl          %s\n", d->path, e->name, e->version,
           e->description, e->url ? e->url : "");
    printf("abi          %u, built with minor %u, needs minor %u\n",
           e->abi_major, e->minor_built, e->minor_needed);
    printf("threads      %s\n",
           e->threads == CDC_THREADS_PARALLEL ? "parallel" : "serial");
    print_caps(e->caps);
    printf("callbacks    set_open set_close create list destroy%s%s%s%s%s\n",
           e->set_tags ? " set_tags" : "",
           e->verify_host_key ? " verify_host_key" : "",
           e->quota_group ? " quota_group" : "",
           e->price_history ? " price_history" : "",
           e->describe ? " describe" : "");
    printf("settings\n%s", e->schema ? e->schema : "(not declared)\n");
}

static const struct driver *load(struct registry *r,
                                 const struct check_options *o,
                                 struct err *err)
{
    return strchr(o->file, '/') || strstr(o->file, ".so")
               ? registry_load_file(r, o->file, err)
               : registry_load(r, o->file, err);
}

static int child(const struct check_options *o, char (*stage)[64])
{
    struct registry_options ro = {
        .log = o->log, .dir = o->dir, .trust_build_tree = o->trust_build_tree,
    };
    struct registry *r = registry_create(&ro);
    struct check c = {.o = o, .stage = stage};
    struct err err = {0};
    const struct driver *d;
    bool good = false;

    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (o->describe_only) {
        if ((d = load(r, o, &err)))
            print_description(d);
        else
            fprintf(stderr, "cdc-driver-check: %s\n", err.text);
        good = d != NULL;
    } else {
        check_step(&c, "the file can be loaded");
        if ((d = load(r, o, &err))) {
            check_ok(&c);
            good = check_run(&c, d);
        } else {
            check_failed(&c, "%s", err.text);
        }
        printf("1..%u\n# %u passed, %u failed, %u skipped\n", c.steps,
               c.steps - c.failures - c.skipped, c.failures, c.skipped);
    }
    registry_destroy(r);
    return good ? 0 : 1;
}

/* --- the parent ----------------------------------------------------------------- */

static int judge(int status, const char *stage)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) <= 1)
        return WEXITSTATUS(status);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("Bail out! no end after %d s, during: %s\n", TOTAL_S, stage);
    else if (WIFSIGNALED(status))
        printf("Bail out! the driver crashed with signal %d, during: %s\n",
               WTERMSIG(status), stage);
    else
        printf("Bail out! the driver ended the process with exit code %d, "
               "during: %s\n", WEXITSTATUS(status), stage);
    return 1;
}

int main(int argc, char **argv)
{
    struct check_options o = {
        .set_id = "driver-check", .image = "", .type = "check",
        .placement = "", .state_dir = "", .public_key = "",
        .call_ms = 60000, .boot_ms = 300000,
    };
    int rc = preflight_child_main(argc, argv), status = 0;
    char (*stage)[64];
    pid_t pid;

    if (rc >= 0)
        return rc;
    if (parse_options(argc, argv, &o))
        return EXIT_USAGE;
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED || (pid = fork()) < 0) {
        perror("cdc-driver-check");
        return 1;
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(TOTAL_S);
        exit(child(&o, stage));
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    logger_destroy(o.log);
    jsn_free(o.params);
    return judge(status, *stage);
}
