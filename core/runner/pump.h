/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_PUMP_H
#define CORE_RUNNER_PUMP_H

/*
 * From a pipe that the payload writes to into a file: standard output and
 * standard error.
 */
struct pump {
    int from; /* non-blocking read end; -1 once all writers are gone */
    int to;   /* borrowed */
};

/* Move what is there, without waiting. What cannot be written (a full disk) is
 * dropped: the payload must not wait for its log. Closes `from` at its end. */
void pump_run(struct pump *p);

#endif
