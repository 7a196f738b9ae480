/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runner is told by files and standard input: node.json, the
 * configuration, and the cost that follows from it.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/runner/node.h"
#include "core/runner/settings.h"

static struct err err;

static int node(const char *text, struct node *n)
{
    return node_parse(text, strlen(text), n, &err);
}

static void node_defaults(void **state)
{
    struct node n;

    (void) state;
    assert_ok(node("{\"v\":1}", &n), &err);
    assert_false(n.plain);
    assert_string_equal(n.lock_dir, "/var/lock");
    assert_string_equal(n.scratch_dir, "/tmp");
    assert_int_equal(n.uid, 65534);
    assert_int_equal(n.pids_max, 4096);
    assert_null(n.cg_memory);
    node_fini(&n);
}

static void node_members(void **state)
{
    struct node n;

    (void) state;
    assert_ok(node("{\"v\":1,\"instance\":\"lvm-x\",\"new\":[1],"
                   "\"cgroup\":{\"memory\":\"/m\",\"pids\":\"/p\"},"
                   "\"shared_dirs\":[{\"path\":\"/s\",\"writable\":true},"
                   "{\"path\":\"/t\",\"source\":\"/u\"}],"
                   "\"uid\":1000,\"gid\":1001,\"lock_dir\":\"/l\"}", &n),
              &err);
    assert_string_equal(n.instance, "lvm-x");
    assert_string_equal(n.cg_memory, "/m");
    assert_null(n.cg_cpu);
    assert_string_equal(n.cg_pids, "/p");
    assert_int_equal(n.n_shared, 2);
    assert_string_equal(n.shared[0].source, "/s");
    assert_true(n.shared[0].writable);
    assert_string_equal(n.shared[1].source, "/u");
    assert_false(n.shared[1].writable);
    assert_int_equal(n.uid, 1000);
    assert_int_equal(n.gid, 1001);
    node_fini(&n);
}

static void node_refused(void **state)
{
    struct node n;

    (void) state;
    assert_err(node("{\"v\":0}", &n), &err, ERR_CONFIG);
    assert_err(node("{}", &n), &err, ERR_CONFIG);
    assert_err(node("[]", &n), &err, ERR_CONFIG);
    assert_err(node("{\"v\":1,\"lock_dir\":\"var\"}", &n), &err, ERR_CONFIG);
    assert_err(node("{\"v\":1,\"lock_dir\":\"/a/../b\"}", &n), &err,
               ERR_CONFIG);
    assert_err(node("{\"v\":1,\"shared_dirs\":[{\"source\":\"/a\"}]}", &n),
               &err, ERR_CONFIG);
    assert_err(node("{\"v\":1,\"uid\":-1}", &n), &err, ERR_CONFIG);
    assert_err(node("{\"v\":1,\"pids_max\":0}", &n), &err, ERR_CONFIG);
    assert_err(node("{\"v\":1,\"plain\":\"yes\"}", &n), &err, ERR_INVALID);
    assert_err(node("{\"v\":1,\"cgroup\":{\"unified\":\"/a\","
                    "\"memory\":\"/b\"}}", &n), &err, ERR_CONFIG);
    assert_err(node("{\"v\":1", &n), &err, ERR_INVALID);
}

static void node_file_of_somebody_else(void **state)
{
    char path[] = "/tmp/test-node-XXXXXX";
    int fd = mkstemp(path);
    struct node n;

    (void) state;
    assert_true(fd >= 0 && write(fd, "{\"v\":1}", 7) == 7);
    setenv("CDC_NODE_JSON", path, 1);
    assert_ok(node_load(&n, &err), &err);
    node_fini(&n);
    assert_int_equal(fchmod(fd, 0666), 0);
    assert_err(node_load(&n, &err), &err, ERR_CONFIG);
    unlink(path);
    assert_err(node_load(&n, &err), &err, ERR_NOT_FOUND);
    setenv("CDC_NODE_JSON", "/dev/null", 1);
    assert_err(node_load(&n, &err), &err, ERR_CONFIG);
    unsetenv("CDC_NODE_JSON");
    close(fd);
}

static int settings(const char *text, struct settings *s)
{
    return settings_parse(text, strlen(text), s, &err);
}

static void settings_good(void **state)
{
    struct settings s;

    (void) state;
    assert_ok(settings(
        "{\"Env\":{\"ARVADOS_API_TOKEN\":\"v2/a/b\","
        "\"ARVADOS_API_HOST\":\"h:1\",\"ARVADOS_API_HOST_INSECURE\":\"1\","
        "\"InstanceType\":\"{\\\"VCPUs\\\":4,\\\"RAM\\\":1000,"
        "\\\"Price\\\":0.5,\\\"Preemptible\\\":false}\","
        "\"GatewayAddress\":\"x:0\"},\"KeepBuffers\":0,\"Cluster\":null,"
        "\"CDC\":{\"APIURL\":\"http://127.0.0.1:8000/\",\"CABundle\":\"\","
        "\"Attempt\":7}}", &s), &err);
    assert_string_equal(s.token, "v2/a/b");
    assert_string_equal(s.api_host, "h:1");
    assert_true(s.insecure);
    assert_int_equal(s.attempt, 7);
    assert_int_equal(s.vcpus, 4);
    assert_int_equal(s.ram, 1000);
    assert_int_equal(s.url.port, 8000);
    settings_fini(&s);
}

static void settings_refused(void **state)
{
    static const char *const bad[] = {
        "", "[]", "{}", "{\"Env\":{}}",
        "{\"Env\":{\"ARVADOS_API_TOKEN\":\"x\"}}",
        "{\"Env\":{\"ARVADOS_API_TOKEN\":\"x\"},\"CDC\":{}}",
        "{\"Env\":{\"ARVADOS_API_TOKEN\":\"\"},"
        "\"CDC\":{\"APIURL\":\"http://127.0.0.1\"}}",
        "{\"Env\":{\"ARVADOS_API_TOKEN\":\"a\\r\\nX: b\"},"
        "\"CDC\":{\"APIURL\":\"http://127.0.0.1\"}}",
        "{\"Env\":{\"ARVADOS_API_TOKEN\":\"a\"},"
        "\"CDC\":{\"APIURL\":\"http://10.0.0.1\"}}",
        "{\"Env\":{\"ARVADOS_API_TOKEN\":\"a\"},"
        "\"CDC\":{\"APIURL\":\"https://127.0.0.1\"}}",
        "{\"Env\":{\"ARVADOS_API_TOKEN\":\"a\",\"InstanceType\":\"{\"},"
        "\"CDC\":{\"APIURL\":\"http://127.0.0.1\"}}",
        "{\"Env\":{\"ARVADOS_API_TOKEN\":\"a\"},"
        "\"CDC\":{\"APIURL\":\"http://127.0.0.1\",\"Attempt\":-1}}",
    };

    (void) state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct settings s;

        err_clear(&err);
        if (settings(bad[i], &s) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_true(err.text[0] != '\0');
    }
}

static void settings_end_of_input(void **state)
{
    struct settings s;
    int p[2];

    (void) state;
    assert_int_equal(pipe(p), 0);
    assert_int_equal(write(p[1], "{\"Env\":", 7), 7);
    close(p[1]);
    assert_err(settings_read(p[0], &s, &err), &err, ERR_INVALID);
    close(p[0]);
}

static void cost(void **state)
{
    struct settings s = {.price = 3.6, .vcpus = 4, .ram = 1000};

    (void) state;
    /* the larger share: VCPUs, RAM, the whole */
    assert_float_equal(settings_cost(&s, 10, 2, 100), 0.005, 1e-12);
    assert_float_equal(settings_cost(&s, 10, 1, 800), 0.008, 1e-12);
    assert_float_equal(settings_cost(&s, 10, 8, 100), 0.010, 1e-12);
    assert_float_equal(settings_cost(&s, 0, 8, 100), 0, 1e-12);
    assert_float_equal(settings_cost(&s, -1, 8, 100), 0, 1e-12);
    s.price = 0;
    assert_float_equal(settings_cost(&s, 10, 8, 100), 0, 1e-12);
    s = (struct settings){.price = 1};
    assert_float_equal(settings_cost(&s, 10, 8, 100), 0, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_defaults),
        cmocka_unit_test(node_members),
        cmocka_unit_test(node_refused),
        cmocka_unit_test(node_file_of_somebody_else),
        cmocka_unit_test(settings_good),
        cmocka_unit_test(settings_refused),
        cmocka_unit_test(settings_end_of_input),
        cmocka_unit_test(cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
