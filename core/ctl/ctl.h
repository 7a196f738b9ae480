/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_CTL_H
#define CORE_CTL_CTL_H

/*
 * What a verb gets: its options and arguments, credentials, and two servers
 * to ask (the API server, the dispatcher's management API).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

struct client;
struct jsn;
struct verb;

struct ctl_opt {
    const char *name;
    const char *value; /* "" for one without */
};

struct ctl {
    const struct verb *verb;
    struct ctl_opt *opts;
    size_t n_opts;
    char **args;
    size_t n_args;
    bool json;
    bool tty;              /* standard output is a terminal */
    struct client *client; /* made at the first use, ctl_client() */
};

/* The last value given; NULL = not given. */
const char *ctl_opt(const struct ctl *ctl, const char *name);
bool ctl_has(const struct ctl *ctl, const char *name);
/* The i-th value of an option that may be repeated; NULL at the end. */
const char *ctl_opt_at(const struct ctl *ctl, const char *name, size_t i);
/* def when not given; -1 = wrong, and a line was printed. */
int ctl_opt_i64(const struct ctl *ctl, const char *name, int64_t def,
                int64_t min, int64_t max, int64_t *ret);
int ctl_opt_size(const struct ctl *ctl, const char *name, int64_t def,
                 int64_t *ret);
int ctl_opt_duration(const struct ctl *ctl, const char *name, int64_t def,
                     int64_t *ret_ms);

/* "crunchctl: text" on standard error; returns code. */
int ctl_fail(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for an error of a call: the exit code is made from its class. */
int ctl_fail_err(const struct err *err);
int ctl_usage(const struct ctl *ctl, const char *what);

/* NULL when there are no credentials; a line was printed. */
struct client *ctl_client(struct ctl *ctl);

#endif
