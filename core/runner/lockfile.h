/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_LOCKFILE_H
#define CORE_RUNNER_LOCKFILE_H

/*
 * Lock files: which supervisors live on this machine.
 *
 * One file `crunch-run-<uuid>.lock` per container in the lock folder, held
 * with flock(2) by the supervisor and by the first process of its payload
 * (they share one open file description), so that it is free only when the
 * whole tree is dead. `crunch-run-all.lock` serialises taking and removing.
 * `crunch-run-broken` marks a machine that cannot run containers.
 * The names and the protocol are those of Arvados' crunch-run, whose readers
 * know "UUID" and "PID" and ignore the rest of the line.
 *
 * The lock is the truth; the content only says who. A file that cannot be
 * read but is locked still counts as a live container.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/text.h"

struct buf;
struct err;

enum { LOCK_NAME_SIZE = 64, LOCK_CONTENT_MAX = 4096 };

struct lock_info {
    char uuid[TEXT_UUID_SIZE];
    pid_t pid;           /* of the supervisor */
    int64_t attempt;     /* 0 = the server has none */
    uint64_t start_time; /* of pid, clock ticks after boot; 0 = unknown */
};

/* Pure: the JSON line, and back. Absent Attempt and StartTime are 0. */
void lock_format(const struct lock_info *info, struct buf *out);
int lock_parse(const char *text, size_t n, struct lock_info *ret,
               struct err *err);

/* The uuid in a lock file's name; false for every other name. */
bool lock_name_uuid(const char *name, char ret_uuid[TEXT_UUID_SIZE]);

/* Take the container's lock; the file is then empty and *ret_fd holds the
 * lock. ERR_CONFLICT: somebody holds it. */
int lock_take(const char *dir, const char *uuid, int *ret_fd,
              struct err *err);
int lock_write(int fd, const struct lock_info *info, struct err *err);
/* ERR_INVALID when the content is (still) not complete. */
int lock_read(int fd, struct lock_info *ret, struct err *err);
/* Remove the file of a lock that we hold. The lock ends with the last copy
 * of the descriptor. */
void lock_remove(const char *dir, const char *uuid);

/* Open an existing lock file to look at it. ERR_NOT_FOUND when absent. */
int lock_open(const char *dir, const char *uuid, int *ret_fd,
              struct err *err);
/* Does somebody hold it? Takes and drops a shared lock, under the folder's
 * lock, so that a taker never meets it. */
bool lock_is_held(const char *dir, int fd);
/* Is this still the file of that container's name? */
bool lock_is_named(const char *dir, const char *uuid, int fd);
/* If nobody holds it: take it, call clean (may be NULL), and remove the file
 * if it is still this one. Meanwhile a taker is told that the container is
 * being cleaned up. */
void lock_collect(const char *dir, const char *uuid, int fd,
                  void (*clean)(void *arg, const char *uuid), void *arg);

/* The marker of a broken machine. */
bool lock_broken(const char *dir);
int lock_mark_broken(const char *dir, struct err *err);

/* Start time of a process (field 22 of /proc/pid/stat); 0 = no such. */
uint64_t lock_start_time(pid_t pid);
/* A descriptor of the supervisor, -1 when it is gone (its pid may belong to
 * another process by now). Not inherited. */
int lock_pidfd(const struct lock_info *info);

#endif
