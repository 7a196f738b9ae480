/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP server over real sockets: deadlines, clients that leave, limits on
 * connections, a graceful end.
 */

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "tests/unit/httpd_util.h"

/* --- deadlines and absence -----------------------------------------------*/

static void expect_408(const struct srv *s, const char *part)
{
    int64_t t = clock_mono_us();
    int fd = srv_dial(s);
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
    int fd = srv_dial(s);
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

static void count_conns(void *arg)
{
    struct srv *s = arg;

    atomic_store(&s->conns, (int) httpd_conns(s->h));
}

/* The server's count, taken on its own thread. */
static unsigned conns_now(struct srv *s)
{
    atomic_store(&s->conns, -1);
    loop_post(s->loop, count_conns, s);
    for (int i = 0; i < 4000 && atomic_load(&s->conns) < 0; i++)
        usleep(500);
    assert_true(atomic_load(&s->conns) >= 0);
    return (unsigned) atomic_load(&s->conns);
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
    int fd = srv_dial(s);

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
    int fd = srv_dial(s);

    puts_to(fd, "GET /hold HTTP/1.1\r\n" H "\r\n");
    await(&s->handled, 1);
    close(fd);
    await(&s->gone, 1);

    fd = srv_dial(s); /* and one that leaves with a reset */
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
    int fd = srv_dial(s);
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
        fds[i] = srv_dial(s);
    await_conns(s, 20);
    {
        int fd = srv_dial(s);
        CLEANUP(mem_free) char *got = read_to_end(fd);

        assert_non_null(strstr(got, "HTTP/1.1 503 "));
        assert_non_null(strstr(got, "\r\nContent-Length: 36\r\n"));
        assert_int_equal(strlen(strstr(got, "\r\n\r\n") + 4), 36);
    }
    for (int i = 20; i < 30; i++) /* another address has its own share */
        fds[i] = srv_dial_from(s, "127.0.0.2");
    await_conns(s, 30);
    {
        int fd = srv_dial_from(s, "127.0.0.3");
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

    httpd_stop(s->h, 400, srv_stop_loop, s);
}

static void a_graceful_end_answers_what_has_arrived(void **state)
{
    struct srv *s = *state;
    int idle = srv_dial(s), busy = srv_dial(s);
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
    pthread_create(&s->thread, NULL, srv_run, s);
    s->stopped = false;
}

static void a_graceful_end_has_a_deadline(void **state)
{
    struct srv *s = *state;
    int busy = srv_dial(s);
    char c;

    puts_to(busy, "GET /hold HTTP/1.1\r\n" H "\r\n");
    await(&s->handled, 1);
    loop_post(s->loop, begin_stop, s);
    assert_int_equal(recv(busy, &c, 1, 0), 0);
    pthread_join(s->thread, NULL);
    assert_int_equal(s->gone, 1);
    close(busy);
    pthread_create(&s->thread, NULL, srv_run, s);
    s->stopped = false;
}

static void a_request_outlives_the_server(void **state)
{
    struct srv *s = *state;
    int fd = srv_dial(s);

    puts_to(fd, "GET /hold HTTP/1.1\r\n" H "\r\n");
    await(&s->handled, 1);
    loop_post(s->loop, srv_stop_loop, s);
    pthread_join(s->thread, NULL);
    httpd_on_gone(s->held, NULL, NULL);
    httpd_destroy(s->h); /* srv_finish() replies afterwards */
    s->h = NULL;
    close(fd);
    pthread_create(&s->thread, NULL, srv_run, s);
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
#define T(f) cmocka_unit_test_setup_teardown(f, srv_start, srv_finish)
    const struct CMUnitTest tests[] = {
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

    return cmocka_run_group_tests_name("httpd_conn", tests, NULL, NULL);
}
