/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_OUTPUT_H
#define CORE_RUNNER_OUTPUT_H

/*
 * Collecting the output folder, after everything that could write to it is
 * dead. Regular files only; symbolic links are never followed, and nothing
 * outside the folder can be reached (openat2(2), RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS): the payload, which made it all, is not trusted.
 */

#include <stddef.h>
#include <stdint.h>

struct err;

enum { OUTPUT_DEPTH_MAX = 32 }; /* parts of a path; the server's limit */

struct output {
    int root_fd;
    char **globs;             /* NULL-terminated; NULL or none = all */
    const char *const *exclude; /* relative paths, NULL-terminated, or NULL */

    /* One file, open for reading at its start. -1 ends the walk. */
    int (*put)(void *arg, const char *path, int fd, int64_t size,
               struct err *err);
    /* A remark for the log: what was left out and why. May be NULL. */
    void (*note)(void *arg, const char *text);
    void *arg;

    size_t files; /* out */
    int64_t bytes;
    size_t skipped;
};

/* Folders in byte order of their names. */
int output_collect(struct output *o, struct err *err);

#endif
