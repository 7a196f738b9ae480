/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP client, against our own server on the same loop, and against raw
 * sockets where a server must misbehave.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/io/httpc.h"
#include "core/io/httpd.h"
#include "core/io/loop.h"
#include "tests/unit/unit.h"

enum { BIG = 3 << 20 };

struct world {
    struct loop *l;
    struct httpd *h;
    struct httpc *c;
    char base[64];
    char *big;
    int handled, gone;
    struct httpd_req *held;
    /* the last result */
    int results, open;
    struct err err;
    bool unsent;
    int status;
    struct buf body;
    char header[64];
};

static void on_gone(void *arg)
{
    ((struct world *) arg)->gone++;
}

static void handler(void *arg, struct httpd_req *r)
{
    struct world *w = arg;
    char text[512];
    size_t n;
    const char *body = httpd_body(r, &n);
    const char *type = httpd_header(r, "content-type");

    w->handled++;
    if (strcmp(httpd_path(r), "/big") == 0) {
        httpd_reply(r, 200, NULL, NULL, w->big, BIG);
    } else if (strcmp(httpd_path(r), "/hold") == 0) {
        w->held = r;
        httpd_on_gone(r, on_gone, w);
    } else if (strcmp(httpd_path(r), "/away") == 0) {
        httpd_reply(r, 302, NULL, (struct httpd_header[]) {
                        {"Location", "/big"}, {0}}, NULL, 0);
    } else {
        snprintf(text, sizeof text, "%s|%s|%zu|%.20s|%s|%s", httpd_method(r),
                 httpd_target(r), n, body, httpd_header(r, "x-a")
                     ? httpd_header(r, "x-a") : "-", type ? type : "-");
        httpd_reply(r, 201, "text/plain", (struct httpd_header[]) {
                        {"X-Kind", "some thing"}, {0}}, text, strlen(text));
    }
}

static int setup(void **state)
{
    struct world *w = MEM_NEW(struct world);
    struct httpd_cfg cfg = {.handler = handler, .arg = w};

    w->l = loop_create(NULL);
    w->h = httpd_create(w->l, &cfg, NULL);
    w->c = httpc_create(w->l, &(struct httpc_cfg) {.max_conns = 4});
    snprintf(w->base, sizeof w->base, "http://127.0.0.1:%d",
             httpd_port(w->h));
    w->big = mem_zalloc(BIG);
    memset(w->big, 'x', BIG);
    buf_init(&w->body, BIG);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    httpc_destroy(w->c);
    httpd_destroy(w->h);
    if (w->held)
        httpd_reply(w->held, 200, NULL, NULL, NULL, 0);
    loop_destroy(w->l);
    buf_fini(&w->body);
    free(w->big);
    free(w);
    return 0;
}

static void on_result(void *arg, const struct httpc_result *r)
{
    struct world *w = arg;
    const char *kind = httpc_header(r, "x-kind");

    w->results++;
    w->err = r->err;
    w->unsent = r->unsent;
    w->status = r->status;
    buf_reset(&w->body);
    buf_append(&w->body, r->body, r->len);
    snprintf(w->header, sizeof w->header, "%s", kind ? kind : "-");
    if (--w->open == 0)
        loop_stop(w->l);
}

static struct httpc_call *start(struct world *w, struct httpc_request req)
{
    w->open++;
    return httpc_start(w->c, &req, on_result, w);
}

static const char *url(struct world *w, const char *path)
{
    static char text[128];

    snprintf(text, sizeof text, "%s%s", w->base, path);
    return text;
}

static void fetch(struct world *w, struct httpc_request req)
{
    int before = w->results;

    start(w, req);
    assert_int_equal(w->results, before); /* never inside the call */
    loop_run(w->l);
    assert_int_equal(w->results, before + 1);
}

static void every_method_arrives_as_meant(void **state)
{
    struct world *w = *state;
    const char *h[] = {"X-A: b c", "Content-Type: text/x", NULL};

    fetch(w, (struct httpc_request) {.method = "GET",
                                     .url = url(w, "/p?q=1%20"), .headers = h});
    assert_string_equal(w->body.data, "GET|/p?q=1%20|0||b c|text/x");
    assert_int_equal(w->status, 201);
    assert_int_equal(w->err.class, ERR_NONE);
    assert_false(w->unsent);
    assert_string_equal(w->header, "some thing");
    fetch(w, (struct httpc_request) {.method = "POST", .url = url(w, "/"),
                                     .body = "hello", .body_len = 5});
    assert_string_equal(w->body.data, "POST|/|5|hello|-|"
                        "application/x-www-form-urlencoded");
    fetch(w, (struct httpc_request) {.method = "POST", .url = url(w, "/")});
    assert_string_equal(w->body.data, "POST|/|0||-|"
                        "application/x-www-form-urlencoded");
    fetch(w, (struct httpc_request) {.method = "PUT", .url = url(w, "/"),
                                     .body = "x", .body_len = 1,
                                     .headers = h});
    assert_string_equal(w->body.data, "PUT|/|1|x|b c|text/x");
    fetch(w, (struct httpc_request) {.method = "DELETE", .url = url(w, "/")});
    assert_string_equal(w->body.data, "DELETE|/|0||-|-");
    fetch(w, (struct httpc_request) {.method = "HEAD", .url = url(w, "/")});
    assert_string_equal(w->body.data, "");
    assert_int_equal(w->status, 201);
}

static void connections_are_kept_and_not_inherited(void **state)
{
    struct world *w = *state;
    struct sockaddr_in a;
    int inet = 0;

    for (int i = 0; i < 5; i++)
        fetch(w, (struct httpc_request) {.method = "GET", .url = url(w, "/")});
    assert_int_equal(httpd_conns(w->h), 1);
    for (int fd = 3; fd < 200; fd++) {
        socklen_t n = sizeof a;

        if (getpeername(fd, (struct sockaddr *) &a, &n) == 0 &&
            a.sin_family == AF_INET) {
            assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
            inet++;
        }
    }
    assert_int_equal(inet, 2); /* both ends of the one connection */
}

static void large_replies_are_whole_or_refused(void **state)
{
    struct world *w = *state;

    fetch(w, (struct httpc_request) {.method = "GET", .url = url(w, "/big"),
                                     .max_reply = BIG});
    assert_int_equal(w->err.class, ERR_NONE);
    assert_int_equal(w->body.len, BIG);
    fetch(w, (struct httpc_request) {.method = "GET", .url = url(w, "/big"),
                                     .max_reply = BIG - 1});
    assert_int_equal(w->err.class, ERR_TOO_LARGE);
    assert_false(w->unsent);
    assert_non_null(strstr(w->err.text, "too large"));
}

static void redirects_are_not_followed(void **state)
{
    struct world *w = *state;

    fetch(w, (struct httpc_request) {.method = "GET", .url = url(w, "/away")});
    assert_int_equal(w->status, 302);
    assert_int_equal(w->handled, 1);
}

static void other_protocols_are_refused(void **state)
{
    struct world *w = *state;
    const char *urls[] = {"file:///etc/passwd", "ftp://127.0.0.1/", "http://",
                          "gopher://127.0.0.1:1/x", "nonsense://x"};

    for (size_t i = 0; i < MEM_COUNT(urls); i++) {
        fetch(w, (struct httpc_request) {.method = "GET", .url = urls[i]});
        assert_int_equal(w->err.class, ERR_CONFIG);
        assert_true(w->unsent);
        assert_int_equal(w->status, 0);
    }
}

static void many_at_once_share_few_connections(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 200; i++)
        start(w, (struct httpc_request) {.method = "POST",
                                         .url = url(w, "/")});
    loop_run(w->l);
    assert_int_equal(w->results, 200);
    assert_int_equal(w->handled, 200);
    assert_in_range(httpd_conns(w->h), 1, 4);
}

static void cancel(void *arg)
{
    httpc_cancel(arg);
    httpc_cancel(arg); /* twice is fine */
}

static void a_call_can_be_given_up(void **state)
{
    struct world *w = *state;
    struct httpc_call *k;

    k = start(w, (struct httpc_request) {.method = "POST",
                                         .url = url(w, "/hold")});
    httpc_cancel(k); /* at once: it never left */
    loop_run(w->l);
    assert_int_equal(w->err.class, ERR_CANCELLED);
    assert_true(w->unsent);
    assert_int_equal(w->handled, 0);

    k = start(w, (struct httpc_request) {.method = "POST",
                                         .url = url(w, "/hold")});
    loop_timer_arm(w->l, 30000, cancel, k);
    loop_run(w->l);
    assert_int_equal(w->err.class, ERR_CANCELLED);
    assert_false(w->unsent);
    assert_int_equal(w->handled, 1);
    fetch(w, (struct httpc_request) {.method = "GET", .url = url(w, "/")});
    assert_int_equal(w->gone, 1);
}

static void destroy_ends_what_is_under_way(void **state)
{
    struct world *w = *state;

    start(w, (struct httpc_request) {.method = "GET", .url = url(w, "/hold")});
    start(w, (struct httpc_request) {.method = "GET", .url = url(w, "/hold")});
    httpc_cancel(start(w, (struct httpc_request) {.method = "GET",
                                                  .url = url(w, "/")}));
    httpc_destroy(w->c);
    w->c = NULL;
    assert_int_equal(w->results, 3);
    assert_int_equal(w->err.class, ERR_CANCELLED);
}

static void a_silent_server_hits_the_deadline(void **state)
{
    struct world *w = *state;
    int64_t t = clock_mono_us();

    fetch(w, (struct httpc_request) {.method = "POST",
                                     .url = url(w, "/hold?secret"),
                                     .deadline_ms = 100});
    assert_in_range(clock_mono_us() - t, 100000, 1000000);
    assert_int_equal(w->err.class, ERR_TIMEOUT);
    assert_false(w->unsent);
    assert_null(strstr(w->err.text, "secret"));
    assert_non_null(strstr(w->err.text, "POST http://127.0.0.1:"));
}

/* --- servers that misbehave ----------------------------------------------*/

struct raw {
    int fd, port;
    pthread_t thread;
    atomic_int requests;
};

static void raw_listen(struct raw *r)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof a;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(r->fd, (struct sockaddr *) &a, sizeof a), 0);
    assert_int_equal(listen(r->fd, 9), 0);
    getsockname(r->fd, (struct sockaddr *) &a, &n);
    r->port = ntohs(a.sin_port);
}

static void nobody_listens(void **state)
{
    struct world *w = *state;
    struct raw r = {0};
    char text[64];

    raw_listen(&r);
    close(r.fd);
    snprintf(text, sizeof text, "http://127.0.0.1:%d/", r.port);
    fetch(w, (struct httpc_request) {.method = "POST", .url = text});
    assert_int_equal(w->err.class, ERR_TRANSIENT);
    assert_true(w->unsent);
}

/* TCP connects (the kernel accepts), TLS gets no answer. */
static void a_handshake_that_stalls_sent_nothing(void **state)
{
    struct world *w = *state;
    struct raw r = {0};
    char text[64];

    raw_listen(&r);
    snprintf(text, sizeof text, "https://127.0.0.1:%d/", r.port);
    fetch(w, (struct httpc_request) {.method = "POST", .url = text,
                                     .connect_ms = 100});
    assert_int_equal(w->err.class, ERR_TIMEOUT);
    assert_true(w->unsent);
    close(r.fd);
}

/* Answers the first request of a connection and swallows the second. */
static void *answer_once(void *arg)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    struct raw *r = arg;
    char b[4096];
    int fd;

    while ((fd = accept(r->fd, NULL, NULL)) >= 0) {
        if (recv(fd, b, sizeof b, 0) > 0) {
            atomic_fetch_add(&r->requests, 1);
            if (send(fd, ok, sizeof ok - 1, MSG_NOSIGNAL) > 0 &&
                recv(fd, b, sizeof b, 0) > 0)
                atomic_fetch_add(&r->requests, 1);
        }
        close(fd);
    }
    return NULL;
}

static void only_harmless_requests_are_repeated(void **state)
{
    struct world *w = *state;
    struct raw r = {0};
    char text[64];

    raw_listen(&r);
    pthread_create(&r.thread, NULL, answer_once, &r);
    snprintf(text, sizeof text, "http://127.0.0.1:%d/", r.port);
    fetch(w, (struct httpc_request) {.method = "POST", .url = text});
    assert_int_equal(w->err.class, ERR_NONE);
    fetch(w, (struct httpc_request) {.method = "POST", .url = text});
    assert_int_equal(w->err.class, ERR_TRANSIENT);
    assert_false(w->unsent);
    assert_non_null(strstr(w->err.text, "after the request was sent"));

    fetch(w, (struct httpc_request) {.method = "GET", .url = text});
    assert_int_equal(w->err.class, ERR_NONE);
    assert_int_equal(r.requests, 3); /* the POST was not sent again */
    fetch(w, (struct httpc_request) {.method = "GET", .url = text});
    assert_int_equal(w->err.class, ERR_NONE);
    assert_int_equal(r.requests, 5); /* the GET was */
    httpc_destroy(w->c); /* closes the connection the thread waits on */
    w->c = NULL;
    shutdown(r.fd, SHUT_RDWR);
    pthread_join(r.thread, NULL);
    close(r.fd);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(every_method_arrives_as_meant),
        T(connections_are_kept_and_not_inherited),
        T(large_replies_are_whole_or_refused),
        T(redirects_are_not_followed),
        T(other_protocols_are_refused),
        T(many_at_once_share_few_connections),
        T(a_call_can_be_given_up),
        T(destroy_ends_what_is_under_way),
        T(a_silent_server_hits_the_deadline),
        T(nobody_listens),
        T(a_handshake_that_stalls_sent_nothing),
        T(only_harmless_requests_are_repeated),
    };

    return cmocka_run_group_tests_name("httpc", tests, NULL, NULL);
}
