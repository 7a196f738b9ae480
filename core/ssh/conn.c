/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One SSH connection.
 *
 *   TCP (non-blocking connect) -> KEX (ssh_connect) -> LOGIN (public key)
 *   -> OPEN (channels) -> BROKEN
 *
 * libssh is given our own connected socket, so that it resolves no names and
 * its descriptor is ours to poll. Two facts shape the code: who closes the
 * descriptor given with SSH_OPTIONS_FD differs between versions, therefore a
 * duplicate is lent and ours is always closed by us; and libssh may hold data
 * that it has read but not looked at, therefore a step pumps and steps the
 * channels until nothing changes, and only then waits for the descriptor.
 *
 * Until OPEN, the CONNECT op owns the connection's fate; its deadline is the
 * only end of a peer that accepts and then says nothing. A broken connection
 * ends its ops and tells its owner once; the owner closes it.
 */
#include "core/ssh/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/ssh/chan.h"
#include "core/ssh/shard.h"

enum conn_state { CONN_TCP, CONN_KEX, CONN_LOGIN, CONN_OPEN, CONN_BROKEN };

struct conn {
    const struct conn_host *host;
    uint64_t id;
    enum conn_state state;
    struct shard_op *connect; /* until it has been answered */
    ssh_session session;
    ssh_event event;
    struct chan *chans;
    int fd;       /* ours */
    int lent;     /* libssh's, unless ssh_connect was never called */
    bool connect_called, want_write, registered;
    char user[64];
};

uint64_t conn_id(const struct conn *c)
{
    return c->id;
}

bool conn_broken(const struct conn *c)
{
    return c->state == CONN_BROKEN;
}

/* --- answers --------------------------------------------------------------- */

static void answer_connect(struct conn *c, enum op_outcome outcome)
{
    struct shard_op *op = c->connect;

    c->connect = NULL;
    if (op->deadline_us)
        --*c->host->deadlines;
    op->r.outcome = outcome;
    c->host->done(c->host->arg, op);
}

static void end_channels(struct conn *c, enum err_class class,
                         const char *why)
{
    while (c->chans) {
        struct chan *ch = c->chans;

        c->chans = ch->next;
        chan_abort(ch, class, why);
        c->host->done(c->host->arg, ch->op);
        chan_destroy(ch);
    }
}

static void unregister(struct conn *c)
{
    if (c->registered)
        epoll_ctl(c->host->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    c->registered = false;
}

/* The connection is of no use any more. */
static void break_down(struct conn *c, enum err_class class, const char *why)
{
    struct err err;

    if (c->state == CONN_BROKEN)
        return;
    c->state = CONN_BROKEN;
    unregister(c);
    err_set(&err, class, "%s", why);
    if (c->connect) {
        c->connect->r.err = err;
        answer_connect(c, class == ERR_CANCELLED ? OP_CANCELLED : OP_REFUSED);
        return;
    }
    end_channels(c, ERR_UNKNOWN, why);
    c->host->broken(c->host->arg, c->id, &err);
}

static void break_with_libssh(struct conn *c, enum err_class class,
                              const char *what)
{
    char text[300];

    snprintf(text, sizeof text, "%s: %.200s", what,
             c->session ? ssh_get_error(c->session) : "");
    break_down(c, class, text);
}

/* --- the descriptor -------------------------------------------------------- */

static void want(struct conn *c, bool write)
{
    struct epoll_event ev = {
        .events = EPOLLIN | (write ? (unsigned) EPOLLOUT : 0u),
        .data.ptr = c,
    };

    if (c->registered && write == c->want_write)
        return;
    if (epoll_ctl(c->host->epoll,
                  c->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd,
                  &ev) < 0) {
        break_down(c, ERR_TRANSIENT, "cannot poll the connection");
        return;
    }
    c->registered = true;
    c->want_write = write;
}

static int parse_address(const struct shard_op *op,
                         struct sockaddr_storage *ret, socklen_t *ret_len)
{
    struct sockaddr_in *v4 = (void *) ret;
    struct sockaddr_in6 *v6 = (void *) ret;

    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, op->address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t) op->port);
        *ret_len = sizeof *v4;
        return 0;
    }
    if (inet_pton(AF_INET6, op->address, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t) op->port);
        *ret_len = sizeof *v6;
        return 0;
    }
    return -1;
}

/* A dead peer is noticed by the kernel within about a minute even when
 * nothing is being said. */
static void tune(int fd)
{
    int on = 1, idle = 30, interval = 10, count = 3;
    unsigned timeout = 60000;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

static void start_tcp(struct conn *c)
{
    struct sockaddr_storage addr;
    socklen_t len;
    char text[200];

    if (parse_address(c->connect, &addr, &len) < 0) {
        snprintf(text, sizeof text, "\"%.60s\" is not an IP address",
                 c->connect->address);
        break_down(c, ERR_INVALID, text);
        return;
    }
    c->fd = socket(addr.ss_family,
                   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        break_down(c, ERR_TRANSIENT, "no descriptor for a connection");
        return;
    }
    tune(c->fd);
    if (connect(c->fd, (void *) &addr, len) < 0 && errno != EINPROGRESS) {
        break_down(c, ERR_TRANSIENT, strerror(errno));
        return;
    }
    want(c, true);
}

/* --- libssh ---------------------------------------------------------------- */

/* Everything that could make libssh read files, ask agents, start programs
 * or resolve names is switched off. */
static const struct {
    enum ssh_options_e option;
    const char *text;
} text_options[] = {
    { SSH_OPTIONS_HOST, "instance" },
    { SSH_OPTIONS_SSH_DIR, "/nonexistent" },
    { SSH_OPTIONS_KNOWNHOSTS, "/dev/null" },
    { SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null" },
    { SSH_OPTIONS_IDENTITY_AGENT, "none" },
    { SSH_OPTIONS_PROXYCOMMAND, "none" },
    { SSH_OPTIONS_KEY_EXCHANGE,
      "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,"
      "ecdh-sha2-nistp384,diffie-hellman-group14-sha256,"
      "diffie-hellman-group16-sha512" },
    { SSH_OPTIONS_HOSTKEYS,
      "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,rsa-sha2-512,"
      "rsa-sha2-256" },
    { SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES,
      "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,"
      "ecdsa-sha2-nistp521,rsa-sha2-512,rsa-sha2-256" },
};

static int set_options(struct conn *c)
{
    const struct {
        enum ssh_options_e option;
        int value;
    } flags[] = {
        { SSH_OPTIONS_PROCESS_CONFIG, 0 }, { SSH_OPTIONS_NODELAY, 1 },
        { SSH_OPTIONS_GSSAPI_AUTH, 0 },    { SSH_OPTIONS_PASSWORD_AUTH, 0 },
        { SSH_OPTIONS_KBDINT_AUTH, 0 },    { SSH_OPTIONS_LOG_VERBOSITY, 0 },
#if LIBSSH_VERSION_INT >= SSH_VERSION_INT(0, 11, 0)
        { SSH_OPTIONS_IDENTITIES_ONLY, 1 },
#endif
    };
    socket_t fd = c->lent;

    for (size_t i = 0; i < MEM_COUNT(flags); i++) {
        bool as_bool = flags[i].value != 0;
        /* PROCESS_CONFIG and IDENTITIES_ONLY are read as bool, the others
         * as int; all are 0 or 1, and a bool is the first byte of neither
         * on every machine, so each gets its own type. */
        bool is_bool = flags[i].option == SSH_OPTIONS_PROCESS_CONFIG
#if LIBSSH_VERSION_INT >= SSH_VERSION_INT(0, 11, 0)
                       || flags[i].option == SSH_OPTIONS_IDENTITIES_ONLY
#endif
            ;
        const void *value = is_bool ? (const void *) &as_bool
                                    : (const void *) &flags[i].value;

        if (ssh_options_set(c->session, flags[i].option, value) < 0)
            return -1;
    }
    for (size_t i = 0; i < MEM_COUNT(text_options); i++)
        if (ssh_options_set(c->session, text_options[i].option,
                            text_options[i].text) < 0)
            return -1;
    if (ssh_options_set(c->session, SSH_OPTIONS_USER, c->user) < 0)
        return -1;
    return ssh_options_set(c->session, SSH_OPTIONS_FD, &fd);
}

static bool step_tcp(struct conn *c)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error) {
        break_down(c, ERR_TRANSIENT, strerror(error));
        return true;
    }
    c->lent = fcntl(c->fd, F_DUPFD_CLOEXEC, 3);
    c->session = ssh_new();
    if (c->lent < 0 || !c->session) {
        break_down(c, ERR_TRANSIENT, "no descriptor for a session");
        return true;
    }
    ssh_set_blocking(c->session, 0);
    if (set_options(c) < 0)
        break_with_libssh(c, ERR_INTERNAL, "cannot set up a session");
    else
        c->state = CONN_KEX;
    return true;
}

static bool step_kex(struct conn *c)
{
    int rc;

    c->connect_called = true;
    rc = ssh_connect(c->session);
    if (rc == SSH_AGAIN)
        return false;
    if (rc != SSH_OK)
        break_with_libssh(c, ERR_TRANSIENT, "key exchange failed");
    else
        c->state = CONN_LOGIN;
    return true;
}

static int host_key(struct conn *c)
{
    ssh_key key = NULL;
    char *text = NULL;
    int rc = -1;

    if (ssh_get_server_publickey(c->session, &key) != SSH_OK)
        return -1;
    if (ssh_pki_export_pubkey_base64(key, &text) == SSH_OK) {
        c->connect->host_key = mem_printf(
            "%s %s", ssh_key_type_to_char(ssh_key_type(key)), text);
        rc = 0;
    }
    ssh_string_free_char(text);
    ssh_key_free(key);
    return rc;
}

static bool step_login(struct conn *c)
{
    int rc = ssh_userauth_publickey(c->session, NULL, c->host->key);

    if (rc == SSH_AUTH_AGAIN)
        return false;
    if (rc == SSH_AUTH_DENIED || rc == SSH_AUTH_PARTIAL) {
        break_down(c, ERR_AUTH, "the server refused our key");
        return true;
    }
    if (rc != SSH_AUTH_SUCCESS) {
        break_with_libssh(c, ERR_TRANSIENT, "login failed");
        return true;
    }
    c->event = ssh_event_new();
    if (!c->event || ssh_event_add_session(c->event, c->session) != SSH_OK ||
        host_key(c) < 0) {
        break_with_libssh(c, ERR_INTERNAL, "cannot use the session");
        return true;
    }
    c->state = CONN_OPEN;
    answer_connect(c, OP_DONE);
    return true;
}

/* Hand back the ops of channels that have ended. */
static void reap(struct conn *c)
{
    struct chan **link = &c->chans;

    while (*link) {
        struct chan *ch = *link;

        if (ch->state != CHAN_ENDED) {
            link = &ch->next;
            continue;
        }
        *link = ch->next;
        c->host->done(c->host->arg, ch->op);
        chan_destroy(ch);
    }
}

static bool step_channels(struct conn *c)
{
    bool moved = false;

    for (struct chan *ch = c->chans; ch; ch = ch->next)
        moved |= chan_step(ch, c->session);
    reap(c);
    return moved;
}

static bool step_open(struct conn *c)
{
    bool moved;

    if (ssh_event_dopoll(c->event, 0) == SSH_ERROR ||
        !ssh_is_connected(c->session)) {
        /* What came before the end still counts. */
        step_channels(c);
        break_with_libssh(c, ERR_TRANSIENT, "the connection broke");
        return true;
    }
    moved = step_channels(c);
    if (!ssh_is_connected(c->session))
        return true;
    return moved;
}

static bool step_once(struct conn *c)
{
    switch (c->state) {
    case CONN_TCP:
        return step_tcp(c);
    case CONN_KEX:
        return step_kex(c);
    case CONN_LOGIN:
        return step_login(c);
    case CONN_OPEN:
        return step_open(c);
    case CONN_BROKEN:
        break;
    }
    return false;
}

void conn_step(struct conn *c)
{
    while (step_once(c))
        ;
    if (c->state == CONN_BROKEN)
        return;
    want(c, ssh_get_poll_flags(c->session) & SSH_WRITE_PENDING);
}

/* --- asked by the shard ----------------------------------------------------- */

struct conn *conn_create(const struct conn_host *host, struct shard_op *op)
{
    struct conn *c = MEM_NEW(struct conn);

    c->host = host;
    c->id = op->session;
    c->connect = op;
    c->fd = c->lent = -1;
    snprintf(c->user, sizeof c->user, "%s", op->user);
    if (op->deadline_us)
        ++*host->deadlines;
    start_tcp(c);
    return c;
}

void conn_destroy(struct conn *c)
{
    if (c->connect) {
        err_set(&c->connect->r.err, ERR_CANCELLED, "closed");
        answer_connect(c, OP_CANCELLED);
    }
    end_channels(c, ERR_CANCELLED, "the session was closed");
    unregister(c);
    if (c->event) {
        ssh_event_remove_session(c->event, c->session);
        ssh_event_free(c->event);
    }
    /* Never ssh_disconnect: it would wait for the peer. */
    ssh_free(c->session);
    if (!c->connect_called)
        mem_close(&c->lent);
    mem_close(&c->fd);
    free(c);
}

void conn_start(struct conn *c, struct shard_op *op)
{
    struct chan **end = &c->chans;

    while (*end)
        end = &(*end)->next;
    *end = chan_create(c->host, op);
    conn_step(c);
}

bool conn_cancel(struct conn *c, uint64_t op)
{
    if (c->connect && c->connect->id == op) {
        break_down(c, ERR_CANCELLED, "cancelled");
        return true;
    }
    for (struct chan *ch = c->chans; ch; ch = ch->next) {
        if (ch->op->id != op)
            continue;
        chan_cancel(ch);
        reap(c);
        conn_step(c);
        return true;
    }
    return false;
}

void conn_expire(struct conn *c, int64_t now_us)
{
    if (c->connect && c->connect->deadline_us &&
        now_us >= c->connect->deadline_us) {
        break_down(c, ERR_TIMEOUT, "no connection in time");
        return;
    }
    for (struct chan *ch = c->chans; ch; ch = ch->next)
        chan_expire(ch, now_us);
    if (c->state == CONN_OPEN) {
        reap(c);
        conn_step(c);
    }
}

bool conn_has_deadline(const struct conn *c)
{
    return c->connect || c->chans;
}
