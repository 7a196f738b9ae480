/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs.
 *
 * Everything goes through files: a payload never blocks because the server is
 * away, a burst costs disk and not memory, and what is not sent yet survives
 * in one place. logs_send() compares the length of each file with what the
 * server has and sends the difference in pieces. Writing the same bytes at the
 * same offset twice is harmless (the API says so), so a piece of unknown fate
 * is just sent again.
 */
#include "core/runner/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/fdio.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/runner/api.h"

enum {
    LINE_MAX_BYTES = 8 * 1024,
    FREE_STEP = 64 * 1024 * 1024, /* give sent bytes back in such steps */
};

struct file {
    const char *name;
    int fd;         /* for reading, and for appending by us */
    int64_t sent;   /* the server has this many bytes */
    int64_t freed;  /* bytes at the start that the disk has back */
    bool full;      /* the server takes no more */
    bool rewound;   /* sent again from the start once */
};

struct logs {
    int dir_fd;
    struct file files[LOGS_COUNT];
};

static bool echo = true;

static const char *const names[] = {
#define X(name, file, by) [LOGS_##name] = file,
    LOG_FILES(X)
#undef X
};

struct logs *logs_create(int dir_fd, struct err *err)
{
    struct logs *l = MEM_NEW(struct logs);

    l->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < LOGS_COUNT; i++) {
        l->files[i].name = names[i];
        l->files[i].fd = openat(dir_fd, names[i],
                                O_RDWR | O_CREAT | O_EXCL | O_APPEND |
                                    O_CLOEXEC, 0600);
        if (l->files[i].fd < 0) {
            err_set_errno(err, errno, "%s", names[i]);
            logs_destroy(l);
            return NULL;
        }
    }
    return l;
}

void logs_destroy(struct logs *l)
{
    if (!l)
        return;
    /* A zeroed entry was never opened: 0 is standard input. */
    for (int i = 0; i < LOGS_COUNT; i++) {
        if (l->files[i].fd > 0)
            close(l->files[i].fd);
    }
    mem_close(&l->dir_fd);
    free(l);
}

int logs_open(struct logs *l, enum log_file file, struct err *err)
{
    int fd = openat(l->dir_fd, names[file],
                    O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return err_set_errno(err, errno, "%s", names[file]);
    return fd;
}

void logs_echo(bool on)
{
    echo = on;
}

void logs_append(struct logs *l, enum log_file file, const char *text,
                 size_t n)
{
    /* A failure is a full disk: nothing that a log could tell. */
    fdio_write_all(l->files[file].fd, text, n);
}

/* The machine's own log, if it has one (RFC 3164 by the local socket): the
 * last resort of a program in the background. Never waits. */
static void to_syslog(const char *line, size_t n)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    CLEANUP(mem_close) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC |
                                                    SOCK_NONBLOCK, 0);
    CLEANUP(mem_free) char *text = mem_printf(
        "<27>crunch-run[%d]: %.*s", (int) getpid(), (int) n, line);

    if (fd >= 0)
        sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *) &to,
               sizeof to);
}

void logs_printf(struct logs *l, const char *fmt, ...)
{
    CLEANUP(buf_fini) struct buf line;
    char now[TEXT_TIME_SIZE];
    va_list ap;

    buf_init(&line, LINE_MAX_BYTES);
    buf_printf(&line, "%s ", text_format_time(clock_wall_us(), now));
    va_start(ap, fmt);
    buf_vprintf(&line, fmt, ap);
    va_end(ap);
    if (line.over) {
        buf_reset(&line);
        buf_puts(&line, "(a line that was too long)");
    }
    buf_putc(&line, '\n');
    if (l)
        logs_append(l, LOGS_RUNNER, line.data, line.len);
    if (echo)
        fputs(line.data, stderr);
    else if (!l)
        to_syslog(line.data, line.len);
}

/* The server has these bytes: the disk may have them back. */
static void give_back(struct file *f)
{
    if (f->sent - f->freed < FREE_STEP)
        return;
    if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, f->freed,
                  f->sent - f->freed) == 0)
        f->freed = f->sent;
}

/* The server's refusal of one piece. 0: go on, unless the file is full. */
static int judge(struct logs *l, struct file *f, struct err *err)
{
    if (err->class == ERR_TOO_LARGE) {
        f->full = true;
        logs_printf(l, "%s: cut at %lld bytes: %s", f->name,
                    (long long) f->sent, err->text);
        return 0;
    }
    /* The server has less than it said it had: once more from the start. */
    if (err->class == ERR_INVALID && f->sent && !f->freed && !f->rewound) {
        f->rewound = true;
        f->sent = 0;
        return 0;
    }
    return -1;
}

static int send_file(struct logs *l, struct file *f, struct api *a,
                     int64_t budget, struct err *err)
{
    struct stat st;

    if (fstat(f->fd, &st) < 0)
        return err_set_errno(err, errno, "%s", f->name);
    if (f->full)
        f->sent = st.st_size;
    while (f->sent < st.st_size && budget > 0) {
        int64_t n = st.st_size - f->sent;

        if (n > API_PIECE_MAX)
            n = API_PIECE_MAX;
        if (n > budget)
            n = budget;
        if (api_put_file(a, "log", f->name, f->fd, f->sent, (size_t) n,
                         err) == 0) {
            f->sent += n;
            budget -= n;
            give_back(f);
        } else if (judge(l, f, err) < 0) {
            return -1;
        } else if (f->full) {
            break;
        }
    }
    if (f->full)
        give_back(f);
    return 0;
}

int logs_send(struct logs *l, struct api *a, int64_t budget, struct err *err)
{
    struct err own = {0};

    /* Ours last: it may tell of the others. */
    for (int i = LOGS_COUNT - 1; i >= 0; i--) {
        if (send_file(l, &l->files[i], a, budget, &own) < 0) {
            if (err)
                *err = own;
            return -1;
        }
    }
    return 0;
}
