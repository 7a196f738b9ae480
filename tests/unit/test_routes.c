/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Routing, the discovery document against the routes, parameters, rates,
 * scopes: what a request meets before its handler.
 */

#include <stdio.h>

#include "core/apiserver/app.h"
#include "core/apiserver/call.h"
#include "core/apiserver/discovery.h"
#include "core/apiserver/limit.h"
#include "core/apiserver/routes.h"
#include "core/base/mem.h"
#include "tests/unit/unit.h"

static void paths_find_routes(void **state)
{
    const struct route *r;
    const char *rest;
    char id[32];
    bool other;

    (void) state;
    r = routes_find("GET", "containers", id, sizeof id, &rest, &other);
    assert_non_null(r);
    assert_string_equal(id, "");
    r = routes_find("HEAD", "containers/current", id, sizeof id, &rest,
                    &other);
    assert_non_null(r);
    assert_string_equal(r->path, "containers/current");
    r = routes_find("PATCH", "containers/abc", id, sizeof id, &rest, &other);
    assert_non_null(r);
    assert_string_equal(r->method, "PUT");
    assert_string_equal(id, "abc");
    r = routes_find("PUT", "containers/abc/output/a/b c", id, sizeof id,
                    &rest, &other);
    assert_non_null(r);
    assert_string_equal(rest, "a/b c");
    assert_null(routes_find("POST", "containers/abc", id, sizeof id, &rest,
                            &other));
    assert_true(other);
    assert_null(routes_find("GET", "containers/abc/nonsense", id, sizeof id,
                            &rest, &other));
    assert_false(other);
    assert_null(routes_find("PUT", "containers/abc/output/", id, sizeof id,
                            &rest, &other));
    assert_null(routes_find("GET", "containers/"
                            "0123456789012345678901234567890123456789", id,
                            sizeof id, &rest, &other));
    assert_null(routes_find("GET", "", id, sizeof id, &rest, &other));
}

static void runners_reach_few_routes(void **state)
{
    const struct route *r;
    int n = 0;

    (void) state;
    for (size_t i = 0; (r = routes_at(i)); i++)
        n += (r->allow & WHO_ATTEMPT) != 0;
    /* current, get, update, auth, secret_mounts, log, output; current token,
     * current user */
    assert_int_equal(n, 9);
}

/* Every method of the document leads to a route, with its own verb. */
static void check_method(const struct jsn *m)
{
    const char *http, *path, *rest, *id;
    char real[128], got[32];
    const char *brace;
    bool other;

    assert_int_equal(jsn_str(m, "httpMethod", &http, NULL), 0);
    assert_int_equal(jsn_str(m, "path", &path, NULL), 0);
    assert_int_equal(jsn_str(m, "id", &id, NULL), 0);
    assert_non_null(jsn_get(m, "response"));
    brace = strstr(path, "{uuid}");
    if (brace)
        snprintf(real, sizeof real, "%.*sxyz%s", (int) (brace - path), path,
                 brace + 6);
    else
        snprintf(real, sizeof real, "%s", path);
    if (!routes_find(http, real, got, sizeof got, &rest, &other))
        fail_msg("%s: no route %s %s", id, http, path);
    assert_string_equal(got, brace ? "xyz" : "");
}

static void the_document_names_what_is_served(void **state)
{
    struct app_cfg cfg = {.cluster_id = "zzzzz", .max_items = 1000,
                          .max_body = 1 << 20};
    char *text = discovery_make(&cfg, "http://127.0.0.1:1");
    struct jsn *j = jsn_parse(text, strlen(text), NULL);
    struct jsn_iter res = {0}, method = {0};
    const char *s;

    (void) state;
    assert_non_null(j);
    assert_int_equal(jsn_str(j, "rootUrl", &s, NULL), 0);
    assert_string_equal(s, "http://127.0.0.1:1/");
    assert_int_equal(jsn_str(j, "basePath", &s, NULL), 0);
    assert_int_equal(jsn_str(jsn_get(j, "cdc"), "feed", &s, NULL), 0);
    assert_string_equal(s, "http://127.0.0.1:1/arvados/v1/feed");
    while (jsn_next(jsn_get(j, "resources"), &res)) {
        method = (struct jsn_iter){0};
        while (jsn_next(jsn_get(res.value, "methods"), &method))
            check_method(method.value);
    }
    /* Nothing private. */
    assert_null(strstr(text, "secret_hash"));
    assert_null(strstr(text, "attempt_uuid"));
    jsn_free(j);
    free(text);
}

/* ---------------------------------------------------------- parameters -- */

static void parameters_from_everywhere(void **state)
{
    static const char form[] = "application/x-www-form-urlencoded";
    struct params p = {0};
    const struct jsn *j;
    struct err err = {0};
    int64_t n = 7;
    bool bad, flag = false;

    (void) state;
    assert_ok(params_read(&p, "limit=5&filters=%5B%5D&distinct=1", form,
                          "limit=6&offset=9&container=%7B%22a%22%3A1%7D", 44,
                          &bad, &err), &err);
    assert_ok(params_i64(&p, "limit", &n, &err), &err);
    assert_int_equal(n, 5); /* the query wins */
    assert_ok(params_i64(&p, "offset", &n, &err), &err);
    assert_int_equal(n, 9);
    assert_ok(params_bool(&p, "distinct", &flag, &err), &err);
    assert_true(flag);
    assert_ok(params_json(&p, "filters", &j, &err), &err);
    assert_int_equal(jsn_type(j), JSN_ARRAY);
    assert_ok(params_attrs(&p, "container", &j, &err), &err);
    assert_int_equal(jsn_count(j), 1);
    params_fini(&p);

    assert_ok(params_read(&p, "", "application/json",
                          "{\"limit\":3,\"order\":\"[]\",\"x\":1}", 30, &bad,
                          &err), &err);
    assert_ok(params_i64(&p, "limit", &n, &err), &err);
    assert_int_equal(n, 3);
    assert_ok(params_json(&p, "order", &j, &err), &err); /* JSON in a text */
    assert_int_equal(jsn_type(j), JSN_ARRAY);
    assert_ok(params_attrs(&p, "container", &j, &err), &err); /* flat */
    assert_int_equal(jsn_count(j), 3);
    params_fini(&p);
}

static void wrong_parameters(void **state)
{
    struct params p = {0};
    const struct jsn *j;
    struct err err = {0};
    int64_t n = 7;
    bool bad, flag;

    (void) state;
    assert_err(params_read(&p, "", NULL, "{\"a\":1,}", 8, &bad, &err), &err,
               ERR_INVALID);
    assert_true(bad);
    params_fini(&p);
    assert_err(params_read(&p, "a=%zz", NULL, "", 0, &bad, &err), &err,
               ERR_INVALID);
    assert_false(bad);
    params_fini(&p);
    assert_ok(params_read(&p, "limit=-1&offset=1x&f=%5B&b=maybe", NULL, "", 0,
                          &bad, &err), &err);
    assert_err(params_i64(&p, "limit", &n, &err), &err, ERR_INVALID);
    assert_err(params_i64(&p, "offset", &n, &err), &err, ERR_INVALID);
    assert_int_equal(n, 7);
    assert_err(params_json(&p, "f", &j, &err), &err, ERR_INVALID);
    assert_err(params_bool(&p, "b", &flag, &err), &err, ERR_INVALID);
    params_fini(&p);
}

/* --------------------------------------------------------------- rates -- */

static void a_token_has_so_many_requests(void **state)
{
    struct limit *l = limit_create(10);
    int passed = 0;

    (void) state;
    for (int i = 0; i < 50; i++)
        passed += limit_pass(l, "Bearer a", "p", 1000);
    assert_int_equal(passed, 20); /* two seconds' worth at once */
    assert_true(limit_pass(l, "Bearer b", "p", 1000));
    assert_false(limit_pass(l, "Bearer a", "p", 1000 + 99000));
    assert_true(limit_pass(l, "Bearer a", "p", 1000 + 101000));
    limit_note_at(l, "Bearer a", "p", 200, true, 1000);
    for (int i = 0; i < 50; i++)
        assert_true(limit_pass(l, "Bearer a", "p", 1000)); /* an admin */
    limit_destroy(l);
}

static void an_address_has_so_many_failures(void **state)
{
    struct limit *l = limit_create(0);
    int n = 0;

    (void) state;
    for (; n < 1000 && limit_pass(l, "Bearer x", "1.2.3.4", 5); n++)
        limit_note_at(l, "Bearer x", "1.2.3.4", 401, false, 5);
    assert_int_equal(n, 40);
    assert_false(limit_pass(l, "Bearer good", "1.2.3.4", 5));
    assert_true(limit_pass(l, "Bearer good", "1.2.3.5", 5));
    assert_true(limit_pass(l, "Bearer good", "1.2.3.4", 5 + 100000));
    limit_destroy(l);
}

/* -------------------------------------------------------------- scopes -- */

static void scopes(void **state)
{
    static const struct {
        const char *scopes, *method, *path;
        bool allowed;
    } cases[] = {
        {"[\"all\"]", "PUT", "/x", true},
        {"[]", "GET", "/x", false},
        {"[]", "GET", "/arvados/v1/api_client_authorizations/current", true},
        {"[\"GET /x\"]", "GET", "/x", true},
        {"[\"GET /x\"]", "HEAD", "/x", true},
        {"[\"GET /x\"]", "GET", "/x/y", false},
        {"[\"GET /x/\"]", "GET", "/x/y", true},
        {"[\"GET /x/\"]", "GET", "/x", false},
        {"[\"PUT /x\"]", "PATCH", "/x", false},
        {"[\"GET /a\",\"POST /b\"]", "POST", "/b", true},
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        struct who w = {.scopes = mem_strdup(cases[i].scopes)};
        if (who_allows(&w, cases[i].method, cases[i].path) !=
            cases[i].allowed)
            fail_msg("%s %s under %s", cases[i].method, cases[i].path,
                     cases[i].scopes);
        who_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_find_routes),
        cmocka_unit_test(runners_reach_few_routes),
        cmocka_unit_test(the_document_names_what_is_served),
        cmocka_unit_test(parameters_from_everywhere),
        cmocka_unit_test(wrong_parameters),
        cmocka_unit_test(a_token_has_so_many_requests),
        cmocka_unit_test(an_address_has_so_many_failures),
        cmocka_unit_test(scopes),
    };

    return cmocka_run_group_tests_name("routes", tests, NULL, NULL);
}
