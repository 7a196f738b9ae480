/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: cdc-local-vm, the program behind the loopback driver.
 *
 *     cdc-local-vm --state DIR {probe|create|list|tag|destroy} < in > out
 *
 * One call does one thing and ends; nothing stays but VMs and their files.
 * The language is in wire.h, the commands in command.c. This file reads the
 * command line and the input, and puts exactly one JSON value on standard
 * output: the reply, or the error that explains exit code 1.
 */

#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/fault.h"
#include "core/base/fdio.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/localvm/command.h"
#include "core/localvm/state.h"
#include "core/localvm/wire.h"

enum { EXIT_USAGE = 2, OUTPUT_MAX = 64 << 20 };

static const struct {
    const char *name;
    command_fn *fn;
} commands[] = {
    {"probe", command_probe},     {"create", command_create},
    {"list", command_list},       {"tag", command_tag},
    {"destroy", command_destroy},
};

static void usage(FILE *f)
{
    fprintf(f, "usage: cdc-local-vm --state DIR "
               "{probe|create|list|tag|destroy} < JSON\n");
}

static command_fn *find_command(const char *name)
{
    size_t i;

    for (i = 0; i < MEM_COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].fn;
    return NULL;
}

/* Never returns on a wrong command line. */
static command_fn *read_args(int argc, char **argv, const char **ret_dir)
{
    static const struct option options[] = {
        {"state", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    command_fn *fn;
    int c;

    while ((c = getopt_long(argc, argv, "s:hV", options, NULL)) != -1) {
        if (c == 'h') {
            usage(stdout);
            exit(EXIT_SUCCESS);
        }
        if (c == 'V') {
            puts(PACKAGE_STRING);
            exit(EXIT_SUCCESS);
        }
        if (c != 's') {
            usage(stderr);
            exit(EXIT_USAGE);
        }
        *ret_dir = optarg;
    }
    fn = optind == argc - 1 ? find_command(argv[optind]) : NULL;
    if (!fn || !*ret_dir) {
        usage(stderr);
        exit(EXIT_USAGE);
    }
    return fn;
}

static struct jsn *read_input(struct err *err)
{
    CLEANUP(buf_fini) struct buf b;

    buf_init(&b, WIRE_INPUT_MAX);
    if (fdio_read_all(STDIN_FILENO, &b) < 0) {
        err_set_errno(err, errno, "read the input");
        return NULL;
    }
    return jsn_parse(b.data, b.len, err);
}

static int run(command_fn *fn, const char *dir, struct buf *out,
               struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *in = NULL;
    struct state state;

    if (fault_init(err) < 0)
        return -1;
    in = read_input(err);
    if (!in)
        return -1;
    if (jsn_type(in) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "the input is not an object");
    if (state_open(dir, &state, err) < 0 || fn(&state, in, out, err) < 0)
        return -1;
    if (out->over)
        return err_set(err, ERR_TOO_LARGE, "the reply is too long");
    return 0;
}

int main(int argc, char **argv)
{
    CLEANUP(buf_fini) struct buf out;
    const char *dir = NULL;
    command_fn *fn = read_args(argc, argv, &dir);
    struct err err = {0};
    struct jsn_w w;
    int code = EXIT_SUCCESS;

    umask(077);
    signal(SIGPIPE, SIG_IGN); /* a dead child or reader is an error like any */
    buf_init(&out, OUTPUT_MAX);
    if (run(fn, dir, &out, &err) < 0) {
        code = EXIT_FAILURE;
        buf_reset(&out);
        jsn_w_init(&w, &out);
        jsn_w_obj(&w, NULL);
        wire_write_error(&w, "error", &err);
        jsn_w_end_obj(&w);
    }
    buf_putc(&out, '\n');
    return fdio_write_all(STDOUT_FILENO, out.data, out.len) < 0 ? EXIT_FAILURE : code;
}
