/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_HOST_H
#define CORE_RUNNER_HOST_H

/*
 * The commands that look at this machine's supervisors from outside. Each is
 * a whole run of the program and returns its exit code.
 */

struct node;

/* `--list`: "uuid", "uuid stale" or "broken" lines; removes free files. */
int host_list(const struct node *node);

/* `--kill`: send signum once, wait up to a second for the end. 0: it is gone
 * (or was), 1: still there. */
int host_kill(const struct node *node, const char *uuid, int signum);

/* Remove the lock file that is open as fd if nobody holds it, with what a
 * killed run left: its folder and its control group. */
void host_collect(const struct node *node, const char *uuid, int fd);

/* `--watch`: one JSON line per event until standard input ends. */
int host_watch(const struct node *node);

#endif
