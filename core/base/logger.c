/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured log lines, as text for people or JSON for machines.
 *
 * A root logger owns a sink: where lines go, from which level on, in which
 * form, and which secrets must never leave. Children add one context field
 * each and share the sink; a line shows the context from the root downwards,
 * then the event's own fields.
 *
 * The way of a value: secrets are replaced first, while the bytes are as their
 * owner registered them, then it is cut, then escaped for the format. So
 * neither a cut nor an escape can hide a part of a secret from the search.
 *
 * A line is built and written under the sink's mutex with a single write(2):
 * lines of several threads never mix. Any thread. A failing write is ignored:
 * there is nobody left to tell.
 */
#include "core/base/logger.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/fdio.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"

enum {
    VALUE_MAX = 2048,
    LINE_MAX_BYTES = 1 << 20,
    SECRET_MIN = 8,
    SECRETS_MAX = 32,
};

struct sink {
    int fd;
    void (*line)(void *arg, const char *line); /* NULL: write to fd */
    void *arg;
    enum log_format format;
    enum log_level level;
    pthread_mutex_t mutex; /* for all below, and for the order of lines */
    char *secrets[SECRETS_MAX];
    size_t n_secrets;
};

struct logger {
    struct sink *sink;
    struct logger *parent; /* NULL: this one owns the sink */
    char *key;
    char *value;
};

/* One line under construction. */
struct line {
    struct sink *sink;
    struct buf out;
    struct buf value; /* scratch: a value without secrets, cut */
    struct jsn_w w;   /* LOG_JSON only */
};

static const char *const level_labels[] = {
#define X(name, label) [LOG_##name] = label,
    LOG_LEVELS(X)
#undef X
};

static const char *const level_words[] = {
#define X(name, label) [LOG_##name] = #name,
    LOG_LEVELS(X)
#undef X
};

int log_level_of(const char *label)
{
    for (size_t i = 0; i < MEM_COUNT(level_labels); i++)
        if (strcmp(label, level_labels[i]) == 0)
            return (int) i;
    return strcmp(label, "warn") == 0 ? LOG_WARN : -1;
}

static struct logger *create(const struct sink *model)
{
    struct logger *lg = MEM_NEW(struct logger);

    lg->sink = mem_dup(model, sizeof *model);
    pthread_mutex_init(&lg->sink->mutex, NULL);
    return lg;
}

struct logger *logger_create(int fd, enum log_format format,
                             enum log_level level)
{
    struct sink model = {.fd = fd, .format = format, .level = level};

    return create(&model);
}

struct logger *logger_create_sink(void (*line)(void *arg, const char *line),
                                  void *arg, enum log_format format,
                                  enum log_level level)
{
    struct sink model = {.fd = -1,
                         .line = line,
                         .arg = arg,
                         .format = format,
                         .level = level};

    return create(&model);
}

struct logger *logger_child(struct logger *parent, const char *key,
                            const char *value)
{
    struct logger *lg = MEM_NEW(struct logger);

    if (!parent) {
        /* A child of a silent logger is silent. */
        struct sink model = {.fd = -1, .level = (enum log_level)(LOG_ERROR + 1)};
        free(lg);
        return create(&model);
    }
    lg->sink = parent->sink;
    lg->parent = parent;
    lg->key = mem_strdup(key);
    lg->value = mem_strdup(value);
    return lg;
}

static void sink_destroy(struct sink *sink)
{
    for (size_t i = 0; i < sink->n_secrets; i++)
        secret_free(sink->secrets[i]);
    pthread_mutex_destroy(&sink->mutex);
    free(sink);
}

void logger_destroy(struct logger *lg)
{
    if (!lg)
        return;
    if (!lg->parent)
        sink_destroy(lg->sink);
    free(lg->key);
    free(lg->value);
    free(lg);
}

void logger_hide(struct logger *lg, const char *secret)
{
    struct sink *sink;

    if (!lg || !secret || strlen(secret) < SECRET_MIN)
        return;
    sink = lg->sink;
    pthread_mutex_lock(&sink->mutex);
    bool known = false;
    for (size_t i = 0; i < sink->n_secrets; i++)
        known = known || strcmp(sink->secrets[i], secret) == 0;
    if (!known && sink->n_secrets < SECRETS_MAX)
        sink->secrets[sink->n_secrets++] = mem_strdup(secret);
    pthread_mutex_unlock(&sink->mutex);
}

bool logger_enabled(const struct logger *lg, enum log_level level)
{
    return lg && level >= lg->sink->level;
}

/* The first secret in s: its place, its length; NULL if there is none. */
static const char *find_secret(const struct sink *sink, const char *s,
                               size_t *ret_len)
{
    const char *first = NULL;

    for (size_t i = 0; i < sink->n_secrets; i++) {
        const char *at = strstr(s, sink->secrets[i]);
        if (at && (!first || at < first)) {
            first = at;
            *ret_len = strlen(sink->secrets[i]);
        }
    }
    return first;
}

static void redact(const struct sink *sink, const char *s, struct buf *out)
{
    const char *secret;
    size_t len = 0;

    while ((secret = find_secret(sink, s, &len))) {
        buf_append(out, s, (size_t) (secret - s));
        buf_puts(out, "[secret]");
        s = secret + len;
    }
    buf_puts(out, s);
}

/* Cut at a character's boundary, and show that it was. */
static void cut(struct buf *value)
{
    static const char mark[] = "...";
    size_t len = VALUE_MAX - (sizeof mark - 1);

    if (value->len <= VALUE_MAX)
        return;
    while (len > 0 && (value->data[len] & 0xC0) == 0x80)
        len--;
    buf_truncate(value, len);
    buf_puts(value, mark);
}

/* s as it may be shown, in line->value. */
static const char *clean(struct line *line, const char *s)
{
    buf_reset(&line->value);
    redact(line->sink, s, &line->value);
    if (line->value.over) {
        buf_reset(&line->value);
        buf_puts(&line->value, "[too long]");
    }
    cut(&line->value);
    return line->value.data;
}

static bool needs_quotes(const char *s)
{
    return *s == '\0' || strpbrk(s, " =\"'") != NULL;
}

static void text_value(struct buf *out, const char *s)
{
    bool quotes = needs_quotes(s);

    if (quotes)
        buf_putc(out, '"');
    for (size_t n; *s; s += n) {
        n = strcspn(s, "\"");
        text_quote_terminal(out, s, n);
        if (s[n] == '"') {
            buf_puts(out, "\\\"");
            n++;
        }
    }
    if (quotes)
        buf_putc(out, '"');
}

static void add_field(struct line *line, const char *key, const char *value)
{
    if (!value)
        return;
    value = clean(line, value);
    if (line->sink->format == LOG_JSON) {
        jsn_w_str(&line->w, key, value);
        return;
    }
    buf_printf(&line->out, " %s=", key);
    text_value(&line->out, value);
}

static void add_context(struct line *line, const struct logger *lg)
{
    if (!lg->parent)
        return;
    add_context(line, lg->parent);
    add_field(line, lg->key, lg->value);
}

static void begin_line(struct line *line, enum log_level level,
                       const char *msg)
{
    char now[TEXT_TIME_SIZE];

    text_format_time(clock_wall_us(), now);
    msg = clean(line, msg);
    if (line->sink->format == LOG_JSON) {
        jsn_w_init(&line->w, &line->out);
        jsn_w_obj(&line->w, NULL);
        jsn_w_str(&line->w, "time", now);
        jsn_w_str(&line->w, "level", level_labels[level]);
        jsn_w_str(&line->w, "msg", msg);
        jsn_w_i64(&line->w, "PID", getpid());
        return;
    }
    buf_printf(&line->out, "%s %s ", now, level_words[level]);
    text_quote_terminal(&line->out, msg, strlen(msg));
}

static void end_line(struct line *line)
{
    struct sink *sink = line->sink;

    if (sink->format == LOG_JSON)
        jsn_w_end_obj(&line->w);
    if (line->out.over)
        return; /* LINE_MAX_BYTES: hundreds of fields */
    if (sink->line) {
        sink->line(sink->arg, line->out.data);
        return;
    }
    buf_putc(&line->out, '\n');
    fdio_write_all(sink->fd, line->out.data, line->out.len);
}

static void add_err(struct line *line, const struct err *err)
{
    if (!err)
        return;
    add_field(line, "error", err->text);
    add_field(line, "ErrorClass", err_class_label(err->class));
    add_field(line, "ErrorCode", err->code[0] ? err->code : NULL);
    add_field(line, "RequestID", err->request_id[0] ? err->request_id : NULL);
}

/* ap: pairs up to NULL; none when pairs is false. */
static void emit(struct logger *lg, enum log_level level,
                 const struct err *err, const char *msg, bool pairs,
                 va_list ap)
{
    int saved = errno;
    struct line line = {.sink = lg->sink};
    const char *key;

    buf_init(&line.out, LINE_MAX_BYTES + 1);
    buf_init(&line.value, LINE_MAX_BYTES);
    pthread_mutex_lock(&line.sink->mutex);
    begin_line(&line, level, msg);
    add_context(&line, lg);
    while (pairs && (key = va_arg(ap, const char *)))
        add_field(&line, key, va_arg(ap, const char *));
    add_err(&line, err);
    end_line(&line);
    pthread_mutex_unlock(&line.sink->mutex);
    buf_wipe(&line.value);
    buf_fini(&line.out);
    errno = saved;
}

void log_event(struct logger *lg, enum log_level level, const char *msg, ...)
{
    va_list ap;

    if (!logger_enabled(lg, level))
        return;
    va_start(ap, msg);
    emit(lg, level, NULL, msg, true, ap);
    va_end(ap);
}

void log_failure(struct logger *lg, enum log_level level,
                 const struct err *err, const char *msg, ...)
{
    va_list ap;

    if (!logger_enabled(lg, level))
        return;
    va_start(ap, msg);
    emit(lg, level, err, msg, true, ap);
    va_end(ap);
}

void log_printf(struct logger *lg, enum log_level level, const char *fmt, ...)
{
    char msg[VALUE_MAX];
    va_list ap;

    if (!logger_enabled(lg, level))
        return;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    emit(lg, level, NULL, msg, false, ap);
    va_end(ap);
}
