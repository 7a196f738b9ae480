/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_PLAIN_H
#define CORE_RUNNER_PLAIN_H

struct err;
struct job;
struct stage;

/*
 * Plain mode: no mount namespace, so nothing can be mounted. What the job
 * mounts is made reachable at its path by a symbolic link, where the path is
 * free and its folder writable; stage_destroy() removes the links. A folder
 * that cannot be linked is used all the same (and the log says so), a file
 * refuses the container (ERR_UNSUPPORTED).
 * *ret_cwd: where the working folder really is, if it lies in the output
 * folder; else untouched.
 */
int plain_expose(struct stage *s, const struct job *job, char **ret_cwd,
                 struct err *err);

#endif
