/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runner's HTTP client and the API calls on top of it, against a scripted
 * server in a child process: each connection gets a list of answers, and the
 * child's exit code says how many connections there were.
 */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/runner/api.h"
#include "core/runner/http.h"

#define UUID "zzzzz-dz642-0123456789abcde"
#define OK200 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define REFUSED(code)                                                         \
    "HTTP/1.1 " code " X\r\nContent-Length: 20\r\n\r\n{\"errors\":[\"sorry\"]}"

static struct err err;
static struct http_url url;
static pid_t server;
static int requests; /* read end: one byte for each request */

/* Read one request: head, and as much body as it announces. */
static bool read_request(int fd)
{
    char text[8192];
    size_t n = 0, body = 0;
    char *end, *length;

    for (;;) {
        ssize_t r = recv(fd, text + n, sizeof text - 1 - n, 0);

        if (r <= 0)
            return false;
        n += (size_t) r;
        text[n] = '\0';
        end = strstr(text, "\r\n\r\n");
        if (end)
            break;
    }
    length = strstr(text, "Content-Length: ");
    if (length)
        body = (size_t) atol(length + 16);
    n -= (size_t) (end + 4 - text);
    while (n < body) {
        ssize_t r = recv(fd, text, sizeof text, 0);

        if (r <= 0)
            return false;
        n += (size_t) r;
    }
    return true;
}

/* One script per connection: answers separated by '|'; '#' ends a connection
 * at once, '~' says nothing more, '!' answers without reading. */
static void serve_one(int fd, const char *script, int told)
{
    while (*script) {
        size_t n = strcspn(script, "|");

        if (*script == '#')
            return;
        if (*script == '~')
            pause();
        if (*script == '!') {
            script++;
            n--;
        } else {
            if (!read_request(fd))
                return;
            if (write(told, "", 1) != 1)
                return;
        }
        if (send(fd, script, n, MSG_NOSIGNAL) != (ssize_t) n)
            return;
        script += n + (script[n] == '|');
    }
}

static void serve(const char *const *scripts)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0), told[2];

    assert_int_equal(bind(fd, (struct sockaddr *) &a, sizeof a), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &a, &size), 0);
    assert_int_equal(pipe(told), 0);
    server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(told[0]);
        for (; *scripts; scripts++) {
            int c = accept(fd, NULL, NULL);

            serve_one(c, *scripts, told[1]);
            close(c);
        }
        _exit(0);
    }
    close(fd);
    close(told[1]);
    requests = told[0];
    url = (struct http_url){.host = "127.0.0.1", .addr = {127, 0, 0, 1},
                            .port = ntohs(a.sin_port)};
}

#define SERVE(...) serve((const char *const[]){__VA_ARGS__, NULL})

static int end_server(void)
{
    char drop[64];
    int n = 0;
    ssize_t r;

    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    while ((r = read(requests, drop, sizeof drop)) > 0)
        n += (int) r;
    close(requests);
    return n;
}

static int get_within(struct http *h, int64_t ms, int wake, int *ret_status)
{
    struct http_req req = {.method = "GET", .path = "/x", .wake_fd = wake,
                           .deadline_us = clock_mono_us() + ms * 1000};
    CLEANUP(buf_fini) struct buf body;
    struct http_reply reply = {0};
    int r;

    buf_init(&body, 1000);
    err_clear(&err);
    r = http_call(h, &req, &reply, &body, &err);
    *ret_status = reply.status;
    return r;
}

static void urls(void **state)
{
    struct http_url u;

    (void) state;
    assert_ok(http_url_parse("http://127.0.0.1", &u, &err), &err);
    assert_int_equal(u.port, 80);
    assert_string_equal(u.prefix, "");
    assert_ok(http_url_parse("http://127.8.9.1:8000//", &u, &err), &err);
    assert_int_equal(u.port, 8000);
    assert_string_equal(u.host, "127.8.9.1:8000");
    assert_ok(http_url_parse("http://localhost:1/a/b/", &u, &err), &err);
    assert_string_equal(u.prefix, "/a/b");
    assert_int_equal(u.addr[0], 127);
    assert_ok(http_url_parse("http://[::1]:9", &u, &err), &err);
    assert_true(u.v6);
    assert_err(http_url_parse("https://127.0.0.1", &u, &err), &err,
               ERR_CONFIG);
    assert_err(http_url_parse("http://", &u, &err), &err, ERR_CONFIG);
    assert_err(http_url_parse("http://example.org", &u, &err), &err,
               ERR_CONFIG);
    assert_err(http_url_parse("http://128.0.0.1", &u, &err), &err,
               ERR_CONFIG);
    assert_err(http_url_parse("http://[::2]", &u, &err), &err, ERR_CONFIG);
    assert_err(http_url_parse("http://127.1", &u, &err), &err, ERR_CONFIG);
    assert_err(http_url_parse("http://127.0.0.1:0", &u, &err), &err,
               ERR_CONFIG);
    assert_err(http_url_parse("http://127.0.0.1:", &u, &err), &err,
               ERR_CONFIG);
    assert_err(http_url_parse("http://u@127.0.0.1", &u, &err), &err,
               ERR_CONFIG);
    assert_err(http_url_parse("http://127.0.0.1/a?b", &u, &err), &err,
               ERR_CONFIG);
    assert_err(http_url_parse("http://127.0.0.1/a\r\nX: y", &u, &err), &err,
               ERR_CONFIG);
}

static void connection_is_kept(void **state)
{
    struct http *h;
    int status;

    (void) state;
    SERVE(OK200 "|" OK200 "|" OK200);
    h = http_create(&url, "t");
    for (int i = 0; i < 3; i++) {
        assert_ok(get_within(h, 5000, -1, &status), &err);
        assert_int_equal(status, 200);
    }
    http_destroy(h);
    assert_int_equal(end_server(), 3);
}

static void dead_kept_connection_is_replaced(void **state)
{
    struct http *h;
    int status;

    (void) state;
    SERVE(OK200, OK200, "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                        "Content-Length: 0\r\n\r\n", OK200);
    h = http_create(&url, "t");
    for (int i = 0; i < 4; i++)
        assert_ok(get_within(h, 5000, -1, &status), &err);
    http_destroy(h);
    assert_int_equal(end_server(), 4);
}

static void fresh_connection_is_not_replaced(void **state)
{
    struct http *h;
    int status;

    (void) state;
    SERVE("#", OK200);
    h = http_create(&url, "t");
    assert_err(get_within(h, 5000, -1, &status), &err, ERR_TRANSIENT);
    http_destroy(h);
    end_server();
}

static void half_an_answer_is_not_repeated(void **state)
{
    struct http *h;
    int status;

    (void) state;
    SERVE(OK200 "|HTTP/1.1 200 OK\r\nContent-Le", OK200);
    h = http_create(&url, "t");
    assert_ok(get_within(h, 5000, -1, &status), &err);
    assert_err(get_within(h, 5000, -1, &status), &err, ERR_TRANSIENT);
    http_destroy(h);
    assert_int_equal(end_server(), 2);
}

static void nobody_listens(void **state)
{
    struct http *h;
    int status;

    (void) state;
    SERVE(OK200);
    end_server();
    h = http_create(&url, "t");
    assert_err(get_within(h, 5000, -1, &status), &err, ERR_TRANSIENT);
    http_destroy(h);
}

static void deadline_holds(void **state)
{
    int64_t begun;
    struct http *h;
    int status;

    (void) state;
    SERVE("!HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n|~");
    h = http_create(&url, "t");
    begun = clock_mono_us();
    assert_err(get_within(h, 100, -1, &status), &err, ERR_TIMEOUT);
    assert_in_range(clock_mono_us() - begun, 90 * 1000, 5000 * 1000);
    http_destroy(h);
    end_server();
}

static void woken(void **state)
{
    struct http *h;
    int status, p[2];

    (void) state;
    SERVE("~");
    assert_int_equal(pipe(p), 0);
    assert_int_equal(write(p[1], "", 1), 1);
    h = http_create(&url, "t");
    assert_err(get_within(h, 5000, p[0], &status), &err, ERR_CANCELLED);
    http_destroy(h);
    close(p[0]);
    close(p[1]);
    end_server();
}

static void surplus_is_refused(void **state)
{
    struct http *h;
    int status;

    (void) state;
    SERVE(OK200 "x");
    h = http_create(&url, "t");
    assert_err(get_within(h, 5000, -1, &status), &err, ERR_INVALID);
    http_destroy(h);
    end_server();
}

/* A file larger than the socket's buffers, and an answer before its end. */
static void early_answer_to_a_large_body(void **state)
{
    char path[] = "/tmp/test-http-XXXXXX";
    int fd = mkstemp(path);
    struct api *a;

    (void) state;
    unlink(path);
    assert_int_equal(ftruncate(fd, API_PIECE_MAX), 0);
    SERVE("!" REFUSED("413") "|~");
    a = api_create(&url, UUID, "t");
    assert_err(api_put_file(a, "log", "stdout.txt", fd, 0, API_PIECE_MAX,
                            &err), &err, ERR_TOO_LARGE);
    assert_non_null(strstr(err.text, "sorry"));
    api_destroy(a);
    end_server();
    close(fd);
}

static void whole_file_arrives(void **state)
{
    char path[] = "/tmp/test-http-XXXXXX";
    int fd = mkstemp(path);
    struct api *a;

    (void) state;
    unlink(path);
    assert_int_equal(ftruncate(fd, API_PIECE_MAX), 0);
    SERVE(OK200 "|" OK200);
    a = api_create(&url, UUID, "t");
    assert_ok(api_put_file(a, "output", "a b/c", fd, 0, API_PIECE_MAX, &err),
              &err);
    assert_ok(api_put_file(a, "output", "empty", fd, 0, 0, &err), &err);
    /* The file is shorter than was said. */
    assert_int_equal(ftruncate(fd, 10), 0);
    assert_err(api_put_file(a, "output", "x", fd, 0, 100, &err), &err,
               ERR_INTERNAL);
    api_destroy(a);
    assert_int_equal(end_server(), 2);
    close(fd);
}

static void classes_of_refusals(void **state)
{
    static const struct {
        const char *script;
        enum err_class class;
    } cases[] = {
        {REFUSED("401"), ERR_AUTH},      {REFUSED("403"), ERR_AUTH},
        {REFUSED("404"), ERR_NOT_FOUND}, {REFUSED("413"), ERR_TOO_LARGE},
        {REFUSED("422"), ERR_INVALID},   {REFUSED("429"), ERR_TRANSIENT},
        {REFUSED("500"), ERR_TRANSIENT}, {REFUSED("503"), ERR_TRANSIENT},
        {REFUSED("302"), ERR_INVALID},
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        struct api *a;

        SERVE(cases[i].script);
        a = api_create(&url, UUID, "t");
        assert_err(api_update(a, "{}", NULL, &err), &err, cases[i].class);
        assert_int_equal(api_last_ok_us(a), 0);
        api_destroy(a);
        assert_int_equal(end_server(), 1);
    }
}

static void patience(void **state)
{
    CLEANUP(buf_fini) struct buf record;
    struct api *a;

    (void) state;
    buf_init(&record, 1000);
    SERVE(REFUSED("503"), "#", "HTTP/1.1 200 OK\r\n\r\n", OK200);
    a = api_create(&url, UUID, "t");
    api_set_patience(a, clock_mono_us() + 20 * 1000000);
    /* The third answer is malformed: that is not repeated. */
    assert_err(api_get(a, &record, &err), &err, ERR_INVALID);
    assert_ok(api_get(a, &record, &err), &err);
    assert_string_equal(record.data, "{}");
    assert_true(api_last_ok_us(a) > 0);
    api_destroy(a);
    end_server();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls),
        cmocka_unit_test(connection_is_kept),
        cmocka_unit_test(dead_kept_connection_is_replaced),
        cmocka_unit_test(fresh_connection_is_not_replaced),
        cmocka_unit_test(half_an_answer_is_not_repeated),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(deadline_holds),
        cmocka_unit_test(woken),
        cmocka_unit_test(surplus_is_refused),
        cmocka_unit_test(early_answer_to_a_large_body),
        cmocka_unit_test(whole_file_arrives),
        cmocka_unit_test(classes_of_refusals),
        cmocka_unit_test(patience),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
