/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_REPORT_H
#define CORE_RUNNER_REPORT_H

/*
 * What is told about a container at its end (and, as a warning, before).
 * runtime_status is replaced as a whole by every update, so all of it is kept
 * here. Pure: texts in, JSON out.
 */

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct report {
    bool complete;   /* else Cancelled */
    bool has_exit_code;
    int exit_code;
    double cost;
    bool no_retry;   /* the server need not try again */
    char error[512]; /* "" = none */
    char error_detail[512];
    char warning[512];
    char warning_detail[512];
};

/* The first error stays: what follows from it is less interesting. */
void report_error(struct report *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void report_warning(struct report *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The exit code of a wait status: its own, or 128 + the signal's number. */
int report_exit_code(int wait_status);

/* The members of the final update. A Cancelled container has no exit code:
 * the server would refuse it. */
void report_print(const struct report *r, struct buf *out);

#endif
