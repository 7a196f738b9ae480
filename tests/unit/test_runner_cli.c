/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of crunch-run: what the peer's dispatcher writes must be
 * understood, and what nobody writes refused.
 */
#include "tests/unit/unit.h"

#include "core/runner/cli.h"

#define UUID "zzzzz-dz642-0123456789abcde"

static struct cli cli;
static struct err err;

static int parse(const char *const *args)
{
    char *argv[16] = {(char *) (uintptr_t) "crunch-run"};
    int argc = 1;

    for (; args[argc - 1]; argc++)
        argv[argc] = (char *) (uintptr_t) args[argc - 1];
    memset(&cli, 0, sizeof cli);
    return cli_parse(argc, argv, &cli, &err);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void start_command_of_the_peer(void **state)
{
    (void) state;
    assert_ok(PARSE("--detach", "--stdin-config", "--runtime-engine=docker",
                    "-crunchstat-interval", "5s", "--cgroup-parent-subsystem",
                    "memory", UUID), &err);
    assert_int_equal(cli.mode, CLI_DETACH);
    assert_true(cli.stdin_config);
    assert_true(cli.memory_limit);
    assert_string_equal(cli.uuid, UUID);
}

static void booleans_take_a_value_only_with_equals(void **state)
{
    (void) state;
    assert_ok(PARSE("-stdin-config=true", "-enable-memory-limit=false", UUID),
              &err);
    assert_int_equal(cli.mode, CLI_RUN);
    assert_false(cli.memory_limit);
    /* "false" is not its value here but the uuid, and a wrong one. */
    assert_err(PARSE("-stdin-config", "false"), &err, ERR_INVALID);
    assert_err(PARSE("-list=maybe"), &err, ERR_INVALID);
}

static void modes(void **state)
{
    (void) state;
    assert_ok(PARSE("--list"), &err);
    assert_int_equal(cli.mode, CLI_LIST);
    assert_ok(PARSE("-list", "--stdin-prices"), &err);
    assert_ok(PARSE("--watch"), &err);
    assert_int_equal(cli.mode, CLI_WATCH);
    assert_ok(PARSE("--kill", "15", UUID), &err);
    assert_int_equal(cli.mode, CLI_KILL);
    assert_int_equal(cli.signum, 15);
    assert_ok(PARSE("--version"), &err);
    assert_int_equal(cli.mode, CLI_VERSION);
    assert_ok(PARSE("--list", "-help", "whatever"), &err);
    assert_int_equal(cli.mode, CLI_HELP);
    assert_ok(PARSE("--list=false", "--stdin-config", "--", UUID), &err);
    assert_int_equal(cli.mode, CLI_RUN);
}

static void refused(void **state)
{
    (void) state;
    assert_err(PARSE("--no-such-flag"), &err, ERR_INVALID);
    assert_err(PARSE("--list", "--watch"), &err, ERR_INVALID);
    assert_err(PARSE("--list", UUID), &err, ERR_INVALID);
    assert_err(PARSE("--stdin-config"), &err, ERR_INVALID);
    assert_err(PARSE("--stdin-config", UUID, UUID), &err, ERR_INVALID);
    assert_err(PARSE("--stdin-config", "zzzzz-xvhdp-0123456789abcde"), &err,
               ERR_INVALID);
    assert_err(PARSE("--stdin-config", "../../etc/passwd"), &err,
               ERR_INVALID);
    assert_err(PARSE("--detach", UUID), &err, ERR_INVALID);
    assert_err(PARSE("--kill"), &err, ERR_INVALID);
    assert_err(PARSE("--kill", "TERM", UUID), &err, ERR_INVALID);
    assert_err(PARSE("--kill", "65", UUID), &err, ERR_INVALID);
    assert_err(PARSE("--kill", "-1", UUID), &err, ERR_INVALID);
    assert_err(PARSE("---list"), &err, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_command_of_the_peer),
        cmocka_unit_test(booleans_take_a_value_only_with_equals),
        cmocka_unit_test(modes),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
