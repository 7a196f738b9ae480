/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP server over real sockets: malformed requests, framing, pipelining,
 * deadlines, clients that leave, limits, graceful end. The server runs on a
 * thread with its own loop; the tests are blocking clients.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/io/httpd.h"
#include "core/io/loop.h"
#include "tests/unit/unit.h"

enum { BIG = 8 << 20, HEAD_MS = 300, BODY_MS = 900 };

struct srv {
    struct loop *loop;
    struct httpd *h;
    struct httpd_cfg cfg;
    pthread_t thread;
    struct httpd_req *held;
    atomic_int gone, replies, handled;
    atomic_bool stopped;
    char *big;
};

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

static void *run(void *arg)
{
    loop_run(((struct srv *) arg)->loop);
    return NULL;
}

static void stop_loop(void *arg)
{
    struct srv *s = arg;

    atomic_store(&s->stopped, true);
    loop_stop(s->loop);
}

static int start(void **state)
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
    pthread_create(&s->thread, NULL, run, s);
    *state = s;
    return 0;
}

static int finish(void **state)
{
    struct srv *s = *state;

    if (!s->stopped)
        loop_post(s->loop, stop_loop, s);
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

static int dial_from(const struct srv *s, const char *from)
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

static int dial(const struct srv *s)
{
    return dial_from(s, "127.0.0.1");
}

static void put(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t k = send(fd, text, n, MSG_NOSIGNAL);

        if (k < 0)
            return; /* refused early: the answer tells */
        text += k;
        n -= (size_t) k;
    }
}

static void puts_to(int fd, const char *text)
{
    put(fd, text, strlen(text));
}

/* Everything until the server closes; fails when it does not. */
static char *read_to_end(int fd)
{
    size_t len = 0, cap = 65536;
    char *all = malloc(cap);

    for (;;) {
        ssize_t n = recv(fd, all + len, cap - len - 1, 0);

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

static char *talk(const struct srv *s, const char *request, size_t n)
{
    int fd = dial(s);

    put(fd, request, n);
    return read_to_end(fd);
}

static void expect(const struct srv *s, const char *request, size_t n,
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

static void expect_text(const struct srv *s, const char *request,
                        const char *status)
{
    expect(s, request, strlen(request), request, status);
}

/* One answer from an open connection, head and body of Content-Length. */
static char *read_one(int fd)
{
    size_t len = 0, want = 0;
    char *all = mem_zalloc(BIG + 4096), *end, *cl;

    while (want == 0 || len < want) {
        ssize_t n = recv(fd, all + len, want ? want - len : 1, 0);

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

/* --- malformed requests --------------------------------------------------*/

#define H "Host: x\r\n"
#define C "Connection: close\r\n"

static const struct {
    const char *what, *bytes;
    size_t n;
    const char *status;
} bad[] = {
#define B(what, bytes, status) {what, bytes, sizeof bytes - 1, status},
    B("two lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n"
      "Content-Length: 5\r\n\r\nabcde", "400")
    B("two equal lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n"
      "content-length: 3\r\n\r\nabc", "400")
    B("list of lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 3, 3\r\n"
      "\r\nabc", "400")
    B("CL and TE", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n"
      "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400")
    B("TE and CL", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n"
      "Content-Length: 5\r\n\r\n0\r\n\r\n", "400")
    B("bare LF", "GET / HTTP/1.1\nHost: x\n\n", "400")
    B("bare LF in a header", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", "400")
    B("bare CR", "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", "400")
    B("space before colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "400")
    B("space before colon of length", "POST / HTTP/1.1\r\n" H
      "Content-Length : 3\r\n\r\nabc", "400")
    B("folded header", "GET / HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n", "400")
    B("folded by a tab", "GET / HTTP/1.1\r\n" H "A: b\r\n\tc\r\n\r\n",
      "400")
    B("folded at once", "GET / HTTP/1.1\r\n" H "A:\r\n c\r\n\r\n", "400")
    B("folded after a blank", "GET / HTTP/1.1\r\n" H "A: \r\n  c\r\n\r\n",
      "400")
    B("folded length", "POST / HTTP/1.1\r\n" H "Content-Length:\r\n 3\r\n"
      "\r\nabc", "400")
    B("folded to nothing", "GET / HTTP/1.1\r\n" H "A: b\r\n \r\n\r\n",
      "400")
    B("folded first header", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", "400")
    B("no Host", "GET / HTTP/1.1\r\nA: b\r\n\r\n", "400")
    B("two Hosts", "GET / HTTP/1.1\r\n" H H "\r\n", "400")
    B("plus in length", "POST / HTTP/1.1\r\n" H "Content-Length: +3\r\n\r\n"
      "abc", "400")
    B("minus in length", "POST / HTTP/1.1\r\n" H "Content-Length: -3\r\n\r\n"
      "abc", "400")
    B("hex length", "POST / HTTP/1.1\r\n" H "Content-Length: 0x3\r\n\r\nabc",
      "400")
    B("empty length", "POST / HTTP/1.1\r\n" H "Content-Length: \r\n\r\nabc",
      "400")
    B("overflowing length", "POST / HTTP/1.1\r\n" H
      "Content-Length: 18446744073709551617\r\n\r\nabc", "400")
    B("NUL in a value", "GET / HTTP/1.1\r\n" H "A: b\0c\r\n\r\n", "400")
    B("NUL in a name", "GET / HTTP/1.1\r\n" H "A\0: b\r\n\r\n", "400")
    B("NUL in the target", "GET /a\0b HTTP/1.1\r\n" H "\r\n", "400")
    B("control in a name", "GET / HTTP/1.1\r\n" H "A\x01: b\r\n\r\n", "400")
    B("header without colon", "GET / HTTP/1.1\r\n" H "abc\r\n\r\n", "400")
    B("header without name", "GET / HTTP/1.1\r\n" H ": b\r\n\r\n", "400")
    B("unknown TE", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n",
      "501")
    B("TE list", "POST / HTTP/1.1\r\n" H
      "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501")
    B("TE chunked twice", "POST / HTTP/1.1\r\n" H
      "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "400")
    B("TE disguised", "POST / HTTP/1.1\r\n" H
      "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501")
    B("two TEs", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n"
      "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", "400")
    B("1.0 chunked", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"
      "0\r\n\r\n", "400")
    B("bad chunk size", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked"
      "\r\n\r\nzz\r\n", "400")
    B("signed chunk size", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: "
      "chunked\r\n\r\n-1\r\n", "400")
    B("huge chunk size", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked"
      "\r\n\r\nfffffffffffffffff\r\n", "400")
    B("chunk without CRLF", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: "
      "chunked\r\n\r\n3\r\nabcX0\r\n\r\n", "400")
    B("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400")
    B("version 3.0", "GET / HTTP/3.0\r\n" H "\r\n", "505")
    B("no version", "GET /\r\n" H "\r\n", "505")
    B("lower-case method", "get / HTTP/1.1\r\n" H "\r\n", "400")
    B("unknown method", "FROB / HTTP/1.1\r\n" H "\r\n", "400")
    B("method of others", "PROPFIND / HTTP/1.1\r\n" H "\r\n", "501")
    B("CONNECT", "CONNECT a:1 HTTP/1.1\r\n" H "\r\n", "501")
    B("tab for space", "GET\t/ HTTP/1.1\r\n" H "\r\n", "400")
    B("relative target", "GET a/b HTTP/1.1\r\n" H "\r\n", "400")
    B("star target", "GET * HTTP/1.1\r\n" H "\r\n", "400")
    B("fragment", "GET /a#b HTTP/1.1\r\n" H "\r\n", "400")
    B("high byte in target", "GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n", "400")
    B("bad escape", "GET /%zz HTTP/1.1\r\n" H "\r\n", "400")
    B("short escape", "GET /a%2 HTTP/1.1\r\n" H "\r\n", "400")
    B("encoded NUL", "GET /a%00 HTTP/1.1\r\n" H "\r\n", "400")
    B("dot segments", "GET /a/../b HTTP/1.1\r\n" H "\r\n", "400")
    B("encoded dot segments", "GET /a/%2e%2E/b HTTP/1.1\r\n" H "\r\n", "400")
    B("dots behind encoded slash", "GET /a%2f..%2fb HTTP/1.1\r\n" H "\r\n",
      "400")
    B("single dot", "GET /. HTTP/1.1\r\n" H "\r\n", "400")
    B("unknown expectation", "POST / HTTP/1.1\r\n" H "Expect: wonders\r\n"
      "Content-Length: 1\r\n\r\na", "417")
    B("body too large", "POST / HTTP/1.1\r\n" H "Content-Length: 10001\r\n"
      "\r\n", "413")
    B("refused by on_head", "POST /forbidden HTTP/1.1\r\n" H
      "Content-Length: 4\r\n\r\nabcd", "403")
    B("TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400")
    B("garbage", "\0\0\0\0\0\0", "400")
#undef B
};

static void malformed_requests_are_refused(void **state)
{
    struct srv *s = *state;

    for (size_t i = 0; i < MEM_COUNT(bad); i++)
        expect(s, bad[i].bytes, bad[i].n, bad[i].what, bad[i].status);
    assert_int_equal(s->handled, 0);
    assert_int_equal(s->replies, (int) MEM_COUNT(bad));
}

/* The same, one byte at a time: states of the parser must not matter. */
static void malformed_requests_in_small_pieces(void **state)
{
    struct srv *s = *state;

    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        CLEANUP(mem_free) char *got = NULL;
        int fd = dial(s), yes = 1;

        setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &yes, sizeof yes);
        for (size_t k = 0; k < bad[i].n; k++)
            put(fd, bad[i].bytes + k, 1);
        got = read_to_end(fd);
        if (strncmp(got + 9, bad[i].status, 3) != 0)
            fail_msg("%s: %.100s", bad[i].what, got);
    }
    assert_int_equal(s->handled, 0);
}

static char *repeat(const char *before, const char *unit, size_t n,
                    const char *after)
{
    size_t b = strlen(before), u = strlen(unit);
    char *s = malloc(b + n * u + strlen(after) + 1);

    memcpy(s, before, b);
    for (size_t i = 0; i < n; i++)
        memcpy(s + b + i * u, unit, u);
    memcpy(s + b + n * u, after, strlen(after) + 1);
    return s;
}

static void heads_and_bodies_are_bounded(void **state)
{
    static const struct {
        const char *before, *unit, *after, *status;
        size_t n;
    } cases[] = {
        {"GET /", "a", " HTTP/1.1\r\n" H "\r\n", "414", 2048},
        {"GET / HTTP/1.1\r\n" H "A: ", "b", "\r\n\r\n", "431", 8192},
        {"GET / HTTP/1.1\r\n" H, "N", ": b\r\n\r\n", "431", 8192},
        {"GET / HTTP/1.1\r\n" H, "A: b\r\n", "\r\n", "431", 20},
        {"GET / HTTP/1.1\r\n" H, "A: 0123456789012345678901234567890123456789"
         "0123456789012345678901234567890123456789012345678901234567890123456"
         "7890123456789\r\n", "\r\n", "431", 500},
        {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
         "4\r\nabcd\r\n", "0\r\n\r\n", "413", 2501},
        {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1;", "x",
         "\r\na\r\n0\r\n\r\n", "413", 8200},
        {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n",
         "A: b\r\n", "\r\n", "431", 20},
    };
    struct srv *s = *state;

    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        CLEANUP(mem_free) char *r = repeat(cases[i].before, cases[i].unit,
                                           cases[i].n, cases[i].after);

        expect_text(s, r, cases[i].status);
    }
    assert_int_equal(s->handled, 0);
}

static void what_is_just_within_the_limits_passes(void **state)
{
    struct srv *s = *state;
    CLEANUP(mem_free) char *url = repeat("GET /", "a", 2047, " HTTP/1.1\r\n" H
                                         C "\r\n");
    CLEANUP(mem_free) char *n = repeat("GET / HTTP/1.1\r\n" H C, "A: b\r\n",
                                       18, "\r\n");
    CLEANUP(mem_free) char *body = repeat("POST / HTTP/1.1\r\n" H C
                                          "Content-Length: 10000\r\n\r\n",
                                          "a", 10000, "");

    expect_text(s, url, "200");
    expect_text(s, n, "200");
    expect_text(s, body, "200");
}

/* --- good requests -------------------------------------------------------*/

static void expect_body(const struct srv *s, const char *request,
                        const char *body)
{
    CLEANUP(mem_free) char *got = talk(s, request, strlen(request));
    const char *have = strstr(got, "\r\n\r\n");

    if (strncmp(got, "HTTP/1.1 200 OK\r\n", 17) != 0 || !have)
        fail_msg("%s: %.200s", request, got);
    assert_string_equal(have + 4, body);
}

static void requests_arrive_as_sent(void **state)
{
    struct srv *s = *state;

    expect_body(s, "GET /a%20b//c///d?q=%41&r HTTP/1.1\r\n" H C "\r\n",
                "GET|/a b/c/d|q=%41&r||-");
    expect_body(s, "GET http://h:1/p?x HTTP/1.1\r\n" H C "\r\n",
                "GET|/p|x||-");
    expect_body(s, "GET http://h HTTP/1.1\r\n" H C "\r\n", "GET|/|||-");
    expect_body(s, "OPTIONS * HTTP/1.1\r\n" H C "\r\n", "OPTIONS|*|||-");
    expect_body(s, "GET /%2F/a%2fb/ HTTP/1.1\r\n" H C "\r\n",
                "GET|/a/b/|||-");
    expect_body(s, "GET /...a/..b/.c HTTP/1.1\r\n" H C "\r\n",
                "GET|/...a/..b/.c|||-");
    expect_body(s, "PUT / HTTP/1.1\r\n" H C "X-Test:   v w \t \r\n"
                "Content-Length: 3\r\n\r\nabc", "PUT|/||abc|v w");
    expect_body(s, "POST / HTTP/1.1\r\n" H C "X-Test:\r\nTransfer-Encoding: "
                "Chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n",
                "POST|/||abcde|");
    expect_body(s, "\r\n\r\nGET / HTTP/1.1\r\n" H C "\r\n", "GET|/|||-");
    expect_body(s, "GET / HTTP/1.0\r\n\r\n", "GET|/|||-");
    expect_body(s, "GET / HTTP/1.1\r\n" H "Connection: Upgrade, close\r\n"
                "Upgrade: h2c\r\n\r\n", "GET|/|||-");
    expect_body(s, "POST / HTTP/1.1\r\n" H "Connection: Upgrade, close\r\n"
                "Upgrade: h2c\r\nContent-Length: 2\r\n\r\nab",
                "POST|/||ab|-");
}

static void replies_carry_what_they_must(void **state)
{
    struct srv *s = *state;
    static const char r[] = "GET / HTTP/1.1\r\n" H C
                            "X-Request-Id: req-abc\r\n\r\n";
    static const char bad_id[] = "GET / HTTP/1.1\r\n" H C
                                 "X-Request-Id: a b\r\n\r\n";
    static const char error[] = "GET /error HTTP/1.1\r\n" H C "\r\n";
    CLEANUP(mem_free) char *got = talk(s, r, sizeof r - 1);
    CLEANUP(mem_free) char *own = talk(s, bad_id, sizeof bad_id - 1);
    CLEANUP(mem_free) char *err = talk(s, error, sizeof error - 1);

    assert_non_null(strstr(got, "\r\nX-Request-Id: req-abc\r\n"));
    assert_non_null(strstr(got, "\r\nX-Extra: a  Evil: 1\r\n"));
    assert_non_null(strstr(got, "\r\nDate: "));
    assert_non_null(strstr(got, " GMT\r\n"));
    assert_non_null(strstr(got, "\r\nContent-Type: text/plain\r\n"));
    assert_non_null(strstr(own, "\r\nX-Request-Id: req-"));
    assert_null(strstr(own, "a b\r\n"));
    assert_non_null(strstr(err, "HTTP/1.1 422 Unprocessable Content\r\n"));
    assert_non_null(strstr(err, "\r\n\r\n{\"errors\":[\"bad \\\"thing\\\"\"]}\n"));
    assert_int_equal(s->replies, 3);
}

static void head_and_204_have_no_body(void **state)
{
    struct srv *s = *state;
    static const char r[] = "HEAD /big HTTP/1.1\r\n" H "\r\n"
                            "GET /empty HTTP/1.1\r\n" H C "\r\n";
    CLEANUP(mem_free) char *got = talk(s, r, sizeof r - 1);
    char *second;

    assert_non_null(strstr(got, "\r\nContent-Length: 8388608\r\n"));
    second = strstr(got, "\r\n\r\n") + 4;
    assert_ptr_equal(strstr(got, "HTTP/1.1 204 No Content\r\n"), second);
    assert_null(strstr(second, "Content-Length"));
    assert_string_equal(strstr(second, "\r\n\r\n"), "\r\n\r\n");
}

static void keep_alive_follows_the_version(void **state)
{
    struct srv *s = *state;
    int fd = dial(s);

    for (int i = 0; i < 3; i++) {
        CLEANUP(mem_free) char *got = NULL;

        puts_to(fd, "GET / HTTP/1.1\r\n" H "\r\n");
        got = read_one(fd);
        assert_null(strstr(got, "Connection:"));
    }
    for (int i = 0; i < 2; i++) {
        CLEANUP(mem_free) char *got = NULL;

        puts_to(fd, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        got = read_one(fd);
        assert_non_null(strstr(got, "\r\nConnection: keep-alive\r\n"));
    }
    close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    enum { N = 2000 };
    struct srv *s = *state;
    CLEANUP(mem_free) char *all = NULL;
    CLEANUP(mem_free) char *got = NULL;
    char *p, want[32];
    size_t len = 0;

    p = all = malloc(N * 64 + 256);
    for (int i = 0; i < N; i++)
        p += snprintf(p, 64, "GET /%s HTTP/1.1\r\n" H "\r\n",
                      i % 500 == 7 ? "later" : "n");
    snprintf(p, 256, "GET /last HTTP/1.1\r\n" H C "\r\n");
    len = strlen(all);
    got = talk(s, all, len);
    p = got;
    for (int i = 0; i < N; i++) {
        const char *end = i % 500 == 7 ? "late\n" : "GET|/n|||-";

        p = strstr(p, "\r\n\r\n");
        assert_non_null(p);
        p += 4;
        if (strncmp(p, end, strlen(end)) != 0)
            fail_msg("answer %d: %.40s", i, p);
    }
    snprintf(want, sizeof want, "GET|/last|||-");
    assert_non_null(strstr(p, want));
}

static void a_refusal_ends_a_pipeline(void **state)
{
    struct srv *s = *state;
    static const char r[] = "GET /1 HTTP/1.1\r\n" H "\r\n"
                            "GET /2 HTTP/1.1\r\n" H H "\r\n"
                            "GET /3 HTTP/1.1\r\n" H "\r\n";
    CLEANUP(mem_free) char *got = talk(s, r, sizeof r - 1);

    assert_non_null(strstr(got, "GET|/1|||-HTTP/1.1 400 "));
    assert_int_equal(s->handled, 1);
}

static void on_head_can_allow_more(void **state)
{
    struct srv *s = *state;
    size_t n = 3 << 20;
    char head[100];
    int fd = dial(s);
    CLEANUP(mem_free) char *got = NULL;

    snprintf(head, sizeof head, "PUT /large HTTP/1.1\r\n" H C
             "Content-Length: %zu\r\n\r\n", n);
    puts_to(fd, head);
    put(fd, s->big, n);
    got = read_to_end(fd);
    assert_non_null(strstr(got, "HTTP/1.1 200 "));
}

static void echoed_bodies_survive(void **state)
{
    struct srv *s = *state;
    static const char r[] = "POST /echo HTTP/1.1\r\n" H
                            "Content-Length: 2\r\n\r\nab"
                            "POST /echo HTTP/1.1\r\n" H C
                            "Content-Length: 3\r\n\r\ncde";
    CLEANUP(mem_free) char *got = talk(s, r, sizeof r - 1);

    assert_non_null(strstr(got, "\r\n\r\nabHTTP/1.1 200"));
    assert_non_null(strstr(got, "\r\n\r\ncde"));
}

static void a_client_may_wait_for_100(void **state)
{
    struct srv *s = *state;
    int fd = dial(s);
    char line[26] = "";
    CLEANUP(mem_free) char *got = NULL;

    puts_to(fd, "POST / HTTP/1.1\r\n" H C "Expect: 100-continue\r\n"
            "Content-Length: 2\r\n\r\n");
    assert_int_equal(recv(fd, line, 25, MSG_WAITALL), 25);
    assert_string_equal(line, "HTTP/1.1 100 Continue\r\n\r\n");
    puts_to(fd, "hi");
    got = read_to_end(fd);
    assert_non_null(strstr(got, "POST|/||hi|-"));
}

static void large_replies_arrive_whole(void **state)
{
    struct srv *s = *state;
    const char *paths[] = {"big", "own", "big"};
    int fd = dial(s);

    for (int i = 0; i < 3; i++) {
        CLEANUP(mem_free) char *got = NULL;
        char r[64];

        snprintf(r, sizeof r, "GET /%s HTTP/1.1\r\n" H "\r\n", paths[i]);
        puts_to(fd, r);
        usleep(20000); /* the socket's buffer fills: the slow path */
        got = read_one(fd);
        assert_memory_equal(strstr(got, "\r\n\r\n") + 4, s->big, BIG);
    }
    close(fd);
}

/* --- deadlines and absence -----------------------------------------------*/

static void expect_408(const struct srv *s, const char *part)
{
    int64_t t = clock_mono_us();
    int fd = dial(s);
    CLEANUP(mem_free) char *got = NULL;

    puts_to(fd, part);
    got = read_to_end(fd);
    t = clock_mono_us() - t;
    assert_non_null(strstr(got, "HTTP/1.1 408 "));
    assert_in_range(t, HEAD_MS * 1000 - 1000, 2000000);
}

static void slow_clients_are_ended(void **state)
{
    struct srv *s = *state;

    expect_408(s, "GET / HTT");
    expect_408(s, "GET / HTTP/1.1\r\n" H);
    expect_408(s, "POST / HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nabc");
    expect_408(s, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
               "3\r\nab");
}

/* Trickling must not extend the deadline. */
static void a_trickle_does_not_help(void **state)
{
    struct srv *s = *state;
    int64_t t = clock_mono_us();
    int fd = dial(s);
    CLEANUP(mem_free) char *got = NULL;

    puts_to(fd, "GET / HTTP/1.1\r\n" H "A: ");
    for (int i = 0; i < 100; i++) {
        struct pollfd p = {fd, POLLIN, 0};

        put(fd, "b", 1);
        if (poll(&p, 1, 20) > 0)
            break;
    }
    got = read_to_end(fd);
    assert_non_null(strstr(got, "HTTP/1.1 408 "));
    assert_in_range(clock_mono_us() - t, 1, 1500000);
}

static void idle_connections_are_closed(void **state)
{
    struct srv *s = *state;
    CLEANUP(mem_free) char *got = talk(s, "", 0);

    assert_string_equal(got, "");
}

static void await(atomic_int *v, int want)
{
    for (int i = 0; i < 2000 && atomic_load(v) != want; i++)
        usleep(1000);
    assert_int_equal(atomic_load(v), want);
}

static unsigned conns_now(struct srv *s)
{
    return httpd_conns(s->h);
}

static void await_conns(struct srv *s, unsigned want)
{
    for (int i = 0; i < 3000 && conns_now(s) != want; i++)
        usleep(1000);
    assert_int_equal(conns_now(s), want);
}

static void a_client_that_never_reads_is_ended(void **state)
{
    struct srv *s = *state;
    int fd = dial(s);

    puts_to(fd, "GET /big HTTP/1.1\r\n" H "\r\nGET /big HTTP/1.1\r\n" H
            "\r\n");
    await(&s->handled, 1);
    await_conns(s, 0);
    assert_int_equal(s->handled, 1); /* the second was never begun */
    close(fd);
}

static void a_client_that_leaves_is_noticed(void **state)
{
    struct srv *s = *state;
    struct linger hard = {1, 0};
    int fd = dial(s);

    puts_to(fd, "GET /hold HTTP/1.1\r\n" H "\r\n");
    await(&s->handled, 1);
    close(fd);
    await(&s->gone, 1);

    fd = dial(s); /* and one that leaves with a reset */
    puts_to(fd, "GET /hold HTTP/1.1\r\n" H "\r\n");
    await(&s->handled, 2);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    await(&s->gone, 2);
    await_conns(s, 0);
}

/* A client that only closes its sending side still gets its answer. */
static void a_half_closed_client_is_answered(void **state)
{
    struct srv *s = *state;
    int fd = dial(s);
    CLEANUP(mem_free) char *got = NULL;

    puts_to(fd, "GET /hold HTTP/1.1\r\n" H "\r\nGET /x HTTP/1.1\r\n" H
            "\r\n");
    shutdown(fd, SHUT_WR);
    got = read_to_end(fd);
    assert_non_null(strstr(got, "late\n"));
    assert_non_null(strstr(got, "GET|/x|||-"));
    assert_int_equal(s->gone, 1);
}

/* --- limits on connections, and the end ----------------------------------*/

static void connections_are_bounded(void **state)
{
    struct srv *s = *state;
    int fds[30];

    for (int i = 0; i < 20; i++)
        fds[i] = dial(s);
    await_conns(s, 20);
    {
        int fd = dial(s);
        CLEANUP(mem_free) char *got = read_to_end(fd);

        assert_non_null(strstr(got, "HTTP/1.1 503 "));
        assert_non_null(strstr(got, "\r\nContent-Length: 36\r\n"));
        assert_int_equal(strlen(strstr(got, "\r\n\r\n") + 4), 36);
    }
    for (int i = 20; i < 30; i++) /* another address has its own share */
        fds[i] = dial_from(s, "127.0.0.2");
    await_conns(s, 30);
    {
        int fd = dial_from(s, "127.0.0.3");
        CLEANUP(mem_free) char *got = read_to_end(fd);

        assert_non_null(strstr(got, "HTTP/1.1 503 "));
    }
    for (int i = 0; i < 30; i++)
        close(fds[i]);
    await_conns(s, 0);
    expect_text(s, "GET / HTTP/1.1\r\n" H C "\r\n", "200");
}

static void begin_stop(void *arg)
{
    struct srv *s = arg;

    httpd_stop(s->h, 400, stop_loop, s);
}

static void a_graceful_end_answers_what_has_arrived(void **state)
{
    struct srv *s = *state;
    int idle = dial(s), busy = dial(s);
    char c;
    CLEANUP(mem_free) char *got = NULL;

    await_conns(s, 2);
    puts_to(busy, "GET /later HTTP/1.1\r\n" H "\r\n");
    await(&s->handled, 1);
    loop_post(s->loop, begin_stop, s);
    assert_int_equal(recv(idle, &c, 1, 0), 0);
    got = read_to_end(busy);
    assert_non_null(strstr(got, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(got, "late\n"));
    pthread_join(s->thread, NULL);
    assert_true(s->stopped);
    close(idle);
    pthread_create(&s->thread, NULL, run, s);
    s->stopped = false;
}

static void a_graceful_end_has_a_deadline(void **state)
{
    struct srv *s = *state;
    int busy = dial(s);
    char c;

    puts_to(busy, "GET /hold HTTP/1.1\r\n" H "\r\n");
    await(&s->handled, 1);
    loop_post(s->loop, begin_stop, s);
    assert_int_equal(recv(busy, &c, 1, 0), 0);
    pthread_join(s->thread, NULL);
    assert_int_equal(s->gone, 1);
    close(busy);
    pthread_create(&s->thread, NULL, run, s);
    s->stopped = false;
}

static void a_request_outlives_the_server(void **state)
{
    struct srv *s = *state;
    int fd = dial(s);

    puts_to(fd, "GET /hold HTTP/1.1\r\n" H "\r\n");
    await(&s->handled, 1);
    loop_post(s->loop, stop_loop, s);
    pthread_join(s->thread, NULL);
    httpd_on_gone(s->held, NULL, NULL);
    httpd_destroy(s->h); /* finish() replies afterwards */
    s->h = NULL;
    close(fd);
    pthread_create(&s->thread, NULL, run, s);
    s->stopped = false;
}

static void a_taken_port_is_an_error(void **state)
{
    struct srv *s = *state;
    struct httpd_cfg cfg = s->cfg;
    struct loop *l = loop_create(NULL);
    struct err err;

    cfg.port = httpd_port(s->h);
    assert_null(httpd_create(l, &cfg, &err));
    assert_non_null(strstr(err.text, "127.0.0.1 port"));
    cfg.address = "localhost";
    assert_null(httpd_create(l, &cfg, &err));
    assert_int_equal(err.class, ERR_CONFIG);
    loop_destroy(l);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, finish)
    const struct CMUnitTest tests[] = {
        T(malformed_requests_are_refused),
        T(malformed_requests_in_small_pieces),
        T(heads_and_bodies_are_bounded),
        T(what_is_just_within_the_limits_passes),
        T(requests_arrive_as_sent),
        T(replies_carry_what_they_must),
        T(head_and_204_have_no_body),
        T(keep_alive_follows_the_version),
        T(pipelined_requests_are_answered_in_order),
        T(a_refusal_ends_a_pipeline),
        T(on_head_can_allow_more),
        T(echoed_bodies_survive),
        T(a_client_may_wait_for_100),
        T(large_replies_arrive_whole),
        T(slow_clients_are_ended),
        T(a_trickle_does_not_help),
        T(idle_connections_are_closed),
        T(a_client_that_never_reads_is_ended),
        T(a_client_that_leaves_is_noticed),
        T(a_half_closed_client_is_answered),
        T(connections_are_bounded),
        T(a_graceful_end_answers_what_has_arrived),
        T(a_graceful_end_has_a_deadline),
        T(a_request_outlives_the_server),
        T(a_taken_port_is_an_error),
    };

    return cmocka_run_group_tests_name("httpd", tests, NULL, NULL);
}
