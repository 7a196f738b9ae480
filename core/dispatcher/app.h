/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCHER_APP_H
#define CORE_DISPATCHER_APP_H

/*
 * The dispatcher's composition root: everything is made here, in order, and
 * unmade in reverse.
 */

#include <stdbool.h>

struct app;
struct err;

struct app_options {
    const char *config;    /* path, or "-" */
    bool trust_build_tree; /* tests only: drivers may lie in a build tree */
};

/* The whole configuration is read and every local resource taken (state
 * directory, drivers, listener); the API server is not asked yet. On failure
 * the reason has been told: in the log, or, before there is one, on standard
 * error. */
struct app *app_create(const struct app_options *o, struct err *err);
/* Until SIGTERM, SIGINT or a fatal error. Returns the exit code. */
int app_run(struct app *a);
void app_destroy(struct app *a); /* NULL is fine */

/* Read and check the configuration, print warnings and values in force. */
int app_check_config(const char *path);

#endif
