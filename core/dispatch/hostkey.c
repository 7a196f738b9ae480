/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Trust in a host key, step by step.
 *
 * In this order: a key that the cloud itself tells, or that was pinned
 * before, decides alone. Otherwise the driver is asked. Only clouds without
 * either fall back to the instance secret: a random text that the init
 * command wrote to the machine; it is read over the unapproved session by a
 * fixed command without stdin, so that nothing of ours is shown to a wrong
 * machine, and compared whole.
 *
 * Used by session.c. Pure.
 */

#include "core/dispatch/hostkey.h"

#include <string.h>

#include "core/base/secret.h"

/* Length of "type base64", without comment or trailing blanks. */
static size_t key_length(const char *key)
{
    size_t type = strcspn(key, " ");

    if (key[type] == '\0')
        return type;
    return type + 1 + strcspn(key + type + 1, " \t\r\n");
}

bool hostkey_equal(const char *a, const char *b)
{
    size_t n = key_length(a);

    return n > 0 && n == key_length(b) && memcmp(a, b, n) == 0;
}

enum hostkey_step hostkey_step(const struct hostkey_facts *f)
{
    if (f->listed[0] != '\0')
        return hostkey_equal(f->listed, f->offered) ? HOSTKEY_APPROVE
                                                    : HOSTKEY_WRONG;
    if (f->pinned[0] != '\0')
        return hostkey_equal(f->pinned, f->offered) ? HOSTKEY_APPROVE
                                                    : HOSTKEY_WRONG;
    if (f->can_verify)
        return HOSTKEY_ASK;
    return f->secret[0] != '\0' ? HOSTKEY_READ : HOSTKEY_NONE;
}

bool hostkey_secret_matches(const char *secret, const char *out,
                            unsigned long out_len)
{
    return secret[0] != '\0' && strlen(out) == out_len &&
           secret_equal(secret, out);
}
