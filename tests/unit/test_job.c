/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the API record to a job: what is understood, what is refused and how.
 */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/base/mem.h"
#include "core/runner/env.h"
#include "core/runner/job.h"
#include "core/runner/settings.h"

#define UUID "zzzzz-dz642-0123456789abcde"

static struct err err;

/* A record with the given members after the necessary ones. */
static int parse(struct job *j, const char *mounts, const char *more)
{
    CLEANUP(mem_free) char *text = mem_printf(
        "{\"uuid\":\"" UUID "\",\"state\":\"Locked\",\"attempt\":4,"
        "\"command\":[\"sh\",\"-c\",\"\"],\"container_image\":\"host\","
        "\"output_path\":\"/out\",\"mounts\":{\"/out\":{\"kind\":\"tmp\","
        "\"capacity\":5}%s%s}%s%s}",
        *mounts ? "," : "", mounts, *more ? "," : "", more);

    memset(j, 0, sizeof *j);
    return job_parse(text, strlen(text), j, &err);
}

static void whole_record(void **state)
{
    struct job j;

    (void) state;
    assert_ok(parse(&j, "\"stdout\":{\"kind\":\"file\",\"path\":\"/out/a/o\"},"
                        "\"stdin\":{\"kind\":\"json\",\"content\":[1,null]},"
                        "\"/out/in.txt\":{\"kind\":\"text\","
                        "\"content\":\"hi\",\"exclude_from_output\":true}",
                    "\"cwd\":\"/out\",\"environment\":{\"B\":\"1=2\","
                    "\"A\":\"\"},\"runtime_constraints\":{\"vcpus\":2,"
                    "\"ram\":1000,\"API\":true,\"keep_cache_ram\":0,"
                    "\"cuda\":{\"device_count\":0}},"
                    "\"scheduling_parameters\":{\"max_run_time\":9},"
                    "\"output_glob\":[\"*.txt\"],\"future\":{\"x\":1}"),
              &err);
    assert_string_equal(j.uuid, UUID);
    assert_int_equal(j.attempt, 4);
    assert_string_equal(j.argv[0], "sh");
    assert_string_equal(j.argv[2], "");
    assert_null(j.argv[3]);
    assert_string_equal(j.env[0], "B=1=2");
    assert_string_equal(j.env[1], "A=");
    assert_int_equal(j.n_env, 2);
    assert_string_equal(j.cwd, "/out");
    assert_int_equal(j.vcpus, 2);
    assert_int_equal(j.ram, 1000);
    assert_true(j.api);
    assert_int_equal(j.max_run_time_s, 9);
    assert_string_equal(j.globs[0], "*.txt");
    assert_int_equal(j.n_mounts, 4);
    assert_int_equal(job_mount(&j, "/out")->capacity, 5);
    assert_string_equal(job_mount(&j, "stdout")->path, "a/o");
    assert_string_equal(job_mount(&j, "stdin")->content, "[1,null]");
    assert_true(job_mount(&j, "/out/in.txt")->exclude);
    assert_null(job_mount(&j, "/nowhere"));
    job_fini(&j);
}

static void defaults(void **state)
{
    struct job j;

    (void) state;
    assert_ok(parse(&j, "", "\"cwd\":\".\""), &err);
    assert_string_equal(j.cwd, "/");
    assert_int_equal(j.vcpus, 1);
    assert_false(j.api);
    assert_int_equal(j.max_run_time_s, 0);
    assert_null(j.globs[0]);
    job_fini(&j);
}

static void parents_come_first(void **state)
{
    struct job j;

    (void) state;
    assert_ok(parse(&j, "\"/a/b\":{\"kind\":\"tmp\"},"
                        "\"/a/b/c\":{\"kind\":\"text\",\"content\":\"\"},"
                        "\"/a\":{\"kind\":\"tmp\",\"device_type\":\"ram\"}",
                    ""), &err);
    assert_string_equal(j.mounts[0].target, "/a");
    assert_true(j.mounts[0].ram);
    assert_string_equal(j.mounts[1].target, "/a/b");
    assert_string_equal(j.mounts[2].target, "/a/b/c");
    job_fini(&j);
}

static void refused_mounts(void **state)
{
    static const char *const bad[] = {
        "\"/a\":{\"kind\":\"collection\",\"uuid\":\"x\"}",
        "\"/a\":{\"kind\":\"keep\"}",
        "\"/a\":{\"kind\":\"git_tree\"}",
        "\"/a\":{\"kind\":\"Tmp\"}",
        "\"/a\":{}",
        "\"/a\":7",
        "\"a\":{\"kind\":\"tmp\"}",
        "\"/\":{\"kind\":\"tmp\"}",
        "\"/a/\":{\"kind\":\"tmp\"}",
        "\"//a\":{\"kind\":\"tmp\"}",
        "\"/a/../b\":{\"kind\":\"tmp\"}",
        "\"/a/.\":{\"kind\":\"tmp\"}",
        "\"/proc/x\":{\"kind\":\"tmp\"}",
        "\"/dev\":{\"kind\":\"tmp\"}",
        "\"/sys\":{\"kind\":\"tmp\"}",
        "\"/out/x\":{\"kind\":\"tmp\"}",
        "\"/a\":{\"kind\":\"file\",\"path\":\"/out/x\"}",
        "\"stdin\":{\"kind\":\"file\",\"path\":\"/out/x\"}",
        "\"stdin\":{\"kind\":\"tmp\"}",
        "\"stdout\":{\"kind\":\"tmp\"}",
        "\"stdout\":{\"kind\":\"text\",\"content\":\"\"}",
        "\"stdout\":{\"kind\":\"file\",\"path\":\"/out\"}",
        "\"stdout\":{\"kind\":\"file\",\"path\":\"/outside\"}",
        "\"stdout\":{\"kind\":\"file\",\"path\":\"/out/../x\"}",
        "\"stdout\":{\"kind\":\"file\",\"path\":\"/out/\"}",
        "\"stdout\":{\"kind\":\"file\"}",
        "\"/a\":{\"kind\":\"tmp\",\"capacity\":-1}",
        "\"/a\":{\"kind\":\"tmp\",\"capacity\":\"1\"}",
        "\"/a\":{\"kind\":\"tmp\",\"content\":\"x\"}",
        "\"/a\":{\"kind\":\"tmp\",\"portable_data_hash\":\"x\"}",
        "\"/a\":{\"kind\":\"tmp\",\"unheard_of\":true}",
        "\"/a\":{\"kind\":\"text\"}",
        "\"/a\":{\"kind\":\"text\",\"content\":{}}",
        "\"/a\":{\"kind\":\"json\"}",
        "\"/a\":{\"kind\":\"json\",\"content\":1,\"capacity\":1}",
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        struct job j;

        if (parse(&j, bad[i], "") == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(err.class, ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, "mounts: "));
        /* enough is known to cancel it */
        assert_string_equal(j.uuid, UUID);
        assert_string_equal(j.state, "Locked");
    }
}

static void zero_members_do_no_harm(void **state)
{
    struct job j;

    (void) state;
    assert_ok(parse(&j, "\"/a\":{\"kind\":\"tmp\",\"content\":null,"
                        "\"path\":\"\",\"uuid\":\"\",\"writable\":false,"
                        "\"portable_data_hash\":\"\",\"x\":{},\"y\":[],"
                        "\"z\":0}", ""), &err);
    job_fini(&j);
    /* null is a JSON value like others */
    assert_ok(parse(&j, "\"/a\":{\"kind\":\"json\",\"content\":null}", ""),
              &err);
    assert_string_equal(job_mount(&j, "/a")->content, "null");
    job_fini(&j);
}

static void refused_records(void **state)
{
    static const char *const bad[] = {
        "\"runtime_constraints\":{\"gpu\":{\"device_count\":1}}",
        "\"runtime_constraints\":{\"cuda\":{\"device_count\":1}}",
        "\"runtime_constraints\":{\"vcpus\":0}",
        "\"runtime_constraints\":{\"vcpus\":\"1\"}",
        "\"runtime_constraints\":{\"ram\":-1}",
        "\"scheduling_parameters\":{\"max_run_time\":-1}",
        "\"service\":true",
        "\"published_ports\":{\"80\":{}}",
        "\"cwd\":\"relative\"",
        "\"environment\":{\"A=B\":\"x\"}",
        "\"environment\":{\"\":\"x\"}",
        "\"environment\":{\"A\":1}",
        "\"output_glob\":[1]",
    };
    struct job j;

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(bad); i++) {
        if (parse(&j, "", bad[i]) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(err.class, ERR_UNSUPPORTED);
        assert_string_equal(j.state, "Locked");
    }
}

static int parse_text(const char *text)
{
    struct job j = {0};

    return job_parse(text, strlen(text), &j, &err);
}

static void no_records(void **state)
{
    (void) state;
    assert_err(parse_text(""), &err, ERR_INVALID);
    assert_err(parse_text("[]"), &err, ERR_INVALID);
    assert_err(parse_text("{\"uuid\":\"" UUID "\"}"), &err, ERR_INVALID);
    /* a record, but one that cannot be run */
#define HEAD "{\"uuid\":\"" UUID "\",\"state\":\"Locked\","
    assert_err(parse_text(HEAD "\"container_image\":\"../x\","
                          "\"output_path\":\"/o\",\"command\":[\"a\"],"
                          "\"mounts\":{\"/o\":{\"kind\":\"tmp\"}}}"), &err,
               ERR_UNSUPPORTED);
    assert_err(parse_text(HEAD "\"container_image\":\"host\","
                          "\"output_path\":\"/o\",\"command\":[],"
                          "\"mounts\":{\"/o\":{\"kind\":\"tmp\"}}}"), &err,
               ERR_UNSUPPORTED);
    assert_err(parse_text(HEAD "\"container_image\":\"host\","
                          "\"output_path\":\"/p\",\"command\":[\"a\"],"
                          "\"mounts\":{\"/o\":{\"kind\":\"tmp\"}}}"), &err,
               ERR_UNSUPPORTED);
}

static void within(void **state)
{
    (void) state;
    assert_true(job_path_within("/a/b", "/a"));
    assert_true(job_path_within("/a", "/a"));
    assert_false(job_path_within("/ab", "/a"));
    assert_false(job_path_within("/", "/a"));
}

static const char *value(char **env, const char *name)
{
    const char *found = NULL;

    for (; *env; env++) {
        if (strncmp(*env, name, strlen(name)) == 0 &&
            (*env)[strlen(name)] == '=') {
            assert_null(found); /* never twice */
            found = *env + strlen(name) + 1;
        }
    }
    return found;
}

static void environment(void **state)
{
    struct settings s = {.api_url = (char *) (uintptr_t) "http://127.0.0.1:1",
                         .api_host = (char *) (uintptr_t) "h:1",
                         .insecure = true,
                         .token = (char *) (uintptr_t) "attempt"};
    static const char auth[] = "{\"uuid\":\"zzzzz-gj3su-000000000000000\","
                               "\"api_token\":\"secret\"}";
    struct job j;
    char **env;

    (void) state;
    setenv("LEAK", "1", 1);
    assert_ok(parse(&j, "", "\"environment\":{\"A\":\"1\","
                    "\"CDC_CONTAINER_UUID\":\"forged\","
                    "\"ARVADOS_API_TOKEN\":\"mine\"}"), &err);
    env = env_build(&j, &s, NULL, 0, &err);
    assert_string_equal(value(env, "A"), "1");
    assert_string_equal(value(env, "CDC_CONTAINER_UUID"), UUID);
    assert_string_equal(value(env, "ARVADOS_API_TOKEN"), "mine");
    assert_null(value(env, "LEAK"));
    assert_null(value(env, "CDC_API_URL"));
    env_free(env);

    env = env_build(&j, &s, auth, strlen(auth), &err);
    assert_string_equal(value(env, "ARVADOS_API_TOKEN"),
                        "v2/zzzzz-gj3su-000000000000000/secret/" UUID);
    assert_string_equal(value(env, "ARVADOS_API_HOST"), "h:1");
    assert_string_equal(value(env, "ARVADOS_API_HOST_INSECURE"), "1");
    assert_string_equal(value(env, "CDC_API_URL"), "http://127.0.0.1:1");
    env_free(env);
    assert_null(env_build(&j, &s, "{}", 2, &err));
    job_fini(&j);
}

static int add_secrets(struct job *j, const char *mounts)
{
    CLEANUP(mem_free) char *text =
        mem_printf("{\"secret_mounts\":{%s}}", mounts);

    return job_add_secrets(text, strlen(text), j, &err);
}

static void secrets(void **state)
{
    static const char *const wrong[] = {
        "\"/out\":{\"kind\":\"text\",\"content\":\"x\"}",
        "\"/x\":{\"kind\":\"tmp\"}", "\"/x\":{\"kind\":\"keep\"}",
        "\"x\":{\"kind\":\"text\",\"content\":\"x\"}", "\"/x\":1"};
    const struct job_mount *m;
    struct job j;

    (void) state;
    assert_ok(parse(&j, "", ""), &err);
    assert_ok(add_secrets(&j, ""), &err);
    assert_int_equal(j.n_mounts, 1);
    assert_ok(add_secrets(&j, "\"/a\":{\"kind\":\"text\","
                              "\"content\":\"pw\"}"), &err);
    assert_int_equal(j.n_mounts, 2);
    assert_string_equal(j.mounts[0].target, "/a"); /* sorted */
    m = job_mount(&j, "/a");
    assert_string_equal(m->content, "pw");
    assert_true(m->exclude);
    for (size_t i = 0; i < MEM_COUNT(wrong); i++)
        assert_err(add_secrets(&j, wrong[i]), &err, ERR_UNSUPPORTED);
    assert_err(job_add_secrets("[", 1, &j, &err), &err, ERR_INVALID);
    job_fini(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_record),
        cmocka_unit_test(defaults),
        cmocka_unit_test(parents_come_first),
        cmocka_unit_test(refused_mounts),
        cmocka_unit_test(zero_members_do_no_harm),
        cmocka_unit_test(refused_records),
        cmocka_unit_test(no_records),
        cmocka_unit_test(within),
        cmocka_unit_test(environment),
        cmocka_unit_test(secrets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
