/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_LOGGER_H
#define CORE_BASE_LOGGER_H

/*
 * Structured log lines.
 *
 * One event = one line: a level, a message in plain words, and key/value
 * fields. Two formats: text (`2026-... INFO msg key=value`) and JSON lines
 * (keys time, level, msg, PID, then fields). The field names that Arvados'
 * dispatcher uses are kept: ClusterID, ContainerUUID, Instance, InstanceType,
 * Address, State, Priority, WorkerState, IdleBehavior, Reason, error.
 *
 * A value is cut at 2 KiB and escaped; a registered secret that appears in a
 * line is replaced by "[secret]" before the line leaves the process. Safe to
 * call from any thread (one write(2) per line).
 */

#include <stdbool.h>

struct err;
struct logger;

/*      name   label    */
#define LOG_LEVELS(X)                                                         \
    X(DEBUG, "debug")                                                         \
    X(INFO,  "info")                                                          \
    X(WARN,  "warning")                                                       \
    X(ERROR, "error")

enum log_level {
#define X(name, label) LOG_##name,
    LOG_LEVELS(X)
#undef X
};

enum log_format { LOG_TEXT, LOG_JSON };

/* Label ("info", also "warn") to level; -1 = unknown. */
int log_level_of(const char *label);

/* A logger that writes to fd (not owned). */
struct logger *logger_create(int fd, enum log_format format,
                             enum log_level level);
/* For tests: lines (without newline) go to a callback. */
struct logger *logger_create_sink(void (*line)(void *arg, const char *line),
                                  void *arg, enum log_format format,
                                  enum log_level level);
/* A logger with one more context field; shares the parent's sink. Children
 * must be destroyed before their parent. */
struct logger *logger_child(struct logger *parent, const char *key,
                            const char *value);
void logger_destroy(struct logger *lg); /* NULL is fine */

/* From now on this text never appears in a line. Texts under 8 characters are
 * ignored; at most 32 are kept. */
void logger_hide(struct logger *lg, const char *secret);

bool logger_enabled(const struct logger *lg, enum log_level level);

/*
 * Write an event: msg, then pairs of const char * key and value, then NULL.
 * A NULL logger writes nothing; a pair with a NULL value is left out.
 *
 *     log_event(lg, LOG_INFO, "container locked",
 *               "ContainerUUID", uuid, NULL);
 */
void log_event(struct logger *lg, enum log_level level, const char *msg, ...)
    __attribute__((sentinel));

/* The same with the error's text, class and code as fields. */
void log_failure(struct logger *lg, enum log_level level,
                 const struct err *err, const char *msg, ...)
    __attribute__((sentinel));

/* printf form for messages with numbers. */
void log_printf(struct logger *lg, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
