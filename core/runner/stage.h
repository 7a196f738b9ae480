/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_STAGE_H
#define CORE_RUNNER_STAGE_H

/*
 * The folder of one container on this machine, and what is put into it before
 * the start: log files, the folders and files that are to be mounted, and what
 * lies behind the payload's three standard descriptors.
 *
 * It is named by the container's uuid, `<scratch_dir>/crunch-run.<uuid>`, and
 * guarded by the container's lock: whoever holds the lock may remove what an
 * earlier run left there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct job;
struct logs;
struct node;

struct stage_mount {
    const char *target; /* the job's */
    int fd;             /* the folder or file to be shown there */
    char *path;         /* where it is on this machine; NULL if detached */
    bool detached;      /* fd is a mount of its own, to be moved there */
    bool file;          /* read-only file; else a writable folder */
};

struct stage {
    char *dir; /* absolute */
    int dir_fd;
    uid_t uid; /* of what is made for the payload */
    gid_t gid;
    struct logs *logs;
    struct stage_mount *mounts; /* parents first */
    size_t n_mounts;
    int output_fd; /* the output folder */
    int std_fd[3]; /* what the payload reads; where its output goes */
    char **links;  /* plain mode: links to remove, NULL-terminated */
};

/* Make the folder with the log files; nothing of an earlier run remains. */
int stage_create(const struct node *node, const char *uuid, struct stage *ret,
                 struct err *err);

/* Make everything that the job mounts; plain: without mounting anything.
 * ERR_CAPACITY: not enough room here. ERR_UNSUPPORTED: the mounts cannot be
 * made anywhere, because they contradict each other or a limit of file
 * systems. Anything else is this machine's fault. */
int stage_fill(struct stage *s, const struct job *job, bool plain,
               struct err *err);

/* Close and remove everything; all zero afterwards. */
void stage_destroy(struct stage *s);

/* Remove what a killed run left. The container's lock must be held. */
void stage_clean(const struct node *node, const char *uuid);

#endif
