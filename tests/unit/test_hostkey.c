/* SPDX-License-Identifier: Apache-2.0 */

/* Trust in host keys. */

#include "tests/unit/unit.h"

#include "core/base/mem.h"
#include "core/dispatch/hostkey.h"

static void keys_compare_without_comment(void **state)
{
    (void) state;
    assert_true(hostkey_equal("ssh-ed25519 AAAA", "ssh-ed25519 AAAA"));
    assert_true(hostkey_equal("ssh-ed25519 AAAA", "ssh-ed25519 AAAA root@x"));
    assert_true(hostkey_equal("ssh-ed25519 AAAA\n", "ssh-ed25519 AAAA"));
    assert_false(hostkey_equal("ssh-ed25519 AAAA", "ssh-ed25519 AAAB"));
    assert_false(hostkey_equal("ssh-ed25519 AAAA", "ssh-ed25519 AAA"));
    assert_false(hostkey_equal("ssh-rsa AAAA", "ssh-ed25519 AAAA"));
    assert_false(hostkey_equal("", ""));
}

static void steps(void **state)
{
    static const struct {
        const char *listed, *pinned, *secret;
        bool can_verify;
        enum hostkey_step step;
    } t[] = {
        {"", "", "", false, HOSTKEY_NONE},
        {"", "", "s", false, HOSTKEY_READ},
        {"", "", "", true, HOSTKEY_ASK},
        {"", "", "s", true, HOSTKEY_ASK},
        {"", "k 1", "s", true, HOSTKEY_APPROVE},
        {"", "k 2", "s", true, HOSTKEY_WRONG},
        {"k 1", "", "", false, HOSTKEY_APPROVE},
        {"k 2", "", "s", true, HOSTKEY_WRONG},
        /* what the cloud tells overrules what was pinned */
        {"k 1", "k 2", "", false, HOSTKEY_APPROVE},
        {"k 2", "k 1", "", false, HOSTKEY_WRONG},
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(t); i++) {
        struct hostkey_facts f = {
            .offered = "k 1", .listed = t[i].listed, .pinned = t[i].pinned,
            .secret = t[i].secret, .can_verify = t[i].can_verify};

        assert_int_equal(hostkey_step(&f), t[i].step);
    }
}

static void the_secret_must_match_whole(void **state)
{
    (void) state;
    assert_true(hostkey_secret_matches("abc", "abc", 3));
    assert_false(hostkey_secret_matches("abc", "abc\n", 4));
    assert_false(hostkey_secret_matches("abc", "ab", 2));
    assert_false(hostkey_secret_matches("abc", "abcd", 4));
    assert_false(hostkey_secret_matches("abc", "abc\0x", 5));
    assert_false(hostkey_secret_matches("", "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_compare_without_comment),
        cmocka_unit_test(steps),
        cmocka_unit_test(the_secret_must_match_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
