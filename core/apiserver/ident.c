/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifiers and secrets.
 *
 * An Arvados uuid is the cluster's five characters, five that name the type,
 * and fifteen random ones: enough that a collision is no case of its own (the
 * database would refuse it). Secrets are fifty characters of base 36, more
 * than 250 bits, kept by the database as their SHA-256 only. The secret of a
 * container's own token must be told again whenever the runner asks, so it is
 * derived from SystemRootToken and is nowhere at rest.
 *
 * Pure but for the kernel's random numbers; any thread.
 */
#include "core/apiserver/ident.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/io/crypt.h"

enum { TAIL = 15 };

void ident_secret(char out[IDENT_SECRET])
{
    uint8_t random[IDENT_SECRET - 1];

    secret_random(random, sizeof random);
    text_base36(random, sizeof random, out);
}

void ident_derive(const char *key, const char *purpose, const char *id,
                  char out[IDENT_SECRET])
{
    uint8_t mac[2 * CRYPT_SHA256_LEN];

    for (int half = 0; half < 2; half++) {
        CLEANUP(mem_free) char *text = mem_printf("%s %d %s", purpose, half,
                                                  id);
        crypt_hmac_sha256(key, strlen(key), text, strlen(text),
                          mac + half * CRYPT_SHA256_LEN);
    }
    text_base36(mac, IDENT_SECRET - 1, out);
}

void ident_token(const char *uuid, const char *secret, char out[IDENT_TOKEN])
{
    snprintf(out, IDENT_TOKEN, "v2/%s/%s", uuid, secret);
}

static void join(const char *cluster, const char *infix, const char *tail,
                 char out[IDENT_UUID])
{
    snprintf(out, IDENT_UUID, "%.5s-%.5s-%.15s", cluster, infix, tail);
}

void ident_uuid(const char *cluster, const char *infix, char out[IDENT_UUID])
{
    uint8_t random[TAIL];
    char tail[TAIL + 1];

    secret_random(random, sizeof random);
    text_base36(random, sizeof random, tail);
    join(cluster, infix, tail, out);
}

void ident_user(const char *cluster, const char *name, char out[IDENT_UUID])
{
    uint8_t sum[CRYPT_SHA256_LEN];
    char tail[TAIL + 1];

    crypt_sha256(name, strlen(name), sum);
    text_base36(sum, TAIL, tail);
    join(cluster, "tpzed", tail, out);
}

void ident_system(const char *cluster, const char *infix,
                  char out[IDENT_UUID])
{
    join(cluster, infix, "000000000000000", out);
}
