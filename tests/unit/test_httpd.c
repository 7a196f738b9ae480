/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP server over real sockets: malformed requests, framing, pipelining.
 * Deadlines, limits and ends are in test_httpd_conn.c.
 */

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "tests/unit/httpd_util.h"

/* --- malformed requests --------------------------------------------------*/

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
        int fd = srv_dial(s), yes = 1;

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
    int fd = srv_dial(s);

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
    int fd = srv_dial(s);
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
    int fd = srv_dial(s);
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
    int fd = srv_dial(s);

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

static void a_token_follows_its_scheme(void **state)
{
    (void) state;
    assert_string_equal(httpd_token("Bearer abc"), "abc");
    assert_string_equal(httpd_token("bearer   abc"), "abc");
    assert_string_equal(httpd_token("OAuth2 v2/x/y"), "v2/x/y");
    assert_string_equal(httpd_token("Bearer "), "");
    assert_null(httpd_token("Basic abc"));
    assert_null(httpd_token("Bearer"));
    assert_null(httpd_token(""));
    assert_null(httpd_token(NULL));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, srv_start, srv_finish)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_follows_its_scheme),
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
    };

    return cmocka_run_group_tests_name("httpd", tests, NULL, NULL);
}
