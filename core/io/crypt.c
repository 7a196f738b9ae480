/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place that calls libcrypto for digests. EVP only; the algorithms
 * are looked up once per call through OpenSSL's own cache, which is enough
 * for what this suite hashes (tokens, manifests, the runner's file). Pure but
 * for that cache; any thread.
 */
#include "core/io/crypt.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/text.h"

struct crypt_digest {
    EVP_MD_CTX *ctx;
};

/* A digest that this build of OpenSSL does not have. */
static _Noreturn void no_digest(const char *name)
{
    fprintf(stderr, "OpenSSL has no digest %s\n", name);
    exit(MEM_EXIT);
}

static void digest(const char *name, const void *p, size_t n, uint8_t *out)
{
    const EVP_MD *md = EVP_get_digestbyname(name);

    if (!md || EVP_Digest(p, n, out, NULL, md, NULL) != 1)
        no_digest(name);
}

void crypt_md5_hex(const void *p, size_t n, char out[33])
{
    uint8_t sum[CRYPT_MD5_LEN];

    digest("MD5", p, n, sum);
    text_hex(sum, sizeof sum, out);
}

void crypt_sha256(const void *p, size_t n, uint8_t out[CRYPT_SHA256_LEN])
{
    digest("SHA256", p, n, out);
}

void crypt_sha256_hex(const void *p, size_t n, char out[65])
{
    uint8_t sum[CRYPT_SHA256_LEN];

    crypt_sha256(p, n, sum);
    text_hex(sum, sizeof sum, out);
}

void crypt_hmac_sha256(const void *key, size_t key_len, const void *p,
                       size_t n, uint8_t out[CRYPT_SHA256_LEN])
{
    if (!HMAC(EVP_sha256(), key, (int) key_len, p, n, out, NULL))
        no_digest("HMAC-SHA256");
}

struct crypt_digest *crypt_digest_create(const char *name)
{
    struct crypt_digest *d = MEM_NEW(struct crypt_digest);
    const EVP_MD *md = EVP_get_digestbyname(name);

    d->ctx = EVP_MD_CTX_new();
    if (!md || !d->ctx || EVP_DigestInit_ex(d->ctx, md, NULL) != 1)
        no_digest(name);
    return d;
}

void crypt_digest_add(struct crypt_digest *d, const void *p, size_t n)
{
    if (EVP_DigestUpdate(d->ctx, p, n) != 1)
        no_digest("in pieces");
}

void crypt_digest_end(struct crypt_digest *d, char *out, size_t size)
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    unsigned n;

    if (EVP_DigestFinal_ex(d->ctx, sum, &n) != 1 || size < 2 * n + 1)
        no_digest("in pieces");
    text_hex(sum, n, out);
    crypt_digest_destroy(d);
}

void crypt_digest_destroy(struct crypt_digest *d)
{
    if (!d)
        return;
    EVP_MD_CTX_free(d->ctx);
    free(d);
}
