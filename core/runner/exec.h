/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_EXEC_H
#define CORE_RUNNER_EXEC_H

#include <sys/types.h>

struct err;
struct payload_spec;

/*
 * Make the child of the caller, which is the payload's init, that becomes the
 * command: in its cgroup, without privileges, in its working folder, with
 * nothing but its three standard descriptors. It waits before the last step
 * until *ret_go_fd is written to, and ends if that is closed instead. What
 * prevents the execution is told through ctl_fd (PAYLOAD_NOT_RUN) before the
 * child ends with 126 or 127.
 * Returns its pid, or -1 with err.
 */
pid_t exec_prepare(const struct payload_spec *spec, int ctl_fd,
                   int *ret_go_fd, struct err *err);

#endif
