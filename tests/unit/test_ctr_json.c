/* SPDX-License-Identifier: Apache-2.0 */

/* Container records from JSON: every field, every way to be wrong. */

#include <stdio.h>

#include "core/arvados/ctr_json.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/model/ctr.h"
#include "tests/unit/unit.h"

#define UUID "zzzzz-dz642-0123456789abcde"

static int parse(const char *text, struct ctr *c, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), err);

    return j ? ctr_parse(j, c, err) : -1;
}

/* A record with these further members. */
static struct ctr good(const char *members)
{
    struct ctr c;
    struct err err;
    CLEANUP(mem_free) char *text = mem_printf("{\"uuid\":\"%s\"%s%s}", UUID,
                                              *members ? "," : "", members);

    assert_ok(parse(text, &c, &err), &err);
    return c;
}

static void every_field_is_read(void **state)
{
    struct ctr c = good(
        "\"state\":\"Locked\",\"priority\":562948345341,"
        "\"locked_by_uuid\":\"zzzzz-gj3su-000000000000000\","
        "\"lock_count\":2,\"created_at\":\"2026-01-02T03:04:05.5Z\","
        "\"attempt\":3,\"exit_code\":137,\"container_image\":\"host\","
        "\"runtime_constraints\":{\"vcpus\":4,\"ram\":8589934592,"
        "\"keep_cache_ram\":1,\"keep_cache_disk\":2,\"API\":true,"
        "\"gpu\":{\"stack\":\"rocm\",\"driver_version\":\"6.2\","
        "\"hardware_target\":[\"gfx90a\",\"gfx942\"],\"device_count\":2,"
        "\"vram\":17179869184}},"
        "\"scheduling_parameters\":{\"preemptible\":true,"
        "\"supervisor\":true,\"max_run_time\":3600,\"partitions\":[]},"
        "\"mounts\":{\"/tmp\":{\"kind\":\"tmp\",\"capacity\":5},"
        "\"/a\":{\"kind\":\"tmp\",\"capacity\":7,\"device_type\":\"ssd\"},"
        "\"stdin\":{\"kind\":\"json\",\"content\":{\"capacity\":9}}}");

    (void) state;
    assert_string_equal(c.invalid, "");
    assert_string_equal(c.uuid, UUID);
    assert_int_equal(c.state, CTR_LOCKED);
    assert_true(c.priority == 562948345341);
    assert_string_equal(c.locked_by, "zzzzz-gj3su-000000000000000");
    assert_int_equal(c.lock_count, 2);
    assert_true(c.created_us == 1767323045500000);
    assert_int_equal(c.attempt, 3);
    assert_true(c.has_exit_code);
    assert_int_equal(c.exit_code, 137);
    assert_string_equal(c.image, "host");
    assert_int_equal(c.vcpus, 4);
    assert_true(c.ram == 8589934592);
    assert_int_equal(c.keep_cache_ram, 1);
    assert_int_equal(c.keep_cache_disk, 2);
    assert_true(c.api && c.preemptible && c.supervisor);
    assert_int_equal(c.max_run_time_s, 3600);
    assert_string_equal(c.gpu_stack, "rocm");
    assert_string_equal(c.gpu_driver, "6.2");
    assert_int_equal(c.gpu_count, 2);
    assert_true(c.gpu_vram == 17179869184);
    assert_int_equal(c.gpu_target_count, 2);
    assert_string_equal(c.gpu_targets[1], "gfx942");
    assert_true(c.mounts_known);
    assert_int_equal(c.tmp_capacity, 12);
}

static void absent_and_null_fields_are_zero(void **state)
{
    struct ctr c = good("");

    (void) state;
    assert_string_equal(c.invalid, "");
    assert_int_equal(c.state, CTR_QUEUED);
    assert_false(c.mounts_known);
    assert_false(c.has_exit_code);
    c = good("\"exit_code\":null,\"locked_by_uuid\":null,\"priority\":null,"
             "\"runtime_constraints\":null,\"scheduling_parameters\":null,"
             "\"created_at\":null,\"mounts\":{}");
    assert_string_equal(c.invalid, "");
    assert_true(c.mounts_known);
    assert_false(c.has_exit_code);
    assert_int_equal(c.tmp_capacity, 0);
}

static void the_older_gpu_form_is_understood(void **state)
{
    struct ctr c = good(
        "\"runtime_constraints\":{\"vcpus\":1,\"gpu\":{\"stack\":\"\","
        "\"device_count\":0,\"hardware_target\":null},\"cuda\":{"
        "\"device_count\":1,\"driver_version\":\"11.0\","
        "\"hardware_capability\":\"9.0\"}}");

    (void) state;
    assert_string_equal(c.invalid, "");
    assert_string_equal(c.gpu_stack, "cuda");
    assert_int_equal(c.gpu_count, 1);
    assert_string_equal(c.gpu_driver, "11.0");
    assert_int_equal(c.gpu_target_count, 1);
    assert_string_equal(c.gpu_targets[0], "9.0");
}

static void what_cannot_be_held_is_told(void **state)
{
    static const struct {
        const char *members, *text;
    } cases[] = {
        {"\"state\":\"Paused\"", "state is unknown: Paused"},
        {"\"state\":7", "state is unknown: not a string"},
        {"\"priority\":1.5", "priority is not an integer"},
        {"\"priority\":-1", "priority is out of range"},
        {"\"locked_by_uuid\":\"0123456789012345678901234567\"", "too long"},
        {"\"lock_count\":2147483648", "lock_count is out of range"},
        {"\"created_at\":\"yesterday\"", "created_at is not a time"},
        {"\"exit_code\":\"x\"", "exit_code is not an integer"},
        {"\"container_image\":[]", "container_image is not a string"},
        {"\"runtime_constraints\":[]", "runtime_constraints is not an object"},
        {"\"runtime_constraints\":{\"vcpus\":[1,2]}",
         "runtime_constraints.vcpus is not an integer"},
        {"\"runtime_constraints\":{\"vcpus\":-4}",
         "runtime_constraints.vcpus is out of range"},
        {"\"runtime_constraints\":{\"ram\":1e30}",
         "runtime_constraints.ram is not an integer"},
        {"\"runtime_constraints\":{\"API\":1}",
         "runtime_constraints.API is not true or false"},
        {"\"runtime_constraints\":{\"gpu\":3}", "gpu is not an object"},
        {"\"runtime_constraints\":{\"gpu\":{\"device_count\":1,\"stack\":"
         "\"extraordinary\"}}", "runtime_constraints.gpu.stack is too long"},
        {"\"runtime_constraints\":{\"gpu\":{\"device_count\":1,"
         "\"hardware_target\":[1,2,3,4,5,6,7,8,9]}}", "more than 8 elements"},
        {"\"runtime_constraints\":{\"gpu\":{\"device_count\":1,"
         "\"hardware_target\":[1]}}", "malformed element"},
        {"\"runtime_constraints\":{\"gpu\":{\"device_count\":1,"
         "\"hardware_target\":{}}}", "is not an array"},
        {"\"scheduling_parameters\":{\"max_run_time\":\"1h\"}",
         "scheduling_parameters.max_run_time is not an integer"},
        {"\"mounts\":{\"/a\":1}", "mounts: /a is malformed"},
        {"\"mounts\":{\"/a\":{\"kind\":\"tmp\",\"capacity\":-1}}",
         "mounts: capacity is out of range"},
        {"\"mounts\":{\"/a\":{\"kind\":\"tmp\",\"capacity\":"
         "9223372036854775807},\"/b\":{\"kind\":\"tmp\",\"capacity\":1}}",
         "the sum of capacities is out of range"},
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        struct ctr c = good(cases[i].members);

        if (!strstr(c.invalid, cases[i].text))
            fail_msg("%s: '%s'", cases[i].members, c.invalid);
    }
}

static void the_first_complaint_stays_and_the_rest_is_read(void **state)
{
    struct ctr c = good("\"state\":\"Running\",\"priority\":\"high\","
                        "\"lock_count\":\"x\",\"runtime_constraints\":{"
                        "\"vcpus\":2}");

    (void) state;
    assert_string_equal(c.invalid, "priority is not an integer");
    assert_int_equal(c.state, CTR_RUNNING);
    assert_int_equal(c.vcpus, 2);
}

static void without_a_uuid_there_is_no_container(void **state)
{
    struct ctr c;
    struct err err;

    (void) state;
    assert_err(parse("[]", &c, &err), &err, ERR_INVALID);
    assert_err(parse("{}", &c, &err), &err, ERR_INVALID);
    assert_err(parse("{\"uuid\":1}", &c, &err), &err, ERR_INVALID);
    assert_err(parse("{\"uuid\":\"zzzzz-gj3su-0123456789abcde\"}", &c, &err),
               &err, ERR_INVALID);
}

/* --- salvage -------------------------------------------------------------*/

static int salvage(const char *text, struct ctr *c)
{
    return ctr_salvage(text, strlen(text), "because", c);
}

static void an_outline_is_salvaged(void **state)
{
    struct ctr c;

    (void) state;
    assert_int_equal(salvage(
        " { \"priority\" : 12 ,\"x\\\"\": [ {\"uuid\":\"no\"}, \"]}\" ],"
        "\"uuid\":\"" UUID "\",\"state\":\"Locked\",\"n\":1e999999,"
        "\"locked_by_uuid\":\"zzzzz-gj3su-0123456789abcde\","
        "\"runtime_constraints\":{\"state\":\"Queued\",\"vcpus\":"
        "100000000000000000000000000000}} ", &c), 0);
    assert_string_equal(c.uuid, UUID);
    assert_int_equal(c.state, CTR_LOCKED);
    assert_int_equal(c.priority, 12);
    assert_string_equal(c.locked_by, "zzzzz-gj3su-0123456789abcde");
    assert_non_null(strstr(c.invalid, "because"));
}

static void what_is_beyond_that_is_refused(void **state)
{
    static const char *const cases[] = {
        "", "{", "{}", "[]", "x", "\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":}",
        "{\"uuid\":\"" UUID "\"}", /* no state */
        "{\"state\":\"Locked\"}",
        "{\"state\":\"Locked\",\"uuid\":\"nonsense\"}",
        "{\"state\":\"Lo\\u0063ked\",\"uuid\":\"" UUID "\"}",
        "{\"state\":\"Locked\",\"uuid\":\"" UUID "\"",
        "{\"state\":\"Locked\",\"uuid\":\"" UUID "\",}",
        "{\"state\":\"Locked\",\"uuid\":\"" UUID "\",\"a\":[[}",
        "{\"state\":\"Locked\",\"uuid\":\"" UUID "\",\"a\":\"\\",
    };
    struct ctr c;

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(cases); i++)
        if (salvage(cases[i], &c) == 0)
            fail_msg("salvaged from %s", cases[i]);
}

static void count_item(void *arg, const char *text, size_t n)
{
    char *all = arg;

    snprintf(all + strlen(all), 100, "<%.*s>", (int) n, text);
}

static void an_array_is_cut_into_items(void **state)
{
    static const char list[] = "{\"a\":{\"items\":[9]},\"items\": [ {\"x\":"
                               "\"}],\"}, 2 ,[3,4]],\"z\":0}";
    char all[400] = "";

    (void) state;
    assert_int_equal(ctr_split(list, strlen(list), "items", count_item, all),
                     0);
    assert_string_equal(all, "<{\"x\":\"}],\"}><2 ><[3,4]>");
    all[0] = '\0';
    assert_int_equal(ctr_split("{\"items\":[]}", 12, "items", count_item,
                               all), 0);
    assert_string_equal(all, "");
    assert_int_equal(ctr_split("{\"items\":1}", 11, "items", count_item, all),
                     -1);
    assert_int_equal(ctr_split("{\"other\":[]}", 12, "items", count_item,
                               all), -1);
    assert_int_equal(ctr_split("{\"items\":[1,", 12, "items", count_item,
                               all), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_read),
        cmocka_unit_test(absent_and_null_fields_are_zero),
        cmocka_unit_test(the_older_gpu_form_is_understood),
        cmocka_unit_test(what_cannot_be_held_is_told),
        cmocka_unit_test(the_first_complaint_stays_and_the_rest_is_read),
        cmocka_unit_test(without_a_uuid_there_is_no_container),
        cmocka_unit_test(an_outline_is_salvaged),
        cmocka_unit_test(what_is_beyond_that_is_refused),
        cmocka_unit_test(an_array_is_cut_into_items),
    };

    return cmocka_run_group_tests_name("ctr_json", tests, NULL, NULL);
}
