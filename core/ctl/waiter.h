/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_WAITER_H
#define CORE_CTL_WAITER_H

/* Waiting for requests to end, with progress on standard error. */

#include <stddef.h>
#include <stdint.h>

struct ctl;

/*
 * Wait until every request is final. One: returns its exit code (record.h);
 * several: 0, or 1 when any failed. CTL_TIMEOUT after timeout_ms (0 = none).
 * SIGINT ends the waiting, not the containers: it prints how to cancel them
 * and returns 130.
 */
int waiter_run(struct ctl *ctl, char *const *uuids, size_t n,
               int64_t timeout_ms);

#endif
