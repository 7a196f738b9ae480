/* SPDX-License-Identifier: Apache-2.0 */

/* The server and the clients of the tests of core/io/httpd. */

#include "tests/unit/httpd_util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

/* --- the server's side ---------------------------------------------------*/

static void reply_held(void *arg)
{
    struct srv *s = arg;
    struct httpd_req *r = s->held;

    s->held = NULL;
    httpd_reply(r, 200, "text/plain", NULL, "late\n", 5);
}

static void on_gone(void *arg)
{
    struct srv *s = arg;

    atomic_fetch_add(&s->gone, 1);
    reply_held(s);
}

static void show(struct httpd_req *r)
{
    char text[4096];
    size_t n;
    const char *body = httpd_body(r, &n);
    int len = snprintf(text, sizeof text, "%s|%s|%s|%.*s|%s", httpd_method(r),
                       httpd_path(r), httpd_query(r), (int) n, body,
                       httpd_header(r, "x-tEst") ? httpd_header(r, "X-Test")
                                                 : "-");

    if (len >= (int) sizeof text)
        len = (int) sizeof text - 1;
    httpd_reply(r, 200, "text/plain",
                (struct httpd_header[]) {{"X-Extra", "a\r\nEvil: 1"}, {0}},
                text, (size_t) len);
}

static void handler(void *arg, struct httpd_req *r)
{
    struct srv *s = arg;
    const char *path = httpd_path(r);

    atomic_fetch_add(&s->handled, 1);
    if (strcmp(path, "/later") == 0) {
        s->held = r;
        loop_timer_arm(s->loop, 10000, reply_held, s);
    } else if (strcmp(path, "/hold") == 0) {
        s->held = r;
        httpd_on_gone(r, on_gone, s);
    } else if (strcmp(path, "/big") == 0) {
        httpd_reply(r, 200, "text/plain", NULL, s->big, BIG);
    } else if (strcmp(path, "/own") == 0) {
        httpd_reply_take(r, 200, "text/plain", NULL, mem_dup(s->big, BIG),
                         BIG);
    } else if (strcmp(path, "/error") == 0) {
        httpd_reply_error(r, 422, "bad \"%s\"", "thing");
    } else if (strcmp(path, "/echo") == 0) {
        size_t n;
        const char *body = httpd_body(r, &n);

        httpd_reply(r, 200, NULL, NULL, body, n);
    } else if (strcmp(path, "/empty") == 0) {
        httpd_reply(r, 204, NULL, NULL, NULL, 0);
    } else {
        show(r);
    }
}

static int on_head(void *arg, struct httpd_req *r, size_t *max_body,
                   const char **text)
{
    (void) arg;
    if (strcmp(httpd_path(r), "/large") == 0)
        *max_body = 4 << 20;
    if (strcmp(httpd_path(r), "/forbidden") != 0)
        return 0;
    *text = "not you";
    return 403;
}

static void on_reply(void *arg, const struct httpd_req *r, int status,
                     size_t len)
{
    struct srv *s = arg;

    (void) r;
    (void) status;
    (void) len;
    atomic_fetch_add(&s->replies, 1);
}

void *srv_run(void *arg)
{
    loop_run(((struct srv *) arg)->loop);
    return NULL;
}

void srv_stop_loop(void *arg)
{
    struct srv *s = arg;

    atomic_store(&s->stopped, true);
    loop_stop(s->loop);
}

int srv_start(void **state)
{
    struct srv *s = MEM_NEW(struct srv);

    s->loop = loop_create(NULL);
    s->big = mem_zalloc(BIG);
    for (int i = 0; i < BIG; i++)
        s->big[i] = (char) ('a' + i % 26);
    s->cfg = (struct httpd_cfg) {
        .max_head = 8192, .max_url = 2048, .max_headers = 20,
        .max_body = 10000, .max_conns = 30, .max_conns_peer = 20,
        .idle_ms = 1500, .head_ms = HEAD_MS, .body_ms = BODY_MS,
        .write_ms = HEAD_MS, .handler = handler, .on_head = on_head,
        .on_reply = on_reply, .arg = s,
    };
    s->h = httpd_create(s->loop, &s->cfg, NULL);
    if (!s->h)
        return -1;
    pthread_create(&s->thread, NULL, srv_run, s);
    *state = s;
    return 0;
}

int srv_finish(void **state)
{
    struct srv *s = *state;

    if (!s->stopped)
        loop_post(s->loop, srv_stop_loop, s);
    pthread_join(s->thread, NULL);
    httpd_destroy(s->h);
    if (s->held)
        reply_held(s); /* replying after the end is harmless */
    loop_destroy(s->loop);
    free(s->big);
    free(s);
    return 0;
}

/* --- the client's side ---------------------------------------------------*/

int srv_dial_from(const struct srv *s, const char *from)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    struct timeval t = {.tv_sec = 5};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    inet_pton(AF_INET, from, &a.sin_addr);
    bind(fd, (struct sockaddr *) &a, sizeof a);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons((uint16_t) httpd_port(s->h));
    assert_int_equal(connect(fd, (struct sockaddr *) &a, sizeof a), 0);
    return fd;
}

int srv_dial(const struct srv *s)
{
    return srv_dial_from(s, "127.0.0.1");
}

void put(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t k = send(fd, text, n, MSG_NOSIGNAL);

        if (k < 0)
            return; /* refused early: the answer tells */
        text += k;
        n -= (size_t) k;
    }
}

void puts_to(int fd, const char *text)
{
    put(fd, text, strlen(text));
}

/* recv(2) with a time limit is interrupted by a stop or a freeze of the whole
 * process group, handlers or not. */
static ssize_t receive(int fd, void *p, size_t n)
{
    ssize_t got;

    do
        got = recv(fd, p, n, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Everything until the server closes; fails when it does not. */
char *read_to_end(int fd)
{
    size_t len = 0, cap = 65536;
    char *all = malloc(cap);

    for (;;) {
        ssize_t n = receive(fd, all + len, cap - len - 1);

        if (n < 0 && errno == ECONNRESET)
            n = 0;
        if (n < 0)
            fail_msg("no end of the stream: %s", strerror(errno));
        if (n == 0)
            break;
        len += (size_t) n;
        if (cap - len < 32768)
            all = realloc(all, cap *= 2);
    }
    all[len] = '\0';
    close(fd);
    return all;
}

char *talk(const struct srv *s, const char *request, size_t n)
{
    int fd = srv_dial(s);

    put(fd, request, n);
    return read_to_end(fd);
}

void expect(const struct srv *s, const char *request, size_t n,
            const char *what, const char *status)
{
    CLEANUP(mem_free) char *got = talk(s, request, n);
    char want[32];

    snprintf(want, sizeof want, "HTTP/1.1 %s ", status);
    if (strncmp(got, want, strlen(want)) != 0)
        fail_msg("%s: want %s, got: %.200s", what, status, got);
    if (strcmp(status, "200") != 0 &&
        (!strstr(got, "\r\nConnection: close\r\n") ||
         !strstr(got, "\r\n\r\n{\"errors\":[\"")))
        fail_msg("%s: not a proper refusal: %.400s", what, got);
    if (strstr(got + 1, "HTTP/1.1 "))
        fail_msg("%s: a second answer: %.600s", what, got);
}

void expect_text(const struct srv *s, const char *request,
                 const char *status)
{
    expect(s, request, strlen(request), request, status);
}

/* One answer from an open connection, head and body of Content-Length. */
char *read_one(int fd)
{
    size_t len = 0, want = 0;
    char *all = mem_zalloc(BIG + 4096), *end, *cl;

    while (want == 0 || len < want) {
        ssize_t n = receive(fd, all + len, want ? want - len : 1);

        if (n <= 0)
            fail_msg("answer ends early: %s", all);
        len += (size_t) n;
        if (!want && (end = strstr(all, "\r\n\r\n"))) {
            cl = strstr(all, "Content-Length: ");
            want = (size_t) (end + 4 - all) + (cl ? strtoul(cl + 16, NULL, 10)
                                                  : 0);
        }
    }
    return all;
}
