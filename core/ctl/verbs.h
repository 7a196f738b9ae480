/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_VERBS_H
#define CORE_CTL_VERBS_H

/*
 * The verbs of crunchctl with their options: the table from which the parser,
 * --help and crunchctl(1) are made.
 */

#include <stdbool.h>
#include <stddef.h>

struct ctl;

/* Exit codes beyond those of a waited-for container. */
enum {
    CTL_OK = 0,
    CTL_FAILED = 1,
    CTL_USAGE = 2,
    CTL_NOT_FOUND = 3,
    CTL_REFUSED = 4,
    CTL_UNREACHABLE = 5,
    CTL_TIMEOUT = 6,
    CTL_WAIT_FAILED = 125,     /* submit --wait: our failure, or cancelled */
    CTL_WAIT_NOT_STARTED = 126 /* it could not be started */
};

/* Options: long name, short letter or 0, name of the value or "" for none,
 * help. An option may be given several times only where the help says so. */
#define OPTS_COMMON(X)                                                        \
    X(json, 0, "", "print JSON, one document or one object a line")           \
    X(help, 'h', "", "print this, end")

#define OPTS_SUBMIT(X)                                                        \
    X(image, 0, "NAME", "image: host (default) or the name of an unpacked "   \
                        "root")                                               \
    X(vcpus, 0, "N", "CPUs (default 1)")                                      \
    X(ram, 0, "SIZE", "memory, as in 2GiB (default 256MiB)")                  \
    X(scratch, 0, "SIZE", "size of the output folder (default 64MiB)")        \
    X(env, 0, "NAME=VALUE", "environment; may be repeated")                   \
    X(cwd, 0, "PATH", "working folder (default: the output folder)")          \
    X(output, 0, "PATH", "output folder, an empty one (default /out)")        \
    X(tmp, 0, "PATH=SIZE", "a further empty folder; may be repeated")         \
    X(text, 0, "PATH=TEXT", "a file with this text; may be repeated")         \
    X(file-text, 0, "PATH=FILE", "a file with the text of a local one; may "  \
                                 "be repeated")                               \
    X(network, 0, "", "network and API access: hands the container an API "   \
                      "token and the network of its instance, loopback "      \
                      "included")                                             \
    X(priority, 0, "N", "1 to 1000 (default 500); 0 = on hold")               \
    X(max-run-time, 0, "DURATION", "end it after this time")                  \
    X(preemptible, 0, "", "may run on preemptible instances, and only there") \
    X(use-existing, 0, "", "accept the result of an equal container")         \
    X(retries, 0, "N", "containers that may be tried in all (default 3)")     \
    X(name, 0, "TEXT", "name of the request")                                 \
    X(file, 0, "FILE", "one container_request object a line, - = standard "   \
                       "input; no command then")                              \
    X(wait, 'w', "", "wait for the end; the exit code is the container's")    \
    X(logs, 0, "", "with --wait: show stdout and stderr at the end")

#define OPTS_LIST(X)                                                          \
    X(state, 0, "STATE", "only requests whose container is in it")            \
    X(limit, 0, "N", "at most so many, newest first (default 50)")            \
    X(long, 'l', "", "where it ran, how long it waited and ran")

#define OPTS_WAIT(X)                                                          \
    X(timeout, 0, "DURATION", "give up waiting after this time (exit code 6)")

#define OPTS_LOGS(X)                                                          \
    X(follow, 'f', "", "go on until the container has ended")                 \
    X(name, 0, "FILE", "this file only, as in crunch-run.txt")                \
    X(raw, 0, "", "do not make control characters visible")

#define OPTS_INSTANCES(X)                                                     \
    X(reason, 0, "TEXT", "for the dispatcher's log")

#define OPTS_TOP(X)                                                           \
    X(interval, 0, "DURATION", "time between two looks (default 1s)")         \
    X(count, 0, "N", "so many looks, 0 = until interrupted (default: 0 on a " \
                     "terminal, else 1)")

#define OPTS_NONE(X)

/*      verb       arguments                 options         help */
#define CTL_VERBS(X)                                                          \
    X(submit,    "[--] COMMAND [ARG ...]",   OPTS_SUBMIT,                     \
      "run a command in a container")                                         \
    X(list,      "",                         OPTS_LIST,                       \
      "list requests")                                                        \
    X(show,      "UUID",                     OPTS_NONE,                       \
      "show a request or container")                                          \
    X(wait,      "UUID ...",                 OPTS_WAIT,                       \
      "wait for the end of requests")                                         \
    X(logs,      "UUID",                     OPTS_LOGS,                       \
      "print what a container writes")                                        \
    X(output,    "UUID DIR",                 OPTS_NONE,                       \
      "copy a container's output files into a new folder")                    \
    X(cancel,    "UUID ...",                 OPTS_NONE,                       \
      "cancel requests")                                                      \
    X(instances, "[hold|drain|run|kill ID ...]", OPTS_INSTANCES,              \
      "list instances, or act on them")                                       \
    X(explain,   "UUID",                     OPTS_NONE,                       \
      "say why a container waits, or where it runs")                          \
    X(top,       "",                         OPTS_TOP,                        \
      "watch queue and instances")

struct verb_opt {
    const char *name;
    char letter;
    const char *value; /* "" = takes none */
    const char *help;
};

struct verb {
    const char *name;
    const char *args;
    const char *help;
    const struct verb_opt *opts; /* ends with a NULL name */
    int (*run)(struct ctl *ctl);
};

extern const struct verb verbs[]; /* ends with a NULL name */
extern const struct verb_opt verb_common_opts[];

#define X(name, args, opts, help) int verb_##name(struct ctl *ctl);
CTL_VERBS(X)
#undef X

#endif
