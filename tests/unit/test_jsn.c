/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/jsn: what is refused, typed access, the writer. */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>

#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"

static struct jsn *parse(const char *text)
{
    struct err err;
    struct jsn *j = jsn_parse(text, strlen(text), &err);
    if (!j)
        fail_msg("%s: %s", text, err.text);
    return j;
}

static void test_accepts(void **state)
{
    (void) state;
    static const char *const good[] = {
        "null", "true", "false", "0", "-0", "1", "-1.5e-3", "1E5", "\"\"",
        "[]", "{}", " [1,2 , 3]\r\n", "\t{ \"a\" : [ ] }\n", "12", "1.25",
        "9223372036854775807", "-9223372036854775808",
        "\"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"",
        "{\"caf\xC3\xA9\":1}", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
        "\"\\ud83d\\ude00\"", "{\"a\":{\"a\":1},\"b\":[{\"a\":2}]}",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        "{\"\":0}", "\"\x7f\"", "[null,null]", "1e-400",
    };
    for (size_t i = 0; i < MEM_COUNT(good); i++)
        jsn_free(parse(good[i]));
}

static void test_refuses(void **state)
{
    (void) state;
    static const char *const bad[] = {
        "", " ", "nul", "nulll", "truefalse", "TRUE", "True", "NaN", "nan",
        "Infinity", "-Infinity", "inf", "undefined", "'a'", "{'a':1}",
        "{a:1}", "[1,]", "[,1]", "[1 2]", "{\"a\":1,}", "{\"a\"}",
        "{\"a\":}", "{\"a\" 1}", "{1:2}", "[1", "{\"a\":1", "\"a", "]", "}",
        "[1}", "{\"a\":1]", "1 2", "[] []", "{}x", "[1]]", ":", ",",
        "{\"a\"::1}", "[\"a\":1]", "{\"a\":1:2}", "01", "-01", "00", "1.",
        ".5", "+1", "-", "--1", "1e", "1e+", "1.e5", "0x10", "1_000",
        "9223372036854775808", "-9223372036854775809",
        "18446744073709551616", "[123456789012345678901234567890]", "1e400",
        "[-1e999]", "\"a\nb\"", "\"a\tb\"", "\"\x01\"", "\"\\x41\"",
        "\"\\u12\"", "\"\\u12g4\"", "\"\\", "\"\\u0000\"", "{\"a\\u0000\":1}",
        "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800x\"",
        "\"\x80\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xC3\"",
        "\"\xF5\x80\x80\x80\"", "\xEF\xBB\xBF{}", "\xC3\xA9",
        "// c\n1", "/* c */1", "1 # c", "[1]\v", "\f1", "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"b\":{\"x\":1,\"y\":2,\"x\":3}}",
        "{\"a\":{\"b\":1},\"a\":{\"b\":1}}", "{\"\\u0061\":1,\"a\":2}",
        "[{\"k\":[{\"z\":0,\"z\":0}]}]",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    };
    struct err err;
    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        err_clear(&err);
        struct jsn *j = jsn_parse(bad[i], strlen(bad[i]), &err);
        if (j)
            fail_msg("taken: %s", bad[i]);
        assert_int_equal(err.class, ERR_INVALID);
        assert_true(strncmp(err.text, "JSON: ", 6) == 0);
        assert_null(jsn_parse(bad[i], strlen(bad[i]), NULL));
    }
    assert_null(jsn_parse("1\0", 2, &err));
    assert_null(jsn_parse("[1]\0", 4, &err));
    assert_null(jsn_parse("\"a\0b\"", 5, &err));
}

/* Only n bytes are looked at. */
static void test_bounded(void **state)
{
    (void) state;
    int64_t v = 0;
    char *exact = mem_dup("123", 3); /* no NUL: a sanitizer would see */
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(exact, 3, NULL);
    assert_int_equal(jsn_as_i64(j, &v, NULL), 0);
    assert_int_equal(v, 123);
    free(exact);
    for (size_t n = 0; n < 13; n++) {
        char *part = mem_dup("{\"a\":[1,\"x\"]}", n);
        assert_null(jsn_parse(part, n, NULL));
        free(part);
    }
}

static void test_access(void **state)
{
    (void) state;
    CLEANUP(jsn_cleanup) struct jsn *j =
        parse("{\"s\":\"caf\xC3\xA9\",\"i\":-5,\"f\":2.5,\"b\":true,"
              "\"n\":null,\"a\":[1,null,\"x\"],\"o\":{\"k\":1}}");
    struct err err;
    const char *s = NULL;
    int64_t i = 0;
    double f = 0;
    bool b = false;
    struct jsn *sub = NULL;

    assert_int_equal(jsn_type(j), JSN_OBJECT);
    assert_int_equal(jsn_count(j), 7);
    assert_ok(jsn_str(j, "s", &s, &err), &err);
    assert_string_equal(s, "caf\xC3\xA9");
    assert_ok(jsn_i64(j, "i", &i, &err), &err);
    assert_int_equal(i, -5);
    assert_ok(jsn_f64(j, "f", &f, &err), &err);
    assert_true(f == 2.5);
    assert_ok(jsn_f64(j, "i", &f, &err), &err); /* integers will do */
    assert_true(f == -5);
    assert_ok(jsn_bool(j, "b", &b, &err), &err);
    assert_true(b);
    assert_ok(jsn_obj(j, "o", &sub, &err), &err);
    assert_int_equal(jsn_count(sub), 1);
    assert_ok(jsn_arr(j, "a", &sub, &err), &err);
    assert_int_equal(jsn_count(sub), 3);
    assert_int_equal(jsn_type(jsn_at(sub, 2)), JSN_STRING);
    assert_null(jsn_at(sub, 1)); /* null */
    assert_null(jsn_at(sub, 3)); /* outside */
    assert_null(jsn_at(j, 0));   /* no array */
    assert_null(jsn_get(sub, "k"));
    assert_true(jsn_has(j, "n"));
    assert_null(jsn_get(j, "n"));
    assert_false(jsn_has(j, "zz"));
    assert_false(jsn_has(NULL, "zz"));
    assert_int_equal(jsn_count(NULL), 0);
    assert_int_equal(jsn_type(NULL), JSN_NULL);
}

static void test_access_errors(void **state)
{
    (void) state;
    CLEANUP(jsn_cleanup) struct jsn *j =
        parse("{\"s\":\"x\",\"i\":1,\"f\":2.0,\"n\":null}");
    struct err err;
    const char *s = "same";
    int64_t i = 7;
    bool b = true;
    double f = 1;
    struct jsn *sub = j;

    assert_err(jsn_str(j, "zz", &s, &err), &err, ERR_INVALID);
    assert_string_equal(err.text, "'zz' is missing");
    assert_err(jsn_str(j, "n", &s, &err), &err, ERR_INVALID);
    assert_err(jsn_str(j, "i", &s, &err), &err, ERR_INVALID);
    assert_string_equal(err.text, "'i' is an integer, not a string");
    assert_err(jsn_i64(j, "f", &i, &err), &err, ERR_INVALID);
    assert_err(jsn_i64(j, "s", &i, &err), &err, ERR_INVALID);
    assert_err(jsn_f64(j, "s", &f, &err), &err, ERR_INVALID);
    assert_err(jsn_bool(j, "i", &b, &err), &err, ERR_INVALID);
    assert_err(jsn_obj(j, "s", &sub, &err), &err, ERR_INVALID);
    assert_err(jsn_arr(j, "s", &sub, &err), &err, ERR_INVALID);
    assert_int_equal(jsn_str(j, "i", &s, NULL), -1);
    /* Optional: absent and null are fine, another type is not. */
    assert_ok(jsn_opt_str(j, "zz", &s, &err), &err);
    assert_ok(jsn_opt_str(j, "n", &s, &err), &err);
    assert_ok(jsn_opt_i64(j, "n", &i, &err), &err);
    assert_ok(jsn_opt_bool(j, "n", &b, &err), &err);
    assert_ok(jsn_opt_f64(j, "n", &f, &err), &err);
    assert_err(jsn_opt_str(j, "i", &s, &err), &err, ERR_INVALID);
    assert_err(jsn_opt_i64(j, "s", &i, &err), &err, ERR_INVALID);
    assert_err(jsn_opt_bool(j, "s", &b, &err), &err, ERR_INVALID);
    assert_err(jsn_opt_f64(j, "s", &f, &err), &err, ERR_INVALID);
    assert_string_equal(s, "same");
    assert_int_equal(i, 7);
    assert_ptr_equal(sub, j);
    assert_ok(jsn_opt_str(j, "s", &s, &err), &err);
    assert_string_equal(s, "x");
}

static void test_null_root(void **state)
{
    (void) state;
    CLEANUP(jsn_cleanup) struct jsn *j = parse("null");
    CLEANUP(buf_fini) struct buf b;
    struct jsn_iter it = {0};
    buf_init(&b, 100);
    assert_non_null(j);
    assert_int_equal(jsn_type(j), JSN_NULL);
    assert_null(jsn_get(j, "a"));
    assert_false(jsn_next(j, &it));
    assert_int_equal(jsn_print(j, false, &b), 0);
    assert_string_equal(b.data, "null");
    assert_true(jsn_equal(j, NULL));
    jsn_free(NULL);
}

static void test_iterate(void **state)
{
    (void) state;
    CLEANUP(jsn_cleanup) struct jsn *j = parse("{\"z\":1,\"a\":null,\"m\":3}");
    struct jsn_iter it = {0};
    char keys[8] = "";
    while (jsn_next(j, &it)) {
        strncat(keys, it.key, 1);
        if (it.key[0] == 'a')
            assert_null(it.value);
        else
            assert_int_equal(jsn_type(it.value), JSN_INT);
    }
    assert_string_equal(keys, "zam");
    assert_false(jsn_next(j, &it));
}

static void test_print(void **state)
{
    (void) state;
    static const char text[] =
        "{\"z\":[1,-2.5,true,null,\"\\u00e9\\n\"],\"a\":{\"y\":1.0,\"b\":{}}}";
    CLEANUP(jsn_cleanup) struct jsn *j = parse(text);
    CLEANUP(buf_fini) struct buf b;
    buf_init(&b, 1000);
    assert_int_equal(jsn_print(j, false, &b), 0);
    assert_string_equal(b.data, "{\"z\":[1,-2.5,true,null,\"\xC3\xA9\\n\"],"
                                "\"a\":{\"y\":1.0,\"b\":{}}}");
    CLEANUP(jsn_cleanup) struct jsn *again = parse(b.data);
    assert_true(jsn_equal(j, again));
    buf_reset(&b);
    jsn_print(j, true, &b);
    assert_string_equal(b.data, "{\"a\":{\"b\":{},\"y\":1.0},"
                                "\"z\":[1,-2.5,true,null,\"\xC3\xA9\\n\"]}");
    CLEANUP(buf_fini) struct buf small;
    buf_init(&small, 5);
    assert_int_equal(jsn_print(j, false, &small), -1);
    CLEANUP(jsn_cleanup) struct jsn *other = parse("{\"z\":1}");
    assert_false(jsn_equal(j, other));
}

static void test_writer(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    CLEANUP(jsn_cleanup) struct jsn *v = parse("{\"k\":[]}");
    struct jsn_w w;
    buf_init(&b, 1000);
    jsn_w_init(&w, &b);
    jsn_w_obj(&w, NULL);
    jsn_w_str(&w, "s", "a\"\\\n\x01\x7f");
    jsn_w_str(&w, "none", NULL);
    jsn_w_i64(&w, "i", INT64_MIN);
    jsn_w_arr(&w, "a");
    jsn_w_bool(&w, NULL, true);
    jsn_w_obj(&w, NULL);
    jsn_w_end_obj(&w);
    jsn_w_arr(&w, NULL);
    jsn_w_end_arr(&w);
    jsn_w_null(&w, NULL);
    jsn_w_end_arr(&w);
    jsn_w_time(&w, "t", 0);
    jsn_w_time(&w, "u", 1500000);
    jsn_w_value(&w, "v", v);
    jsn_w_raw(&w, "r", "[1]");
    jsn_w_end_obj(&w);
    assert_string_equal(
        b.data,
        "{\"s\":\"a\\\"\\\\\\n\\u0001\x7f\",\"none\":null,"
        "\"i\":-9223372036854775808,\"a\":[true,{},[],null],\"t\":null,"
        "\"u\":\"1970-01-01T00:00:01.500000000Z\",\"v\":{\"k\":[]},"
        "\"r\":[1]}");
    assert_int_equal(w.depth, 0);
    jsn_free(parse(b.data));
}

static void test_writer_repairs(void **state)
{
    (void) state;
    CLEANUP(buf_fini) struct buf b;
    struct jsn_w w;
    buf_init(&b, 100);
    jsn_w_init(&w, &b);
    jsn_w_strn(&w, NULL, "a\xff\xC3\xA9\0\xE2\x82", 7);
    assert_string_equal(b.data, "\"a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD"
                                "\xEF\xBF\xBD\xEF\xBF\xBD\"");
    jsn_free(parse(b.data));
}

static void test_doubles(void **state)
{
    (void) state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},   {5, "5.0"},   {1e300, "1e+300"}, {-0.0, "-0.0"},
        {0.1 + 0.2, "0.30000000000000004"}, {INFINITY, "null"},
        {NAN, "null"},  {1.0 / 3, "0.3333333333333333"},
    };
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        CLEANUP(buf_fini) struct buf b;
        struct jsn_w w;
        buf_init(&b, 100);
        jsn_w_init(&w, &b);
        jsn_w_f64(&w, NULL, cases[i].v);
        assert_string_equal(b.data, cases[i].text);
        jsn_free(parse(b.data));
    }
}

/* Any prefix, and any single changed byte, is taken or refused but never
 * crashes; what is taken prints and parses again to the same. */
static void test_mutations(void **state)
{
    (void) state;
    static const char seed[] =
        "{\"a\":[1,-2.5e3,\"caf\xC3\xA9\\n\\ud83d\\ude00\",null,true],"
        "\"b\":{\"c\":{}}}";
    char text[sizeof seed];
    size_t n = sizeof seed - 1;
    int taken = 0;
    for (size_t at = 0; at < n; at++) {
        for (int c = 0; c < 256; c++) {
            memcpy(text, seed, sizeof seed);
            text[at] = (char) c;
            CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, NULL);
            if (!j)
                continue;
            CLEANUP(buf_fini) struct buf b;
            buf_init(&b, 1000);
            assert_int_equal(jsn_print(j, false, &b), 0);
            CLEANUP(jsn_cleanup) struct jsn *k = parse(b.data);
            assert_true(jsn_equal(j, k));
            taken++;
        }
    }
    if (taken < 500)
        fail_msg("only %d texts were taken", taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_access_errors),
        cmocka_unit_test(test_null_root),
        cmocka_unit_test(test_iterate),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_writer_repairs),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
