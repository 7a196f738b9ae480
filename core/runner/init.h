/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_INIT_H
#define CORE_RUNNER_INIT_H

struct payload_spec;

/* What the supervisor tells init: one byte each. End of file: it died. */
enum init_order { INIT_GO = 'g', INIT_TERM = 't', INIT_KILL = 'k' };

/* The life of a payload's first process; see payload.h. Never returns.
 * supervisor: a pidfd of the caller's parent. */
void init_run(struct payload_spec *spec, int ctl_fd, int supervisor)
    __attribute__((noreturn));

#endif
