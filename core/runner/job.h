/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_JOB_H
#define CORE_RUNNER_JOB_H

/*
 * One container as the runner has to run it: the API record, parsed and
 * checked. What cannot be provided exactly is refused here, before anything
 * is started: never something slightly different.
 * Field meanings: Arvados API, "containers"; doc/crunch-run.1.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/text.h"

struct err;
struct jsn;

enum {
    JOB_ARGS_MAX = 64 * 1024,
    JOB_ENV_MAX = 16 * 1024,
    JOB_MOUNTS_MAX = 1024,
    JOB_GLOBS_MAX = 1024,
    JOB_PATH_MAX = 1024,
    JOB_RAM_MIN = 16 * 1024 * 1024,
};

#define JOB_IMAGE_HOST "host"

enum job_mount_kind {
    JOB_TMP,  /* a writable folder */
    JOB_JSON, /* a file with the JSON text of `content` */
    JOB_TEXT,
    JOB_FILE, /* stdout or stderr into a file below the output folder */
};

struct job_mount {
    char *target; /* absolute path, or "stdin", "stdout", "stderr" */
    enum job_mount_kind kind;
    char *content; /* JSON and TEXT: the file's bytes */
    size_t content_len;
    char *path;       /* FILE: relative to output_path */
    int64_t capacity; /* TMP: bytes, 0 = not stated */
    bool ram;         /* TMP: device_type "ram" */
    bool exclude;     /* leave it out of the output */
    bool secret;      /* from the secret mounts: overwritten when freed */
};

struct job {
    char uuid[TEXT_UUID_SIZE];
    char state[16];
    int64_t attempt; /* 0 = not in the record */
    char **argv;     /* NULL-terminated */
    char **env;      /* "NAME=value", NULL-terminated, in record order */
    size_t n_env;
    char *cwd;       /* absolute; "/" for "." and "" */
    char *image;
    char *output_path;
    char **globs;    /* NULL-terminated; none = everything */
    struct job_mount *mounts; /* sorted by target: parents first */
    size_t n_mounts;
    int64_t vcpus, ram;
    bool api;
    int64_t max_run_time_s; /* 0 = none */
};

/*
 * ERR_INVALID: not a container's record at all (the server is at fault).
 * ERR_UNSUPPORTED: this container cannot be run here, and the text, for the
 * user, says why; uuid, state and attempt of *ret are then filled in.
 */
int job_parse(const char *text, size_t n, struct job *ret, struct err *err);
void job_fini(struct job *j);

/* The mounts alone; for tests and used by job_parse. */
int job_parse_mounts(const struct jsn *mounts, struct job *j,
                     struct err *err);

/* Add the mounts of {"secret_mounts": {...}}: json and text only, never part
 * of the output. Errors as with job_parse. */
int job_add_secrets(const char *text, size_t n, struct job *j,
                    struct err *err);

/* The mount whose target is exactly this, or NULL. */
const struct job_mount *job_mount(const struct job *j, const char *target);

/* Is path the same as, or below, dir? */
bool job_path_within(const char *path, const char *dir);

#endif
