/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/text: identifiers, quoting, numbers, durations, sizes, times. */
#include "tests/unit/unit.h"

#include <math.h>

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/base/text.h"

static void test_duration(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } cases[] = {
        {"0", 0},           {"10s", 10000},     {"1m30s", 90000},
        {"500ms", 500},     {"1.5h", 5400000},  {"1h0m0.25s", 3600250},
        {".5s", 500},       {"1.s", 1000},      {"1us", 1},
        {"1ns", 1},         {"1500us", 2},      {"\u00b5s", -1},
        {"2\u00b5s", 1},    {"0s", 0},          {"0.1s", 100},
        {"1.1s", 1100},     {"", -1},           {"10", -1},
        {"-1s", -1},        {"+1s", -1},        {"1 s", -1},
        {" 1s", -1},        {"1s ", -1},        {"1d", -1},
        {".s", -1},         {"s", -1},          {"1e3s", -1},
        {"2562047h", 9223369200000},            {"2562048h", -1},
        {"99999999999999999999s", -1},
    };
    struct err err;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        int64_t ms = -7;
        int rc = text_parse_duration(cases[i].text, &ms, &err);
        if (rc != (cases[i].ms < 0 ? -1 : 0) ||
            ms != (cases[i].ms < 0 ? -7 : cases[i].ms))
            fail_msg("'%s': rc %d, %jd ms", cases[i].text, rc, (intmax_t) ms);
    }
}

static void test_format_duration(void **state)
{
    (void) state;
    static const int64_t values[] = {0,     1,     999,     1000,   90000,
                                     3600000, 3600001, 86400000, 5400250};
    char out[64];
    assert_string_equal(text_format_duration(90000, out, sizeof out),
                        "1m30s");
    assert_string_equal(text_format_duration(0, out, sizeof out), "0");
    assert_string_equal(text_format_duration(86400000, out, sizeof out),
                        "24h");
    for (size_t i = 0; i < MEM_COUNT(values); i++) {
        int64_t ms = -1;
        text_format_duration(values[i], out, sizeof out);
        assert_int_equal(text_parse_duration(out, &ms, NULL), 0);
        assert_int_equal(ms, values[i]);
    }
    assert_string_equal(text_format_duration(90000, out, 3), "1m");
}

static void test_size(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        int64_t bytes; /* -1: refused */
    } cases[] = {
        {"0", 0},
        {"123", 123},
        {"4GiB", INT64_C(4) << 30},
        {"4Gi", INT64_C(4) << 30},
        {"4G", INT64_C(4000000000)},
        {"1KB", 1000},
        {"1 KiB", 1024},
        {"1.5 MB", 1500000},
        {"0.1K", 100},
        {"0.035K", 35},
        {"1.1G", 1100000000},
        {"1B", 1},
        {"7E", INT64_C(7000000000000000000)},
        {"7EiB", INT64_C(7) << 60},
        {"8EiB", -1},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", -1},
        {"", -1},
        {"-1", -1},
        {"KiB", -1},
        {"1k", -1},
        {"1X", -1},
        {"1Kib", -1},
        {"1BB", -1},
        {"1iB", -1},
        {" 1", -1},
        {"1 ", 1},
        {"0x10", -1},
    };
    struct err err;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        int64_t bytes = -7;
        int rc = text_parse_size(cases[i].text, &bytes, &err);
        if (rc != (cases[i].bytes < 0 ? -1 : 0) ||
            bytes != (cases[i].bytes < 0 ? -7 : cases[i].bytes))
            fail_msg("'%s': rc %d, %jd bytes", cases[i].text, rc,
                     (intmax_t) bytes);
    }
}

static void test_integer(void **state)
{
    (void) state;
    struct err err;
    int64_t v = 0;
    assert_ok(text_parse_i64("-9223372036854775808", &v, &err), &err);
    assert_true(v == INT64_MIN);
    assert_ok(text_parse_i64("007", &v, &err), &err);
    assert_int_equal(v, 7);
    assert_err(text_parse_i64("9223372036854775808", &v, &err), &err,
               ERR_INVALID);
    static const char *const bad[] = {"", "-", "+1", " 1", "1 ", "1.0", "x"};
    for (size_t i = 0; i < MEM_COUNT(bad); i++)
        assert_err(text_parse_i64(bad[i], &v, &err), &err, ERR_INVALID);
    assert_int_equal(v, 7);
}

static void test_float(void **state)
{
    (void) state;
    struct err err;
    double v = 0;
    assert_ok(text_parse_f64("-1.5e2", &v, &err), &err);
    assert_true(v == -150.0);
    static const char *const bad[] = {"",    ".",   "nan", "inf", "0x1p3",
                                      "1e",  " 1",  "1 ",  "+1",  "1e400",
                                      "1,5", "1e+", "--1"};
    for (size_t i = 0; i < MEM_COUNT(bad); i++)
        assert_err(text_parse_f64(bad[i], &v, &err), &err, ERR_INVALID);
    assert_true(v == -150.0);
}

static void test_format_float(void **state)
{
    (void) state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},     {5, "5"},         {1e300, "1e+300"},
        {-0.0, "-0"},     {NAN, "NaN"},     {INFINITY, "+Inf"},
        {-INFINITY, "-Inf"}, {0.1 + 0.2, "0.30000000000000004"},
        {-2.2250738585072014e-308, "-2.2250738585072014e-308"},
    };
    char out[TEXT_F64_SIZE];
    for (size_t i = 0; i < MEM_COUNT(cases); i++)
        assert_string_equal(text_format_f64(cases[i].v, out), cases[i].text);
}

static void test_uuid(void **state)
{
    (void) state;
    assert_true(text_is_uuid("zzzzz-dz642-0123456789abcde", NULL));
    assert_true(text_is_uuid("zzzzz-dz642-0123456789abcde", "dz642"));
    assert_false(text_is_uuid("zzzzz-dz642-0123456789abcde", "xvhdp"));
    assert_false(text_is_uuid("zzzzz-dz642-0123456789abcde", "dz64"));
    assert_false(text_is_uuid("", NULL));
    assert_false(text_is_uuid("zzzzz-dz642-0123456789abcd", NULL));
    assert_false(text_is_uuid("zzzzz-dz642-0123456789abcdef", NULL));
    assert_false(text_is_uuid("zzzzz-dz642-0123456789abcdE", NULL));
    assert_false(text_is_uuid("zzzzz_dz642-0123456789abcde", NULL));
    assert_false(text_is_uuid("../zz-dz642-0123456789abcde", NULL));
}

static void test_names(void **state)
{
    (void) state;
    assert_true(text_is_name("ec2-west_1", 10));
    assert_false(text_is_name("ec2-west_1", 9));
    assert_false(text_is_name("", 9));
    assert_false(text_is_name("EC2", 9));
    assert_false(text_is_name("a/b", 9));
    assert_true(text_is_file_name("Image-1.2_x", 64));
    assert_false(text_is_file_name(".hidden", 64));
    assert_false(text_is_file_name("..", 64));
    assert_false(text_is_file_name("", 64));
    assert_false(text_is_file_name("a b", 64));
    assert_false(text_is_file_name("toolong", 6));
}

static void test_format_time(void **state)
{
    (void) state;
    char out[TEXT_TIME_SIZE];
    assert_string_equal(text_format_time(0, out),
                        "1970-01-01T00:00:00.000000000Z");
    assert_string_equal(text_format_time(-1, out),
                        "1969-12-31T23:59:59.999999000Z");
    assert_string_equal(text_format_time(1767323045123456, out),
                        "2026-01-02T03:04:05.123456000Z");
    assert_string_equal(text_format_time(INT64_C(-62135596800) * 1000000, out),
                        "0001-01-01T00:00:00.000000000Z");
    text_format_time(INT64_MAX, out);
    assert_int_equal(strlen(out), TEXT_TIME_SIZE - 1);
}

static void test_parse_time(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {
        {"2026-01-02T03:04:05.123456789Z", 1767323045123456},
        {"2026-01-02T03:04:05Z", 1767323045000000},
        {"2026-01-02t03:04:05.1z", 1767323045100000},
        {"2026-01-02 05:34:05+02:30", 1767323045000000},
        {"2026-01-01T22:04:05-05:00", 1767323045000000},
        {"1970-01-01T00:00:00Z", 0},
        {"1969-12-31T23:59:59.5Z", -500000},
        {"2000-02-29T00:00:00Z", 951782400000000},
        {"2016-12-31T23:59:60Z", 1483228800000000},
    };
    static const char *const bad[] = {
        "",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-1-02T03:04:05Z",
        "2026-02-29T03:04:05Z",
        "1900-02-29T03:04:05Z",
        "2026-13-01T03:04:05Z",
        "2026-00-01T03:04:05Z",
        "2026-01-00T03:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:61Z",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05.1234567890Z",
        "2026-01-02T03:04:05Zx",
        "2026-01-02T03:04:05+0200",
        "2026-01-02T03:04:05+24:00",
    };
    struct err err;
    int64_t us = 1;
    for (size_t i = 0; i < MEM_COUNT(good); i++) {
        assert_ok(text_parse_time(good[i].text, &us, &err), &err);
        assert_int_equal(us, good[i].us);
    }
    us = 77;
    for (size_t i = 0; i < MEM_COUNT(bad); i++)
        assert_err(text_parse_time(bad[i], &us, &err), &err, ERR_INVALID);
    assert_int_equal(us, 77);
}

/* Every day of the calendar goes there and back. */
static void test_time_round_trip(void **state)
{
    (void) state;
    char out[TEXT_TIME_SIZE];
    for (int64_t day = -719162; day < 2932897; day += 97) {
        int64_t us = day * INT64_C(86400000000) + 43200000001;
        int64_t back = 0;
        text_format_time(us, out);
        assert_int_equal(text_parse_time(out, &back, NULL), 0);
        assert_int_equal(back, us);
    }
}

static void test_quote_shell(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 100);
    assert_int_equal(text_quote_shell(&b, "it's $HOME `x` \\ \n"), 0);
    assert_string_equal(b.data, "'it'\\''s $HOME `x` \\ \n'");
    buf_reset(&b);
    text_quote_shell(&b, "");
    assert_string_equal(b.data, "''");
    struct buf small;
    buf_init(&small, 3);
    assert_int_equal(text_quote_shell(&small, "abc"), -1);
    buf_fini(&small);
}

static void test_quote_terminal(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 200);
    static const char in[] = "a\x1b[31m\n\t\r\\\x7f caf\xC3\xA9 \xff\xC2\x9b"
                             "\xE2\x82";
    assert_int_equal(text_quote_terminal(&b, in, sizeof in - 1), 0);
    assert_string_equal(b.data, "a\\x1b[31m\\n\\t\\r\\\\\\x7f caf\xC3\xA9 "
                                "\\xff\\u009b\\xe2\\x82");
    buf_reset(&b);
    text_quote_terminal(&b, "x\0y", 3);
    assert_string_equal(b.data, "x\\x00y");
}

static void test_encodings(void **state)
{
    (void) state;
    char out[64];
    static const uint8_t bytes[] = {0, 1, 31, 35, 36, 255};
    text_hex(bytes, sizeof bytes, out);
    assert_string_equal(out, "00011f2324ff");
    text_base36(bytes, sizeof bytes, out);
    assert_string_equal(out, "01vz03");
    text_base32(bytes, sizeof bytes, out);
    assert_string_equal(out, "ab7de7");
}

static void test_utf8(void **state)
{
    (void) state;
    static const char *const good[] = {
        "",           "abc",          "\xC2\x80",         "\xDF\xBF",
        "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",   "\xEF\xBF\xBF",
        "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF",
    };
    static const char *const bad[] = {
        "\x80",         "\xBF",             "\xC0\x80",     "\xC1\xBF",
        "\xC3",         "\xC3(",            "\xE0\x9F\xBF", "\xE2\x82",
        "\xED\xA0\x80", "\xED\xBF\xBF",     "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF",
        "\xE2\x28\xA1", "\xF0\x90\x28\xBC",
    };
    for (size_t i = 0; i < MEM_COUNT(good); i++)
        assert_true(text_is_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < MEM_COUNT(bad); i++)
        if (text_is_utf8(bad[i], strlen(bad[i])))
            fail_msg("case %zu was taken", i);
    assert_false(text_is_utf8("a\0b", 3));
    uint32_t cp = 0;
    assert_int_equal(text_utf8_char("\xF0\x9F\x98\x80", 4, &cp), 4);
    assert_int_equal(cp, 0x1F600);
    assert_int_equal(text_utf8_char("\xF0\x9F\x98\x80", 3, &cp), 0);
    assert_int_equal(text_utf8_char("", 0, &cp), 0);
}

static void test_uri(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 100);
    assert_int_equal(text_encode_uri(&b, "a-._~Z9 /?%\xC3\xA9"), 0);
    assert_string_equal(b.data, "a-._~Z9%20%2F%3F%25%C3%A9");
    char text[] = "a%20b+c%2f";
    assert_int_equal(text_decode_uri(text, false), 0);
    assert_string_equal(text, "a b+c/");
    char form[] = "a%20b+c";
    assert_int_equal(text_decode_uri(form, true), 0);
    assert_string_equal(form, "a b c");
    char bad[][8] = {"%", "%1", "%zz", "a%00b", "%1z"};
    for (size_t i = 0; i < MEM_COUNT(bad); i++)
        assert_int_equal(text_decode_uri(bad[i], false), -1);
}

static void test_copy(void **state)
{
    (void) state;
    char out[4] = "";
    assert_int_equal(text_copy(out, "abcdef", sizeof out), 6);
    assert_string_equal(out, "abc");
    assert_int_equal(text_copy(out, "x", sizeof out), 1);
    assert_string_equal(out, "x");
    assert_int_equal(text_copy(NULL, "abc", 0), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duration),
        cmocka_unit_test(test_format_duration),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_integer),
        cmocka_unit_test(test_float),
        cmocka_unit_test(test_format_float),
        cmocka_unit_test(test_uuid),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_format_time),
        cmocka_unit_test(test_parse_time),
        cmocka_unit_test(test_time_round_trip),
        cmocka_unit_test(test_quote_shell),
        cmocka_unit_test(test_quote_terminal),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_uri),
        cmocka_unit_test(test_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
