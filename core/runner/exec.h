/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_EXEC_H
#define CORE_RUNNER_EXEC_H

#include <sys/types.h>

struct payload_spec;

/* Start the command as a child of the caller, which is the payload's init:
 * in its cgroup, without privileges, in its working folder, with nothing but
 * its three standard descriptors. What prevents the execution is told through
 * ctl_fd (PAYLOAD_NOT_RUN) before the child ends with 126 or 127.
 * Returns its pid, or -1 (told as PAYLOAD_FAILED). */
pid_t exec_start(const struct payload_spec *spec, int ctl_fd);

#endif
