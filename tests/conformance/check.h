/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_CHECK_H
#define TESTS_CONFORMANCE_CHECK_H

/*
 * cdc-driver-check: the options of a run, and the report of its steps.
 *
 * Two processes: the parent only waits, the child runs the driver. `stage`
 * lies in memory that both see, so that the parent can say where the child
 * was when it crashed or hung.
 */

#include <stdbool.h>
#include <stdint.h>

struct driver;
struct jsn;
struct logger;

struct check_options {
    const char *file;          /* path, or name in dir */
    const char *dir;           /* NULL = the installed one */
    const char *set_id;
    const char *image;
    const char *type;          /* provider type */
    const char *placement;
    const char *state_dir;
    const char *public_key;
    struct jsn *params;        /* may be NULL */
    int64_t call_ms;           /* deadline of one call */
    int64_t boot_ms;           /* how long for an address, or to be gone */
    bool trust_build_tree;
    bool destroy_existing;
    bool describe_only;
    struct logger *log;
};

struct check {
    const struct check_options *o;
    char (*stage)[64];         /* shared with the parent */
    unsigned steps, failures, skipped;
};

/* Begin a step; then report how it went: a failure carries a reason. */
void check_step(struct check *c, const char *what);
void check_ok(struct check *c);
void check_failed(struct check *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void check_skip(struct check *c, const char *why);

/* Every step, on a driver that is loaded; false = some failed. */
bool check_run(struct check *c, const struct driver *d);

#endif
