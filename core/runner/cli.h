/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_CLI_H
#define CORE_RUNNER_CLI_H

/*
 * The command line of crunch-run, as the dispatcher of Arvados writes it:
 * options take one dash or two, `-name=value` or `-name value`, booleans only
 * `-name` or `-name=true|false`; the first argument that is no option, or
 * `--`, ends them. Options of the real program that mean nothing here are
 * accepted, so that one CrunchRunArgumentsList serves both.
 */

#include <stdbool.h>

#include "core/base/text.h"

struct err;

enum cli_mode {
    CLI_RUN,    /* supervise one container, in the foreground */
    CLI_DETACH, /* the same in the background */
    CLI_LIST,
    CLI_KILL,
    CLI_WATCH,
    CLI_VERSION,
    CLI_HELP,
};

/*      option           takes       target member, or ignored */
#define CLI_OPTIONS(X)                                                        \
    X("detach",                     BOOL,   DETACH)                           \
    X("list",                       BOOL,   LIST)                             \
    X("watch",                      BOOL,   WATCH)                            \
    X("kill",                       VALUE,  KILL)                             \
    X("stdin-config",               BOOL,   STDIN_CONFIG)                     \
    X("version",                    BOOL,   VERSION)                          \
    X("help",                       BOOL,   HELP)                             \
    X("h",                          BOOL,   HELP)                             \
    X("no-detach",                  BOOL,   IGNORED)                          \
    X("stdin-prices",               BOOL,   IGNORED)                          \
    X("enable-memory-limit",        BOOL,   MEMORY_LIMIT)                     \
    X("check-containerd",           VALUE,  IGNORED)                          \
    X("runtime-engine",             VALUE,  IGNORED)                          \
    X("container-enable-networking", VALUE, NETWORKING)                       \
    X("container-network-mode",     VALUE,  IGNORED)                          \
    X("cgroup-root",                VALUE,  IGNORED)                          \
    X("cgroup-parent",              VALUE,  IGNORED)                          \
    X("cgroup-parent-subsystem",    VALUE,  IGNORED)                          \
    X("crunchstat-interval",        VALUE,  IGNORED)                          \
    X("broken-node-hook",           VALUE,  IGNORED)                          \
    X("ca-certs",                   VALUE,  IGNORED)                          \
    X("config",                     VALUE,  IGNORED)                          \
    X("memprofile",                 VALUE,  IGNORED)                          \
    X("sleep",                      VALUE,  IGNORED)

struct cli {
    enum cli_mode mode;
    bool stdin_config;
    bool memory_limit;    /* -enable-memory-limit, default true */
    bool always_network;  /* -container-enable-networking=always */
    int signum;           /* of --kill */
    char uuid[TEXT_UUID_SIZE];
};

/* Pure. ERR_INVALID with a text for standard error: the exit code is 2. */
int cli_parse(int argc, char **argv, struct cli *ret, struct err *err);

extern const char cli_usage[];

#endif
