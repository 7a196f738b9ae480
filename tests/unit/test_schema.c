/* SPDX-License-Identifier: Apache-2.0 */

/*
 * DriverParameters against schemas: every type, unknown, missing, null, and
 * schemas that are malformed themselves.
 */

#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/plugin/schema.h"

static const char schema[] =
    "Name\tstr\trequired\tits name\n"
    "Count\tint\t1\thow many\n"
    "Rate\tnum\t0.5\thow fast\n"
    "\n"
    "Flag\tbool\tfalse\t\n"
    "Hosts\tlist\t[]\n"
    "Map\tmap\t\twith an empty default\n";

static int check(const char *s, const char *params, struct err *err)
{
    struct jsn *j = jsn_parse(params, strlen(params), NULL);
    int rc;

    assert_non_null(j);
    rc = schema_check(s, j, err);
    jsn_free(j);
    return rc;
}

static void test_good(void **state)
{
    static const char *const good[] = {
        "{\"Name\":\"x\"}",
        "{\"Name\":\"x\",\"Count\":-3,\"Rate\":2,\"Flag\":true}",
        "{\"Name\":\"x\",\"Rate\":2.5,\"Hosts\":[1],\"Map\":{\"a\":1}}",
        "{\"Name\":\"x\",\"Count\":null}",
    };
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < MEM_COUNT(good); i++)
        assert_ok(check(schema, good[i], &err), &err);
    assert_ok(check(NULL, "{\"Anything\":1}", &err), &err);
    assert_ok(schema_check("A\tint\t1\t", NULL, &err), &err);
}

static void test_bad(void **state)
{
    static const struct {
        const char *schema, *params, *why;
    } bad[] = {
        {schema, "{}", "setting 'Name' is missing"},
        {schema, "{\"Name\":null}", "setting 'Name' is missing"},
        {schema, "{\"Name\":1}", "'Name' in DriverParameters must be of type "
                                 "str"},
        {schema, "{\"Name\":\"x\",\"Count\":1.5}", "must be of type int"},
        {schema, "{\"Name\":\"x\",\"Rate\":\"1\"}", "must be of type num"},
        {schema, "{\"Name\":\"x\",\"Flag\":0}", "must be of type bool"},
        {schema, "{\"Name\":\"x\",\"Hosts\":{}}", "must be of type list"},
        {schema, "{\"Name\":\"x\",\"Map\":[]}", "must be of type map"},
        {schema, "{\"Name\":\"x\",\"name\":1}", "unknown setting 'name' in "
         "DriverParameters; known: Name, Count, Rate, Flag, Hosts, Map"},
        {"", "{\"A\":1}", "known: none"},
        {schema, "[1]", "is not a map"},
        {NULL, "3", "is not a map"},
        {"A\tstring\t\t\n", "{}", "line 1 of the driver's schema"},
        {"A\tstr\t\t\nB", "{}", "line 2 of the driver's schema"},
        {"\tstr\t\t", "{}", "line 1 of the driver's schema"},
    };

    (void)state;
    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        struct err err = {0};

        assert_err(check(bad[i].schema, bad[i].params, &err), &err,
                   ERR_CONFIG);
        if (!strstr(err.text, bad[i].why))
            fail_msg("'%s' is not in '%s'", bad[i].why, err.text);
    }
}

static void test_long(void **state)
{
    char text[80 * 16] = "";
    struct err err = {0};

    (void)state;
    for (int i = 0; i < 65; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "K%d\tint\t\t\n", i);
    assert_err(check(text, "{}", &err), &err, ERR_CONFIG);
    assert_non_null(strstr(err.text, "more than 64 lines"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
