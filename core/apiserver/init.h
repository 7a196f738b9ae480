/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_INIT_H
#define CORE_APISERVER_INIT_H

/*
 * `crunch-api-server init DIR`: a new service, ready to be started.
 */

#include <stdint.h>

struct err;

struct init_opts {
    const char *dir;        /* made if it is not there */
    const char *address;    /* NULL = 127.0.0.1 */
    const char *cluster_id; /* NULL = random */
    const char *user;       /* name of the first user; NULL = the caller's */
    int64_t port, dispatch_port; /* 0 = free ones */
};

/*
 * Make DIR/api-server, DIR/dispatcher and DIR/user, none of which may exist,
 * and print what they are for. ERR_CONFIG: an option or the folder is wrong.
 */
int init_run(const struct init_opts *opts, struct err *err);

#endif
