/* SPDX-License-Identifier: Apache-2.0 */
/* crypt: published test vectors (RFC 1321 A.5, FIPS 180-2 B.1, RFC 4231). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/text.h"
#include "core/io/crypt.h"

static void test_vectors(void **state)
{
    char out[65];
    uint8_t mac[CRYPT_SHA256_LEN];
    uint8_t key[20];

    (void) state;
    crypt_md5_hex("abc", 3, out);
    assert_string_equal(out, "900150983cd24fb0d6963f7d28e17f72");
    crypt_md5_hex("", 0, out);
    assert_string_equal(out, "d41d8cd98f00b204e9800998ecf8427e");
    crypt_sha256_hex("abc", 3, out);
    assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9c"
                             "b410ff61f20015ad");
    memset(key, 0x0b, sizeof key);
    crypt_hmac_sha256(key, sizeof key, "Hi There", 8, mac);
    text_hex(mac, sizeof mac, out);
    assert_string_equal(out, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da7"
                             "26e9376c2e32cff7");
}

static void test_pieces(void **state)
{
    struct crypt_digest *d = crypt_digest_create("sha256");
    char out[65], want[65];

    (void) state;
    crypt_digest_add(d, "a", 1);
    crypt_digest_add(d, "bc", 2);
    crypt_digest_end(d, out, sizeof out);
    crypt_sha256_hex("abc", 3, want);
    assert_string_equal(out, want);
    crypt_digest_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
