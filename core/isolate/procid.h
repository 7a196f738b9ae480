/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ISOLATE_PROCID_H
#define CORE_ISOLATE_PROCID_H

/*
 * The identity of a process beyond its number.
 *
 * A pid is re-used; what is written into a file today may name another
 * program tomorrow. An identity is the pid as seen by the one who wrote it,
 * the start time in clock ticks (field 22 of /proc/PID/stat, proc(5)), the
 * kernel's boot id, and the inode of the process's own pid namespace. Two
 * processes that ever live on one machine differ in at least one of them.
 *
 * Looking is race-free: the pidfd is opened first, then the identity behind
 * the number is compared, then the pidfd is polled (a zombie still opens).
 * From then on only the pidfd is used.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

enum { PROCID_BOOT_SIZE = 37, PROCID_TEXT_SIZE = 128 };

struct procid {
    pid_t pid;
    uint64_t start;              /* clock ticks since boot */
    uint64_t pidns;              /* inode; 0 = could not be read */
    char boot[PROCID_BOOT_SIZE]; /* /proc/sys/kernel/random/boot_id */
};

/* The identity of a live process (pid 0: the caller). ERR_NOT_FOUND when it
 * is gone or a zombie. */
int procid_get(pid_t pid, struct procid *ret, struct err *err);

/*
 * A pidfd (close-on-exec, owned by the caller) of exactly this process, still
 * alive. ERR_NOT_FOUND: it is gone, a zombie, or the pid belongs to another
 * one now. A pidns of 0 in `id` is not compared.
 */
int procid_open(const struct procid *id, int *ret_pidfd, struct err *err);
bool procid_alive(const struct procid *id);

/* "PID START PIDNS BOOT", and back (strict). For files of ours. */
const char *procid_print(const struct procid *id,
                         char out[PROCID_TEXT_SIZE]);
int procid_parse(const char *text, struct procid *ret, struct err *err);

/* Pure: the start time out of the text of /proc/PID/stat (the program's name
 * in it may contain blanks and parentheses), and its state letter. */
int procid_parse_stat(const char *stat, uint64_t *ret_start, char *ret_state,
                      struct err *err);

/* True when the process behind the pidfd has ended (a zombie counts), waiting
 * up to timeout_ms (0 = look only). */
bool procid_wait(int pidfd, int timeout_ms);

#endif
