/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_port against a real OpenSSH server that runs as the caller on a free
 * loopback port: logins, commands, streams, and every way a peer can fail.
 * Where a server must misbehave at one exact moment, libssh's own is one.
 * Skipped (exit 77) where there is no sshd.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <pwd.h>
#include <setjmp.h>
#include <shadow.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/io/loop.h"
#include "core/port/exec.h"
#include "core/ssh/ssh_port.h"

static char dir[] = "/tmp/cdc-test-ssh-XXXXXX";
static int sshd_port;
static pid_t sshd_pid;
static struct loop *loop;
static struct ssh_port *port;
static struct exec_port *x;
static struct exec_target target;

/* --- the server ------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
    char path[200];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    chmod(path, 0600);
}

static char *read_file(const char *name)
{
    static char text[10000];
    char path[200];
    FILE *f;
    size_t n;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "r");
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    return text;
}

static int run(const char *const argv[])
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        execvp(argv[0], (char *const *) (uintptr_t) argv);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void keygen(const char *name)
{
    char path[200];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(run((const char *[]){ "ssh-keygen", "-q", "-t", "ed25519",
                                     "-N", "", "-f", path, NULL }), 0);
}

static int free_port(int *ret_fd)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (void *) &a, sizeof a), 0);
    assert_int_equal(getsockname(fd, (void *) &a, &len), 0);
    if (ret_fd)
        *ret_fd = fd;
    else
        close(fd);
    return ntohs(a.sin_port);
}

static void start_sshd(void)
{
    char text[2000], config[200], log[200];

    sshd_port = free_port(NULL);
    snprintf(text, sizeof text,
             "ListenAddress 127.0.0.1:%d\nHostKey %s/host\n"
             "AuthorizedKeysFile %s/user.pub\nUsePAM no\nStrictModes no\n"
             "PermitRootLogin yes\nPasswordAuthentication no\n"
             "PidFile none\nMaxStartups 100\nMaxSessions 10\n",
             sshd_port, dir, dir);
    write_file("sshd_config", text);
    snprintf(config, sizeof config, "%s/sshd_config", dir);
    snprintf(log, sizeof log, "%s/log", dir);
    mkdir("/run/sshd", 0755);
    sshd_pid = fork();
    if (sshd_pid == 0) {
        execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-f", config, "-E",
              log, (char *) NULL);
        _exit(127);
    }
}

static int wait_sshd(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t) sshd_port) };

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 200; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int rc = connect(fd, (void *) &a, sizeof a);

        close(fd);
        if (rc == 0)
            return 0;
        usleep(20000);
    }
    return -1;
}

/* --- asking ------------------------------------------------------------------ */

struct got {
    bool fired, broken;
    enum op_outcome outcome;
    struct err err;
    struct exec_session *session;
    char host_key[400];
    int code;
    char *out, *errout;
    size_t out_len;
    int lines;
    char last_line[100];
    int waiting;
};

static int running;

static void fire(struct got *g, const struct op_result *r)
{
    assert_false(g->fired);
    g->fired = true;
    g->outcome = r->outcome;
    g->err = r->err;
    if (--running == 0)
        loop_stop(loop);
}

static void on_connect(void *arg, const struct exec_connect_result *r)
{
    struct got *g = arg;

    g->session = r->session;
    if (r->host_key)
        snprintf(g->host_key, sizeof g->host_key, "%s", r->host_key);
    fire(g, &r->r);
}

static void on_broken(void *arg, const struct err *why)
{
    struct got *g = arg;

    (void) why;
    assert_false(g->broken);
    g->broken = true;
    if (g->waiting && --running == 0)
        loop_stop(loop);
}

static void on_exec(void *arg, const struct exec_result *r)
{
    struct got *g = arg;

    g->code = r->code;
    g->out = mem_strdup(r->out);
    g->out_len = r->out_len;
    g->errout = mem_strdup(r->errout);
    fire(g, &r->r);
}

static void got_free(struct got *g)
{
    free(g->out);
    free(g->errout);
}

static void wait_all(void)
{
    if (running)
        loop_run(loop);
}

/* A session may break as long as it is open: what it tells goes to a place
 * that outlives it. */
static struct got connect_to(const struct exec_target *t)
{
    static struct got kept[16];
    static size_t n;
    struct got *g = &kept[n++ % MEM_COUNT(kept)];

    memset(g, 0, sizeof *g);
    running++;
    x->connect(x, t, on_connect, on_broken, g);
    wait_all();
    return *g;
}

static struct got *open_session(void)
{
    struct got *g = MEM_NEW(struct got);
    struct err err;

    running++;
    x->connect(x, &target, on_connect, on_broken, g);
    wait_all();
    if (g->outcome != OP_DONE)
        fail_msg("%s", g->err.text);
    assert_int_equal(x->approve(x, g->session, g->host_key, &err), 0);
    return g;
}

static struct got command(struct exec_session *s, const char *text,
                          const char *input, size_t n, int64_t ms)
{
    struct got g = { 0 };
    struct exec_req req = { text, input, n, false, ms };

    running++;
    x->exec(x, s, &req, on_exec, &g);
    wait_all();
    return g;
}

static void close_session(struct got *g)
{
    x->close(x, g->session);
    free(g);
}

/* --- tests ------------------------------------------------------------------- */

static void test_host_key_and_trust(void **state)
{
    struct got g = connect_to(&target), e;
    struct err err;

    (void) state;
    assert_int_equal(g.outcome, OP_DONE);
    assert_non_null(strstr(read_file("host.pub"), g.host_key));
    e = command(g.session, "echo before", NULL, 0, 5000);
    assert_string_equal(e.out, "before\n");
    got_free(&e);
    e = command(g.session, "cat", "x", 1, 5000);
    assert_int_equal(e.outcome, OP_REFUSED);
    assert_int_equal(e.err.class, ERR_INTERNAL);
    got_free(&e);
    assert_int_equal(x->approve(x, g.session, "ssh-ed25519 AAAA", &err), -1);
    assert_int_equal(err.class, ERR_AUTH);
    x->close(x, g.session);
}

static void test_exec(void **state)
{
    struct got *s = open_session(), e;

    (void) state;
    e = command(s->session, "echo out; echo err >&2; exit 7", NULL, 0, 5000);
    assert_int_equal(e.outcome, OP_DONE);
    assert_int_equal(e.code, 7);
    assert_string_equal(e.out, "out\n");
    assert_string_equal(e.errout, "err\n");
    got_free(&e);
    e = command(s->session, "kill -9 $$", NULL, 0, 5000);
    assert_int_equal(e.outcome, OP_DONE);
    assert_int_equal(e.code, -1);
    got_free(&e);
    e = command(s->session, "sleep 30 & exit 3", NULL, 0, 5000);
    assert_int_equal(e.code, 3); /* a background child holds the pipe */
    got_free(&e);
    e = command(s->session, "sleep 30", NULL, 0, 200);
    assert_int_equal(e.outcome, OP_UNKNOWN);
    assert_int_equal(e.err.class, ERR_TIMEOUT);
    got_free(&e);
    close_session(s);
}

static void test_input_both_ways(void **state)
{
    size_t n = 3 << 20;
    char *data = malloc(n);
    struct got *s = open_session(), e;

    (void) state;
    for (size_t i = 0; i < n; i++)
        data[i] = (char) ('a' + i % 23);
    e = command(s->session, "cat", data, n, 20000);
    assert_int_equal(e.outcome, OP_DONE);
    assert_int_equal(e.out_len, EXEC_OUT_MAX); /* capped, not stuck */
    assert_memory_equal(e.out, data, EXEC_OUT_MAX);
    got_free(&e);
    e = command(s->session, "wc -c", data, n, 20000);
    assert_int_equal(atoi(e.out), (int) n);
    got_free(&e);
    free(data);
    close_session(s);
}

static void test_commands_at_once(void **state)
{
    struct got *s = open_session(), e[8] = { 0 };

    (void) state;
    for (int i = 0; i < 8; i++) {
        char text[40];
        struct exec_req req = { text, NULL, 0, false, 10000 };

        snprintf(text, sizeof text, "sleep 0.1; exit %d", i);
        running++;
        x->exec(x, s->session, &req, on_exec, &e[i]);
    }
    wait_all();
    for (int i = 0; i < 8; i++) {
        assert_int_equal(e[i].outcome, OP_DONE);
        assert_int_equal(e[i].code, i);
        got_free(&e[i]);
    }
    close_session(s);
}

static struct op *stream_op;

static void on_line(void *arg, const char *line, size_t n)
{
    struct got *g = arg;

    assert_int_equal(strlen(line), n);
    g->lines++;
    snprintf(g->last_line, sizeof g->last_line, "%s", line);
    if (!strcmp(line, "cancel me"))
        x->op_cancel(x, stream_op);
}

static void on_end(void *arg, const struct op_result *r)
{
    fire(arg, r);
}

static struct got stream(struct exec_session *s, const char *text)
{
    struct got g = { 0 };

    running++;
    stream_op = x->stream(x, s, text, on_line, on_end, &g);
    wait_all();
    return g;
}

static void test_streams(void **state)
{
    struct got *s = open_session(), g;

    (void) state;
    g = stream(s->session, "for i in 1 2 3; do echo line $i; done");
    assert_int_equal(g.outcome, OP_DONE);
    assert_int_equal(g.lines, 3);
    assert_string_equal(g.last_line, "line 3");
    g = stream(s->session, "echo cancel me; sleep 60");
    assert_int_equal(g.outcome, OP_CANCELLED);
    g = stream(s->session, "head -c 200000 /dev/zero | tr '\\0' x; sleep 60");
    assert_int_equal(g.err.class, ERR_TOO_LARGE);
    g = stream(s->session, "yes 'a line of the stream'; sleep 60");
    assert_int_equal(g.err.class, ERR_TOO_LARGE);
    assert_in_range(g.lines, 1, 1 << 20);
    close_session(s);
}

static void test_close_ends_ops(void **state)
{
    struct got *s = open_session(), e = { 0 };
    struct exec_req req = { "sleep 60", NULL, 0, false, 60000 };

    (void) state;
    running++;
    x->exec(x, s->session, &req, on_exec, &e);
    x->close(x, s->session);
    wait_all();
    assert_true(e.outcome == OP_UNKNOWN || e.outcome == OP_CANCELLED);
    assert_false(s->broken);
    got_free(&e);
    free(s);
}

static void test_broken_session(void **state)
{
    struct got *s = open_session(), e = { 0 };
    struct exec_req req = { "kill -9 $PPID; sleep 60", NULL, 0, false,
                            60000 };

    (void) state;
    s->waiting = 1;
    running += 2;
    x->exec(x, s->session, &req, on_exec, &e);
    wait_all();
    assert_int_equal(e.outcome, OP_UNKNOWN);
    assert_true(s->broken);
    got_free(&e);
    e = command(s->session, "true", NULL, 0, 1000);
    assert_int_equal(e.outcome, OP_REFUSED);
    got_free(&e);
    close_session(s);
}

/* --- a server of our own: what becomes of a request to execute ---------------- */

enum answer { SAY_NO, HANG_UP };

static int let_in(ssh_session s, const char *user, struct ssh_key_struct *key,
                  char state, void *arg)
{
    (void) s;
    (void) user;
    (void) key;
    (void) state;
    (void) arg;
    return SSH_AUTH_SUCCESS;
}

static int on_request(ssh_session s, ssh_channel c, const char *text,
                      void *arg)
{
    (void) s;
    (void) c;
    (void) text;
    if (*(enum answer *) arg == HANG_UP)
        _exit(0);
    return 1; /* no */
}

static ssh_channel on_open(ssh_session s, void *arg)
{
    static struct ssh_channel_callbacks_struct cb = {
        .channel_exec_request_function = on_request };
    ssh_channel c = ssh_channel_new(s);

    cb.userdata = arg;
    ssh_callbacks_init(&cb);
    ssh_set_channel_callbacks(c, &cb);
    return c;
}

/* Lets anybody in, and answers each command like that. */
static void serve(int fd, enum answer answer)
{
    struct ssh_server_callbacks_struct cb = {
        .userdata = &answer, .auth_pubkey_function = let_in,
        .channel_open_request_session_function = on_open };
    ssh_bind b = ssh_bind_new();
    ssh_session s = ssh_new();
    ssh_event e = ssh_event_new();
    char key[200];

    snprintf(key, sizeof key, "%s/host", dir);
    ssh_bind_options_set(b, SSH_BIND_OPTIONS_HOSTKEY, key);
    if (ssh_bind_accept_fd(b, s, accept(fd, NULL, NULL)) != SSH_OK)
        _exit(1);
    ssh_callbacks_init(&cb);
    ssh_set_server_callbacks(s, &cb);
    ssh_set_auth_methods(s, SSH_AUTH_METHOD_PUBLICKEY);
    if (ssh_handle_key_exchange(s) != SSH_OK ||
        ssh_event_add_session(e, s) != SSH_OK)
        _exit(1);
    while (ssh_event_dopoll(e, -1) == SSH_OK)
        ;
    _exit(0);
}

/* The result of a command for which a server has that answer. */
static struct got ask_server(enum answer answer)
{
    int fd, port_no = free_port(&fd);
    struct exec_target t = target;
    struct got s, e;
    pid_t pid;

    listen(fd, 5);
    pid = fork();
    if (pid == 0) {
        alarm(20);
        serve(fd, answer);
    }
    close(fd);
    t.port = port_no;
    s = connect_to(&t);
    assert_int_equal(s.outcome, OP_DONE);
    e = command(s.session, "true", NULL, 0, 10000);
    x->close(x, s.session);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return e;
}

/* Whether the command ran is known only from a reply. */
static void test_unanswered_request(void **state)
{
    struct got e = ask_server(SAY_NO);

    (void) state;
    assert_int_equal(e.outcome, OP_REFUSED);
    got_free(&e);
    e = ask_server(HANG_UP);
    assert_int_equal(e.outcome, OP_UNKNOWN);
    got_free(&e);
}

static void test_failing_peers(void **state)
{
    int fd, port_no = free_port(&fd);
    struct exec_target t = target;
    struct got g;

    (void) state;
    t.port = port_no; /* bound, not listening */
    g = connect_to(&t);
    assert_int_equal(g.outcome, OP_REFUSED);
    assert_int_equal(g.err.class, ERR_TRANSIENT);
    listen(fd, 5); /* accepts in the kernel, never speaks */
    t.deadline_ms = 300;
    g = connect_to(&t);
    assert_int_equal(g.outcome, OP_REFUSED);
    assert_int_equal(g.err.class, ERR_TIMEOUT);
    close(fd);
    t.address = "localhost";
    g = connect_to(&t);
    assert_int_equal(g.err.class, ERR_INVALID);
}

static void test_refused_key(void **state)
{
    struct err err;
    struct ssh_port *other = ssh_port_create(loop, read_file("other"), 22,
                                             &err);
    struct exec_port *mine = x;
    struct got g;

    (void) state;
    assert_non_null(other);
    x = ssh_port_exec(other);
    g = connect_to(&target);
    assert_int_equal(g.outcome, OP_REFUSED);
    assert_int_equal(g.err.class, ERR_AUTH);
    x = mine;
    ssh_port_destroy(other);
    assert_null(ssh_port_create(loop, "no key", 22, &err));
    assert_int_equal(err.class, ERR_CONFIG);
}

static void test_cancelled_connect(void **state)
{
    int fd, port_no = free_port(&fd);
    struct exec_target t = target;
    struct got g = { 0 };
    struct op *op;

    (void) state;
    listen(fd, 5);
    t.port = port_no;
    running++;
    op = x->connect(x, &t, on_connect, on_broken, &g);
    x->op_cancel(x, op);
    wait_all();
    assert_int_equal(g.outcome, OP_CANCELLED);
    close(fd);
}

/* The process ends while answers are on their way: nobody gets them. */
static void test_destroy_before_answers(void **state)
{
    struct loop *own_loop = loop_create(NULL);
    struct ssh_port *own = ssh_port_create(own_loop, read_file("user"), 22,
                                           NULL);
    struct exec_port *e = ssh_port_exec(own);
    struct exec_target t = target;
    struct got g = { 0 };
    int fd;

    (void) state;
    t.port = free_port(&fd);
    close(fd);
    for (int i = 0; i < 20; i++)
        e->connect(e, &t, on_connect, on_broken, &g);
    usleep(200000); /* the loop does not run, so the answers stay in it */
    ssh_port_destroy(own);
    loop_destroy(own_loop);
    assert_false(g.fired);
}

static int setup(void **state)
{
    struct err err;

    (void) state;
    keygen("host");
    keygen("user");
    keygen("other");
    start_sshd();
    if (wait_sshd() < 0)
        return -1;
    loop = loop_create(&err);
    port = ssh_port_create(loop, read_file("user"), 22, &err);
    if (!port)
        return -1;
    x = ssh_port_exec(port);
    target = (struct exec_target){ "test", "127.0.0.1", sshd_port,
                                   getpwuid(getuid())->pw_name, 10000 };
    return 0;
}

static int teardown(void **state)
{
    char cmd[100];

    (void) state;
    ssh_port_destroy(port);
    loop_destroy(loop);
    kill(sshd_pid, SIGTERM);
    waitpid(sshd_pid, NULL, 0);
    snprintf(cmd, sizeof cmd, "%s", dir);
    return run((const char *[]){ "rm", "-rf", cmd, NULL });
}

/* Whether sshd would let us in at all. Of some accounts (nobody, where the
 * name service synthesizes it) it says that they are locked. */
static bool has_login(void)
{
    const struct passwd *pw = getpwuid(getuid());
    const struct spwd *sp = pw ? getspnam(pw->pw_name) : NULL;

    return pw && !strstr(pw->pw_shell, "nologin") &&
           !strstr(pw->pw_shell, "/false") && (!sp || sp->sp_pwdp[0] != '!');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_key_and_trust),
        cmocka_unit_test(test_exec),
        cmocka_unit_test(test_input_both_ways),
        cmocka_unit_test(test_commands_at_once),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_close_ends_ops),
        cmocka_unit_test(test_broken_session),
        cmocka_unit_test(test_destroy_before_answers),
        cmocka_unit_test(test_unanswered_request),
        cmocka_unit_test(test_failing_peers),
        cmocka_unit_test(test_refused_key),
        cmocka_unit_test(test_cancelled_connect),
    };

    if (access("/usr/sbin/sshd", X_OK) != 0 || !has_login()) {
        puts("skipped: no /usr/sbin/sshd, or no account to log in to");
        return 77;
    }
    if (!mkdtemp(dir))
        return 99;
    return cmocka_run_group_tests(tests, setup, teardown);
}
