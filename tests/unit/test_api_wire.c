/* SPDX-License-Identifier: Apache-2.0 */

/* Requests and replies of the API port as text. */

#include <stdio.h>

#include "core/arvados/api_wire.h"
#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/io/form.h"
#include "core/port/api.h"
#include "tests/unit/unit.h"

#define A "zzzzz-dz642-aaaaaaaaaaaaaaa"
#define B "zzzzz-dz642-bbbbbbbbbbbbbbb"

/* What the query says under that name, decoded. */
static void expect_param(const struct buf *query, const char *name,
                         const char *want)
{
    CLEANUP(form_cleanup) struct form *f =
        form_parse(query->data, query->len, 20, NULL);

    assert_non_null(f);
    assert_string_equal(form_get(f, name), want);
}

static void lists_ask_as_arvados_does(void **state)
{
    CLEANUP(buf_fini) struct buf q;
    struct api_list_req req = {.which = API_LIST_QUEUED, .limit = 1000};

    (void) state;
    buf_init(&q, 100000);
    wire_list_query(&q, &req, WIRE_WHOLE, false);
    assert_false(q.over);
    expect_param(&q, "filters",
                 "[[\"state\",\"=\",\"Queued\"],[\"priority\",\">\",\"0\"]]");
    expect_param(&q, "order", "[\"priority desc\",\"uuid\"]");
    expect_param(&q, "count", "none");
    expect_param(&q, "limit", "1000");
    expect_param(&q, "select",
                 "[\"uuid\",\"state\",\"priority\",\"locked_by_uuid\","
                 "\"lock_count\",\"created_at\",\"exit_code\","
                 "\"container_image\",\"runtime_constraints\","
                 "\"scheduling_parameters\"]");
    assert_null(strpbrk(q.data, " \"[]<>"));
}

static void pages_continue_by_key(void **state)
{
    CLEANUP(buf_fini) struct buf q;
    struct ctr last = {.uuid = A, .priority = 77};
    struct api_list_req req = {.which = API_LIST_QUEUED, .after = &last};

    (void) state;
    buf_init(&q, 100000);
    wire_list_query(&q, &req, WIRE_TIES, false);
    expect_param(&q, "filters",
                 "[[\"state\",\"=\",\"Queued\"],[\"priority\",\"=\",\"77\"],"
                 "[\"uuid\",\">\",\"" A "\"]]");
    buf_reset(&q);
    wire_list_query(&q, &req, WIRE_LOWER, false);
    expect_param(&q, "filters",
                 "[[\"state\",\"=\",\"Queued\"],[\"priority\",\">\",\"0\"],"
                 "[\"priority\",\"<\",\"77\"]]");
    buf_reset(&q);
    req.which = API_LIST_MINE;
    req.token_uuid = "zzzzz-gj3su-0";
    wire_list_query(&q, &req, WIRE_WHOLE, false);
    expect_param(&q, "filters",
                 "[[\"locked_by_uuid\",\"=\",\"zzzzz-gj3su-0\"],"
                 "[\"uuid\",\">\",\"" A "\"]]");
    expect_param(&q, "order", "[\"uuid\"]");
}

static void uuids_and_attempts(void **state)
{
    CLEANUP(buf_fini) struct buf q;
    const char *uuids[] = {A, B};
    struct api_list_req req = {.which = API_LIST_UUIDS, .uuids = uuids,
                               .n_uuids = 2, .limit = 100};

    (void) state;
    buf_init(&q, 100000);
    wire_list_query(&q, &req, WIRE_WHOLE, true);
    expect_param(&q, "filters",
                 "[[\"uuid\",\"in\",[\"" A "\",\"" B "\"]]]");
    assert_non_null(strstr(q.data, "%22attempt%22"));
    assert_null(strstr(q.data, "mounts"));
    buf_reset(&q);
    wire_get_query(&q, false);
    assert_null(strstr(q.data, "%22attempt%22"));
    assert_non_null(strstr(q.data, "%22mounts%22"));
}

static void updates_carry_what_is_set(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    struct api_update_req req = {.uuid = A, .set_cancelled = true,
                                 .error = "no \"type\" fits",
                                 .no_retry = true};

    (void) state;
    buf_init(&b, 100000);
    wire_update_body(&b, &req, false);
    assert_non_null(strstr(b.data,
        "{\"container\":{\"state\":\"Cancelled\",\"runtime_status\":{"
        "\"error\":\"no \\\"type\\\" fits\",\"noRetry\":true}},\"select\":["));
    buf_reset(&b);
    req = (struct api_update_req) {.uuid = A, .set_cancelled = true};
    wire_update_body(&b, &req, false);
    assert_non_null(strstr(b.data, "{\"container\":{\"state\":\"Cancelled\"},"
                           "\"select\":["));
    buf_reset(&b);
    wire_feed_query(&b, "e 1", 17, 1500);
    assert_string_equal(b.data, "epoch=e%201&since=17&wait=2");
}

#define PARSE(fn, text, ret, err) fn(text, strlen(text), ret, err)

static void discovery_tells_the_features(void **state)
{
    struct wire_discovery d = {.attempts = true};
    struct err err;

    (void) state;
    assert_ok(PARSE(wire_parse_discovery, "{\"basePath\":\"/arvados/v1/\"}",
                    &d, &err), &err);
    assert_false(d.attempts);
    assert_string_equal(d.feed_path, "");
    assert_ok(PARSE(wire_parse_discovery, "{\"basePath\":\"/\",\"cdc\":{"
                    "\"attempts\":true,\"feed\":\"http://evil:1/a/feed\"}}",
                    &d, &err), &err);
    assert_true(d.attempts);
    assert_string_equal(d.feed_path, "/a/feed");
    assert_ok(PARSE(wire_parse_discovery, "{\"basePath\":\"/\",\"cdc\":{"
                    "\"feed\":\"nonsense\"}}", &d, &err), &err);
    assert_string_equal(d.feed_path, "");
    assert_err(PARSE(wire_parse_discovery, "{}", &d, &err), &err,
               ERR_INVALID);
    assert_err(PARSE(wire_parse_discovery, "{\"basePath\":\"/\",\"cdc\":{"
                     "\"attempts\":\"yes\"}}", &d, &err), &err, ERR_INVALID);
    assert_err(PARSE(wire_parse_discovery, "<html>", &d, &err), &err,
               ERR_INVALID);
}

static void whoami_wants_a_uuid(void **state)
{
    char uuid[CTR_UUID_SIZE];
    struct err err;

    (void) state;
    assert_ok(PARSE(wire_parse_whoami, "{\"uuid\":\"zzzzz-gj3su-"
                    "000000000000000\"}", uuid, &err), &err);
    assert_string_equal(uuid, "zzzzz-gj3su-000000000000000");
    assert_err(PARSE(wire_parse_whoami, "{\"uuid\":\"x\"}", uuid, &err),
               &err, ERR_INVALID);
    assert_err(PARSE(wire_parse_whoami, "{}", uuid, &err), &err, ERR_INVALID);
}

/* One record that cannot be decoded does not hide the others. */
static void lists_survive_bad_items(void **state)
{
    wire_ctrs v = {0};
    struct err err;

    (void) state;
    assert_ok(PARSE(wire_parse_list, "{\"items\":[{\"uuid\":\"" A "\"},"
                    "{\"uuid\":\"x\"},7,{\"uuid\":\"" B "\",\"priority\":"
                    "\"x\"}]}", &v, &err), &err);
    assert_int_equal(v.n, 2);
    assert_string_equal(v.v[0].invalid, "");
    assert_non_null(strstr(v.v[1].invalid, "priority"));
    VEC_CLEAR(&v);
    assert_ok(PARSE(wire_parse_list, "{\"items\":[{\"uuid\":\"" A "\","
                    "\"state\":\"Queued\",\"runtime_constraints\":{\"vcpus\":"
                    "123456789012345678901234567890}},{\"uuid\":\"" B "\","
                    "\"state\":\"Locked\"}]}", &v, &err), &err);
    assert_int_equal(v.n, 2);
    assert_non_null(strstr(v.v[0].invalid, "cannot be decoded"));
    assert_string_equal(v.v[1].invalid, "");
    assert_int_equal(v.v[1].state, CTR_LOCKED);
    VEC_CLEAR(&v);
    assert_err(PARSE(wire_parse_list, "{\"items\":[", &v, &err), &err,
               ERR_INVALID);
    assert_err(PARSE(wire_parse_list, "{\"items\":{}}", &v, &err), &err,
               ERR_INVALID);
    assert_err(PARSE(wire_parse_list, "{}", &v, &err), &err, ERR_INVALID);
    assert_ok(PARSE(wire_parse_list, "{\"items\":[]}", &v, &err), &err);
    assert_int_equal(v.n, 0);
    VEC_FINI(&v);
}

static void attempts_and_feeds(void **state)
{
    struct wire_attempt a;
    struct wire_feed f;
    struct err err;
    char text[400];

    (void) state;
    assert_ok(PARSE(wire_parse_attempt, "{\"uuid\":\"" A "\",\"attempt\":2,"
                    "\"api_token\":\"v2/x/y\"}", &a, &err), &err);
    assert_int_equal(a.attempt, 2);
    assert_string_equal(a.token, "v2/x/y");
    assert_err(PARSE(wire_parse_attempt, "{\"attempt\":0,\"api_token\":"
                     "\"t\"}", &a, &err), &err, ERR_INVALID);
    snprintf(text, sizeof text, "{\"attempt\":1,\"api_token\":\"%0200d\"}",
             7);
    assert_err(PARSE(wire_parse_attempt, text, &a, &err), &err, ERR_INVALID);

    assert_ok(PARSE(wire_parse_feed, "{\"epoch\":\"e\",\"cursor\":5,"
                    "\"more\":true,\"resync\":false,\"items\":[{\"kind\":"
                    "\"arvados#container\",\"uuid\":\"" A "\"},{\"kind\":"
                    "\"arvados#node\",\"uuid\":\"" B "\"},{\"kind\":"
                    "\"arvados#container\",\"uuid\":\"x\"}]}", &f, &err),
              &err);
    assert_string_equal(f.epoch, "e");
    assert_int_equal(f.cursor, 5);
    assert_true(f.more);
    assert_false(f.resync);
    assert_int_equal(f.uuids.n, 1);
    assert_string_equal(f.uuids.v[0], A);
    wire_feed_fini(&f);
    assert_err(PARSE(wire_parse_feed, "{\"epoch\":\"e\",\"cursor\":5,"
                     "\"items\":[{\"kind\":\"arvados#container\",\"uuid\":\""
                     A "\"},{}]}", &f, &err), &err, ERR_INVALID);
}

static void errors_become_one_line(void **state)
{
    static const char page[] = "<html>\n<b>502</b>\r\n";
    static const char two[] = "{\"errors\":[\"a\\nb\",\"c\"],\"x\":1}";
    char out[40];

    (void) state;
    wire_error_text(two, strlen(two), out, sizeof out);
    assert_string_equal(out, "a b; c");
    wire_error_text(page, strlen(page), out, sizeof out);
    assert_string_equal(out, "<html> <b>502</b>  ");
    wire_error_text("", 0, out, sizeof out);
    assert_string_equal(out, "");
    wire_error_text(two, strlen(two), out, 4);
    assert_string_equal(out, "a b");
}

static void statuses_are_classed(void **state)
{
    static const struct {
        int status, class;
        bool refused;
    } cases[] = {
        {401, ERR_AUTH, true}, {403, ERR_AUTH, true},
        {404, ERR_NOT_FOUND, true}, {422, ERR_CONFLICT, true},
        {429, ERR_RATE_LIMITED, true}, {503, ERR_RATE_LIMITED, true},
        {400, ERR_INVALID, true}, {405, ERR_UNSUPPORTED, true},
        {413, ERR_TOO_LARGE, true}, {302, ERR_CONFIG, true},
        {500, ERR_TRANSIENT, false}, {502, ERR_TRANSIENT, false},
        {504, ERR_TRANSIENT, false},
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        bool refused = !cases[i].refused;

        assert_int_equal(wire_status_class(cases[i].status, &refused),
                         cases[i].class);
        assert_int_equal(refused, cases[i].refused);
    }
    assert_int_equal(wire_retry_ms("7"), 7000);
    assert_int_equal(wire_retry_ms("999999999"), 3600000);
    assert_int_equal(wire_retry_ms("Mon, 01 Jan 2026 00:00:00 GMT"), 0);
    assert_int_equal(wire_retry_ms("-3"), 0);
    assert_int_equal(wire_retry_ms(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_ask_as_arvados_does),
        cmocka_unit_test(pages_continue_by_key),
        cmocka_unit_test(uuids_and_attempts),
        cmocka_unit_test(updates_carry_what_is_set),
        cmocka_unit_test(discovery_tells_the_features),
        cmocka_unit_test(whoami_wants_a_uuid),
        cmocka_unit_test(lists_survive_bad_items),
        cmocka_unit_test(attempts_and_feeds),
        cmocka_unit_test(errors_become_one_line),
        cmocka_unit_test(statuses_are_classed),
    };

    return cmocka_run_group_tests_name("api_wire", tests, NULL, NULL);
}
