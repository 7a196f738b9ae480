/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_PREFLIGHT_H
#define CORE_PLUGIN_PREFLIGHT_H

/*
 * Opening a driver in a child first, so that a constructor that crashes,
 * hangs or ends the process harms only that child, and a function that is
 * missing is found now and not at its first call.
 *
 * The child is this very program (/proc/self/exe), started anew: a process
 * with threads cannot be forked safely. Every program that loads drivers
 * therefore begins its main() with
 *
 *     int rc = preflight_child_main(argc, argv);
 *     if (rc >= 0)
 *         return rc;
 */

struct err;

/* -1: this is not a preflight child. Else the exit code to return. */
int preflight_child_main(int argc, char **argv);

/*
 * Let a child open the file and look at its descriptor. 0: it went well.
 * -1/ERR_CONFIG: the driver is not to be loaded; the text says why: the
 * linker's own words, the signal, or the time limit.
 */
int preflight_run(const char *path, int timeout_ms, struct err *err);

#endif
