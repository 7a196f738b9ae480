/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response parser: what it takes, byte by byte and at once, and the many
 * things that it must not take.
 */
#include "tests/unit/unit.h"

#include "core/base/mem.h"
#include "core/runner/http_rx.h"

enum { BODY_MAX = 64 };

static struct err err;

/* Feed in steps of `step` bytes; -1, or the bytes that were used. */
static long feed(struct http_rx *rx, const char *text, size_t n, size_t step)
{
    size_t at = 0;

    while (at < n && rx->state != HTTP_RX_DONE) {
        size_t part = n - at < step ? n - at : step, used;

        if (http_rx_feed(rx, text + at, part, &used, &err) < 0)
            return -1;
        at += used;
    }
    return (long) at;
}

static void good(const char *text, int status, const char *body)
{
    for (size_t step = 1; step <= strlen(text); step++) {
        struct http_rx rx;

        http_rx_init(&rx, BODY_MAX, false);
        if (feed(&rx, text, strlen(text), step) != (long) strlen(text))
            fail_msg("%s: %s", text, err.text);
        assert_int_equal(rx.state, HTTP_RX_DONE);
        assert_int_equal(rx.status, status);
        assert_string_equal(rx.body.data, body);
        http_rx_fini(&rx);
    }
}

static void taken(void **state)
{
    (void) state;
    good("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}");
    good("HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", 200, "");
    good("HTTP/1.1 200 \r\nContent-Length:  2 \t\r\nX-Y: a:b\r\n\r\nab", 200,
         "ab");
    good("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
    good("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", 304, "");
    good("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
         "Content-Length: 1\r\n\r\nx", 200, "x");
    good("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n", 200, "abcde");
    good("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
         "A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", 200, "0123456789");
    good("HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", 404, "x");
}

static void connection_and_retry(void **state)
{
    static const char text[] =
        "HTTP/1.1 503 Busy\r\nConnection: close\r\nRetry-After: 7\r\n"
        "Content-Length: 0\r\n\r\n";
    struct http_rx rx;

    (void) state;
    http_rx_init(&rx, BODY_MAX, false);
    assert_int_equal(feed(&rx, text, strlen(text), 100), strlen(text));
    assert_true(rx.close);
    assert_int_equal(rx.retry_after, 7);
    http_rx_fini(&rx);
}

static void rest_is_not_used(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy";
    struct http_rx rx;

    (void) state;
    http_rx_init(&rx, BODY_MAX, false);
    assert_int_equal(feed(&rx, text, strlen(text), 1000), strlen(text) - 1);
    http_rx_fini(&rx);
}

static void head_has_no_body(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    struct http_rx rx;

    (void) state;
    http_rx_init(&rx, BODY_MAX, true);
    assert_int_equal(feed(&rx, text, strlen(text), 1000), strlen(text));
    assert_int_equal(rx.state, HTTP_RX_DONE);
    http_rx_fini(&rx);
}

static const struct {
    const char *text;
    size_t len; /* 0 = strlen */
} bad[] = {
    {"garbage\r\n\r\n", 0},
    {"HTTP/2 200 OK\r\n", 0},
    {"HTTP/1.2 200 OK\r\n", 0},
    {"http/1.1 200 OK\r\n", 0},
    {"HTTP/1.1  200 OK\r\n", 0},
    {"HTTP/1.1 20 OK\r\n", 0},
    {"HTTP/1.1 2000 OK\r\n", 0},
    {"HTTP/1.1 099 OK\r\n", 0},
    {"HTTP/1.1 600 OK\r\n", 0},
    {"HTTP/1.1 +20 OK\r\n", 0},
    {"\r\nHTTP/1.1 200 OK\r\n", 0},
    {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n", 0},
    {"HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\n\r\n", 0}, /* no length */
    {"HTTP/1.1 101 Upgrade\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1 1\r\n\r\nx", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\nx", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n", 0}, /* > BODY_MAX */
    {"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx", 0},
    {"HTTP/1.1 200 OK\r\n Content-Length: 1\r\n\r\nx", 0},
    {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 1\r\n\r\nx", 0},
    {"HTTP/1.1 200 OK\r\n: x\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nNoColon\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nX(: y\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nX: a\x01\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nX: a\0b\r\n", 26},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", 0},
    {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
     "Transfer-Encoding: chunked\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
     "Content-Length: 1\r\n\r\n", 0},
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    {CHUNKED "\r\n", 0},
    {CHUNKED "x\r\n", 0},
    {CHUNKED "-1\r\n", 0},
    {CHUNKED "0x1\r\n", 0},
    {CHUNKED "1 \r\na\r\n", 0},
    {CHUNKED "1\r\nab\r\n", 0},
    {CHUNKED "1\na\r\n", 0},
    {CHUNKED "41\r\n", 0}, /* > BODY_MAX */
    {CHUNKED "fffffffff\r\n", 0},
    {CHUNKED "40\r\n"
     "0123456789012345678901234567890123456789012345678901234567890123\r\n"
     "1\r\n", 0}, /* together > BODY_MAX */
};

static void refused(void **state)
{
    (void) state;
    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        size_t n = bad[i].len ? bad[i].len : strlen(bad[i].text);

        for (size_t step = 1; step <= n; step += n - 1 ? n - 1 : 1) {
            struct http_rx rx;

            http_rx_init(&rx, BODY_MAX, false);
            if (feed(&rx, bad[i].text, n, step) >= 0)
                fail_msg("accepted (case %zu): %s", i, bad[i].text);
            http_rx_fini(&rx);
        }
    }
}

static void limits(void **state)
{
    struct http_rx rx;
    char line[2 * HTTP_RX_LINE_MAX];

    (void) state;
    http_rx_init(&rx, BODY_MAX, false);
    memset(line, 'a', sizeof line);
    assert_int_equal(feed(&rx, line, sizeof line, 512), -1);
    assert_int_equal(err.class, ERR_TOO_LARGE);
    http_rx_fini(&rx);

    http_rx_init(&rx, BODY_MAX, false);
    assert_int_equal(feed(&rx, "HTTP/1.1 200 OK\r\n", 17, 17), 17);
    for (int i = 0; i < HTTP_RX_HEADERS_MAX; i++)
        assert_int_equal(feed(&rx, "A: b\r\n", 6, 6), 6);
    assert_int_equal(feed(&rx, "A: b\r\n", 6, 6), -1);
    http_rx_fini(&rx);

    http_rx_init(&rx, BODY_MAX, false);
    for (int i = 0; i < HTTP_RX_INTERIM_MAX; i++)
        assert_int_equal(feed(&rx, "HTTP/1.1 102 P\r\n\r\n", 18, 18), 18);
    assert_int_equal(feed(&rx, "HTTP/1.1 102 P\r\n\r\n", 18, 18), -1);
    http_rx_fini(&rx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken),
        cmocka_unit_test(connection_and_retry),
        cmocka_unit_test(rest_is_not_used),
        cmocka_unit_test(head_has_no_body),
        cmocka_unit_test(refused),
        cmocka_unit_test(limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
