/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_RECORD_H
#define CORE_CTL_RECORD_H

/*
 * Requests and containers as the verbs need them: found by either kind of
 * uuid, waited for, judged.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/text.h"

struct client;
struct err;
struct jsn;

/* One request with its container, the parsed records kept. */
struct record {
    struct jsn *request;   /* NULL when a container's uuid was given and no
                            * request of ours has it */
    struct jsn *container; /* NULL before there is one */
};

int record_get(struct client *c, const char *uuid, struct record *ret,
               struct err *err);
void record_fini(struct record *r);

/* Texts of members, "" when absent. */
const char *record_str(const struct jsn *j, const char *key);
int64_t record_time(const struct jsn *j, const char *key); /* us; 0 = none */

const char *record_state(const struct record *r); /* of the container */
bool record_final(const struct record *r);        /* the request is Final */
/* The exit code of `submit --wait` for a final request. */
int record_exit_code(const struct record *r);
/* The runtime_status' error or warning, "" = none. */
const char *record_problem(const struct record *r);

/* Path of an API call: prefix + encoded uuid + suffix; free it. */
char *record_path(const char *prefix, const char *uuid, const char *suffix);

#endif
