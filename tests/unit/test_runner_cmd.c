/* SPDX-License-Identifier: Apache-2.0 */

/* Commands for instances, letter by letter; the deploy script is also run by
 * a real shell, whole and cut off. */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/dispatch/runner_cmd.h"
#include "core/model/dispatch_cfg.h"
#include "core/model/itypes.h"

#define UUID "zzzzz-dz642-00000000000000a"
#define HELLO "5d41402abc4b2a76b9719d911017c592" /* MD5 of "hello" */

static struct dispatch_cfg cfg;
static struct buf b;

static int setup(void **state)
{
    (void) state;
    memset(&cfg, 0, sizeof cfg);
    text_copy(cfg.runner_command, "crunch-run", sizeof cfg.runner_command);
    text_copy(cfg.runner_dir, "/tmp/runner", sizeof cfg.runner_dir);
    text_copy(cfg.runner_hash, HELLO, sizeof cfg.runner_hash);
    text_copy(cfg.api_url, "https://api.example:8443/base", sizeof cfg.api_url);
    buf_init(&b, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void) state;
    buf_fini(&b);
    return 0;
}

static void start(void **state)
{
    (void) state;
    runner_cmd_start(&cfg, "root", UUID, &b);
    assert_string_equal(b.data, "crunch-run --detach --stdin-config '" UUID
                                "'");
    buf_reset(&b);
    text_copy(cfg.runtime_engine, "singularity", sizeof cfg.runtime_engine);
    text_copy(cfg.runner_args[0], "--foo", sizeof cfg.runner_args[0]);
    text_copy(cfg.runner_args[1], "--extra='args'", sizeof cfg.runner_args[1]);
    cfg.n_runner_args = 2;
    cfg.runner = "hello";
    runner_cmd_start(&cfg, "crunch", UUID, &b);
    assert_string_equal(
        b.data,
        "sudo /tmp/runner/crunch-run~5d41402abc4b2a76b9719d911017c592 "
        "--detach --stdin-config '--runtime-engine=singularity' '--foo' "
        "'--extra='\\''args'\\''' '" UUID "'");
}

static void others(void **state)
{
    (void) state;
    runner_cmd_list(&cfg, "root", &b);
    assert_string_equal(b.data, "crunch-run --list");
    buf_reset(&b);
    runner_cmd_watch(&cfg, "admin", &b);
    assert_string_equal(b.data, "sudo crunch-run --watch");
    buf_reset(&b);
    runner_cmd_kill(&cfg, "root", 15, UUID, &b);
    assert_string_equal(b.data, "crunch-run --kill 15 " UUID);
    buf_reset(&b);
    runner_cmd_boot_probe(&cfg, &b);
    assert_string_equal(b.data, "true");
    buf_reset(&b);
    text_copy(cfg.boot_probe, "systemctl is-system-running",
              sizeof cfg.boot_probe);
    runner_cmd_boot_probe(&cfg, &b);
    assert_string_equal(b.data, "systemctl is-system-running");
    buf_reset(&b);
    runner_cmd_identity("admin", &b);
    assert_string_equal(b.data, "sudo cat /var/run/arvados-instance-secret");
    buf_reset(&b);
    text_copy(cfg.init_command, "echo hi", sizeof cfg.init_command);
    runner_cmd_init(&cfg, "5ec7e7", &b);
    assert_string_equal(b.data, "umask 0177 && printf %s 5ec7e7 "
                                ">/var/run/arvados-instance-secret; "
                                "umask 0022\necho hi");
}

static void stdin_is_small_and_complete(void **state)
{
    struct itype it = {.name = "t", .provider_type = "p.t", .vcpus = 4,
                       .ram = 1024, .price = 0.5, .gpu_count = 1,
                       .gpu_stack = "cuda"};
    struct jsn *j, *env, *cdc, *type;
    const char *s;
    int64_t n;
    double price;

    (void) state;
    assert_int_equal(runner_cmd_stdin(&cfg, &it, "s3cret", 7, &b), 0);
    assert_in_range(b.len, 1, 600);
    assert_non_null(j = jsn_parse(b.data, b.len, NULL));
    assert_int_equal(jsn_obj(j, "Env", &env, NULL), 0);
    assert_int_equal(jsn_str(env, "ARVADOS_API_HOST", &s, NULL), 0);
    assert_string_equal(s, "api.example:8443");
    assert_int_equal(jsn_str(env, "ARVADOS_API_TOKEN", &s, NULL), 0);
    assert_string_equal(s, "s3cret");
    assert_int_equal(jsn_str(env, "InstanceType", &s, NULL), 0);
    assert_non_null(type = jsn_parse(s, strlen(s), NULL));
    assert_int_equal(jsn_f64(type, "Price", &price, NULL), 0);
    assert_true(price == 0.5);
    assert_int_equal(jsn_i64(type, "VCPUs", &n, NULL), 0);
    assert_int_equal(n, 4);
    assert_false(jsn_has(type, "Name"));
    jsn_free(type);
    assert_int_equal(jsn_obj(j, "CDC", &cdc, NULL), 0);
    assert_int_equal(jsn_str(cdc, "APIURL", &s, NULL), 0);
    assert_string_equal(s, cfg.api_url);
    assert_int_equal(jsn_i64(cdc, "Attempt", &n, NULL), 0);
    assert_int_equal(n, 7);
    assert_false(jsn_has(cdc, "CABundle"));
    jsn_free(j);
}

static void only_the_ca_bundle_may_be_long(void **state)
{
    struct itype it = {.name = "t"};
    char token[RUNNER_STDIN_MAX + 1], ca[9000];

    (void) state;
    memset(ca, 'c', sizeof ca - 1);
    ca[sizeof ca - 1] = '\0';
    cfg.ca_bundle = ca;
    assert_int_equal(runner_cmd_stdin(&cfg, &it, "t", 1, &b), 0);
    assert_in_range(b.len, 9000, 9000 + 600);
    buf_reset(&b);
    memset(token, 't', sizeof token - 1);
    token[sizeof token - 1] = '\0';
    assert_int_equal(runner_cmd_stdin(&cfg, &it, token, 1, &b), -1);
}

static void deployed_means_this_very_line(void **state)
{
    (void) state;
    cfg.runner = "hello";
    runner_cmd_check(&cfg, &b);
    assert_string_equal(b.data, "md5sum /tmp/runner/crunch-run~"
                                "5d41402abc4b2a76b9719d911017c592");
    assert_true(runner_cmd_deployed(
        &cfg, "5d41402abc4b2a76b9719d911017c592  /tmp/runner/crunch-run~"
              "5d41402abc4b2a76b9719d911017c592\n"));
    assert_false(runner_cmd_deployed(
        &cfg, "5d41402abc4b2a76b9719d911017c593  /tmp/runner/crunch-run~"
              "5d41402abc4b2a76b9719d911017c592\n"));
    assert_false(runner_cmd_deployed(&cfg, ""));
}

/* Run command with this stdin; its exit status. */
static int run(const char *command, const char *input)
{
    FILE *f;
    int fds[2], status;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fds[0], 0);
        close(fds[0]);
        close(fds[1]);
        execl("/bin/sh", "sh", "-c", command, (char *) NULL);
        _exit(126);
    }
    close(fds[0]);
    f = fdopen(fds[1], "w");
    fputs(input, f);
    fclose(f);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void deploy_leaves_all_or_nothing(void **state)
{
    char dir[] = "/tmp/test_runner_cmd.XXXXXX";
    char path[300];
    struct stat st;

    (void) state;
    assert_non_null(mkdtemp(dir));
    snprintf(cfg.runner_dir, sizeof cfg.runner_dir, "%s/sub", dir);
    snprintf(path, sizeof path, "%s/sub/crunch-run~%s", dir, cfg.runner_hash);
    cfg.runner = "hello";
    runner_cmd_deploy(&cfg, "root", "n1", &b);
    assert_int_not_equal(run(b.data, "hel"), 0); /* cut off */
    assert_int_equal(stat(path, &st), -1);
    snprintf(cfg.boot_probe, sizeof cfg.boot_probe, "test -z \"$(ls %s)\"",
             cfg.runner_dir);
    assert_int_equal(run(cfg.boot_probe, ""), 0); /* nothing is left behind */
    assert_int_equal(run(b.data, "hello"), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(run(b.data, "hello"), 0); /* again */
    unlink(path);
    rmdir(cfg.runner_dir);
    rmdir(dir);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(start), T(others), T(stdin_is_small_and_complete),
        T(only_the_ca_bundle_may_be_long), T(deployed_means_this_very_line),
        T(deploy_leaves_all_or_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
