/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One child process, from posix_spawn to its end, on a worker thread.
 *
 *   spawn       own process group, default signals, nothing open but 0, 1, 2
 *   pump        poll: write input, read both outputs, watch the pidfd and the
 *               call's wake descriptor, until the process has ended
 *   drain       read what is in the pipes, without waiting: a daemon that the
 *               program left behind may keep them open for ever
 *   or kill     deadline or cancellation: SIGKILL to the group
 *   reap        always
 *
 * Not core/io: that one belongs to the loop thread. fork() is never used: this
 * process has threads. Output beyond the limit is read and thrown away, so
 * that the program does not block on it.
 *
 * A pid stays reserved until it is reaped, so the group is signalled safely.
 */

#include "core/plugin/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cdc/host.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/plugin/call.h"
#include "core/plugin/trust.h"

enum { OUTPUT_DEFAULT = 1 << 20, OUTPUT_MAX = 16 << 20, CHUNK = 16384 };
enum { ENDED, OUT_OF_TIME };

struct stream {
    int fd; /* our end; -1 = at its end */
    struct buf data;
    bool truncated;
};

struct child {
    struct call *call;
    pid_t pid;
    int pidfd;
    int in; /* our end; -1 = everything written */
    const char *input;
    size_t input_len;
    struct stream out, err;
};

/* --- spawn --------------------------------------------------------------- */

struct pipes {
    int in[2], out[2], err[2]; /* [0] read, [1] write; -1 = closed */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void pipes_fini(struct pipes *p)
{
    close_fd(&p->in[0]);
    close_fd(&p->in[1]);
    close_fd(&p->out[0]);
    close_fd(&p->out[1]);
    close_fd(&p->err[0]);
    close_fd(&p->err[1]);
}

static int pipes_init(struct pipes *p, struct err *err)
{
    memset(p, 0xff, sizeof *p);
    if (pipe2(p->in, O_CLOEXEC) || pipe2(p->out, O_CLOEXEC) ||
        pipe2(p->err, O_CLOEXEC))
        return err_set_errno(err, errno, "pipe");
    if (fcntl(p->in[1], F_SETFL, O_NONBLOCK) ||
        fcntl(p->out[0], F_SETFL, O_NONBLOCK) ||
        fcntl(p->err[0], F_SETFL, O_NONBLOCK))
        return err_set_errno(err, errno, "fcntl");
    return 0;
}

static void fill_attr(posix_spawnattr_t *attr)
{
    sigset_t set;

    posix_spawnattr_init(attr);
    posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP |
                                       POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(attr, 0);
    sigemptyset(&set);
    posix_spawnattr_setsigmask(attr, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(attr, &set);
}

/* The ends of the pipes are above 2 here, because 0, 1, 2 are always open in
 * our programs; even then dup2 does what is wanted. */
static void fill_actions(posix_spawn_file_actions_t *a,
                         const struct pipes *p)
{
    posix_spawn_file_actions_init(a);
    posix_spawn_file_actions_adddup2(a, p->in[0], 0);
    posix_spawn_file_actions_adddup2(a, p->out[1], 1);
    posix_spawn_file_actions_adddup2(a, p->err[1], 2);
    posix_spawn_file_actions_addclosefrom_np(a, 3);
}

static int spawn(const struct cdc_process *p, const struct pipes *pipes,
                 pid_t *ret, struct err *err)
{
    static const char *const plain[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG=C.UTF-8", NULL,
    };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc;

    fill_attr(&attr);
    fill_actions(&actions, pipes);
    /* The casts drop const that the prototype lacks; nothing is written. */
    rc = posix_spawn(ret, p->argv[0], &actions, &attr,
                     (char *const *)p->argv,
                     (char *const *)(p->env ? p->env : plain));
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (!rc)
        return 0;
    err_set_errno(err, rc, "cannot start %s", p->argv[0]);
    if (err)
        err->class = ERR_CONFIG;
    return -1;
}

/* --- pump ---------------------------------------------------------------- */

static void write_input(struct child *c)
{
    ssize_t n = write(c->in, c->input, c->input_len);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n >= 0) {
        c->input += n;
        c->input_len -= (size_t)n;
    }
    /* An error is a program that does not want to read: its business. */
    if (n < 0 || c->input_len == 0)
        close_fd(&c->in);
}

static void read_stream(struct stream *s)
{
    char chunk[CHUNK];
    ssize_t n = read(s->fd, chunk, sizeof chunk);
    size_t room = s->data.max - s->data.len;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close_fd(&s->fd);
        return;
    }
    if ((size_t)n > room) {
        s->truncated = true;
        n = (ssize_t)room;
    }
    buf_append(&s->data, chunk, (size_t)n);
}

static bool may_read(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return fd >= 0 && poll(&p, 1, 0) == 1;
}

/* At most as much as was buffered when the program ended, and a bit. */
static void drain(struct stream *s)
{
    for (int i = 0; i < 256 && may_read(s->fd); i++)
        read_stream(s);
}

static int pump(struct child *c)
{
    struct pollfd p[] = {
        {.events = POLLIN, .fd = c->pidfd},
        {.events = POLLIN, .fd = c->call->wake_fd},
        {.events = POLLOUT}, {.events = POLLIN}, {.events = POLLIN},
    };
    int64_t left;

    while ((left = call_left_ms(c->call)) > 0) {
        p[2].fd = c->in;
        p[3].fd = c->out.fd;
        p[4].fd = c->err.fd;
        if (poll(p, MEM_COUNT(p), left < 60000 ? (int)left : 60000) < 0)
            continue;
        if (p[2].revents)
            write_input(c);
        if (p[3].revents)
            read_stream(&c->out);
        if (p[4].revents)
            read_stream(&c->err);
        if (p[0].revents)
            return ENDED;
        if (p[1].revents)
            return OUT_OF_TIME;
    }
    return OUT_OF_TIME;
}

/* --- the whole run ------------------------------------------------------- */

static int reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static const char *keep(struct call *c, struct buf *b, uint64_t *ret_len)
{
    size_t n;
    char *data = buf_take(b, &n);

    pthread_mutex_lock(&c->lock);
    VEC_PUSH(&c->scratch, data);
    pthread_mutex_unlock(&c->lock);
    *ret_len = n;
    return data;
}

static void fill_result(struct child *c, int status,
                        struct cdc_process_result *result)
{
    result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->term_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result->truncated = c->out.truncated || c->err.truncated;
    result->out = keep(c->call, &c->out.data, &result->out_len);
    result->err = keep(c->call, &c->err.data, &result->err_len);
}

static int finish(struct child *c, int why,
                  struct cdc_process_result *result, struct err *err)
{
    int status;

    if (why != ENDED)
        kill(-c->pid, SIGKILL);
    status = reap(c->pid);
    if (why != ENDED)
        return err_set(err, ERR_UNKNOWN,
                       "the program was killed after %s",
                       call_left_ms(c->call) ? "a cancellation"
                                             : "its deadline");
    drain(&c->out);
    drain(&c->err);
    fill_result(c, status, result);
    return 0;
}

static int check(const struct cdc_process *p,
                 const struct cdc_process_result *r, struct err *err)
{
    if (!p || p->size < sizeof *p || !r || r->size < sizeof *r)
        return err_set(err, ERR_INTERNAL,
                       "run_process: a struct of the wrong size");
    if (!p->argv || !p->argv[0] || p->argv[0][0] != '/')
        return err_set(err, ERR_INTERNAL,
                       "run_process: argv[0] is no absolute path");
    if (p->input_len && !p->input)
        return err_set(err, ERR_INTERNAL, "run_process: input is NULL");
    if (trust_check(p->argv[0], err)) {
        if (err)
            err->class = ERR_CONFIG;
        return -1;
    }
    return 0;
}

static void move(int *to, int *from)
{
    *to = *from;
    *from = -1;
}

static int run(struct child *c, struct pipes *pipes,
               const struct cdc_process *p,
               struct cdc_process_result *result, struct err *err)
{
    int rc;

    if (spawn(p, pipes, &c->pid, err))
        return -1;
    move(&c->in, &pipes->in[1]);
    move(&c->out.fd, &pipes->out[0]);
    move(&c->err.fd, &pipes->err[0]);
    pipes_fini(pipes);
    if (c->input_len == 0)
        close_fd(&c->in);
    c->pidfd = pidfd_open(c->pid, 0);
    rc = finish(c, c->pidfd < 0 ? OUT_OF_TIME : pump(c), result, err);
    close_fd(&c->in);
    close_fd(&c->out.fd);
    close_fd(&c->err.fd);
    close_fd(&c->pidfd);
    return rc;
}

int process_run(struct call *call, const struct cdc_process *p,
                struct cdc_process_result *result, struct err *err)
{
    struct child c = {.call = call, .in = -1, .pidfd = -1};
    struct pipes pipes;
    size_t max;
    int rc;

    if (check(p, result, err))
        return -1;
    c.input = p->input;
    c.input_len = (size_t)p->input_len;
    max = p->max_output ? p->max_output : OUTPUT_DEFAULT;
    max = max < OUTPUT_MAX ? max : OUTPUT_MAX;
    buf_init(&c.out.data, max);
    buf_init(&c.err.data, max);
    c.out.fd = c.err.fd = -1;
    rc = pipes_init(&pipes, err) || run(&c, &pipes, p, result, err) ? -1 : 0;
    pipes_fini(&pipes);
    buf_fini(&c.out.data);
    buf_fini(&c.err.data);
    return rc;
}
