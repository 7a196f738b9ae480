/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_LOGS_H
#define CORE_RUNNER_LOGS_H

/*
 * The log files of one container, and their way to the server.
 *
 * Each is a local file to which somebody appends (init to stdout.txt and
 * stderr.txt through descriptors of its own, the supervisor to the rest) and
 * of which the bytes that the server does not have yet are sent when asked
 * for. The payload never waits for the server. What was sent is given back to
 * the disk when it becomes much; the files keep their length.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api;
struct err;

/*      name       file               written by */
#define LOG_FILES(X)                                                          \
    X(RUNNER,    "crunch-run.txt",  "the runner: what it did and why")        \
    X(NODE_INFO, "node-info.txt",   "the runner: the machine")                \
    X(STDOUT,    "stdout.txt",      "the payload")                            \
    X(STDERR,    "stderr.txt",      "the payload")

enum log_file {
#define X(name, file, by) LOGS_##name,
    LOG_FILES(X)
#undef X
    LOGS_COUNT
};

struct logs;

/* Make the files in the folder. */
struct logs *logs_create(int dir_fd, struct err *err);
void logs_destroy(struct logs *l); /* NULL is fine */

/* A descriptor for appending, close-on-exec, owned by the caller. */
int logs_open(struct logs *l, enum log_file file, struct err *err);

/* One line with the time in front into crunch-run.txt, and to standard error
 * while echo is on (the program runs in the foreground). NULL: to standard
 * error only, or, without echo, to the machine's syslog. */
void logs_printf(struct logs *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void logs_echo(bool on);

/* As it stands, without a time. */
void logs_append(struct logs *l, enum log_file file, const char *text,
                 size_t n);

/*
 * Send what is new, at most `budget` bytes of each file. A file that the
 * server takes no more of (413) is cut there, once told in crunch-run.txt,
 * and is no error. Other errors as in api.h; what was sent stays sent.
 */
int logs_send(struct logs *l, struct api *a, int64_t budget,
              struct err *err);

#endif
