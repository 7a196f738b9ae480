/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keygen.c: what ssh-keygen does, in 0.1 ms and without it.
 *
 * OpenSSL makes the key; OpenSSH 9 reads no other container for Ed25519 than
 * its own, so that is written here (PROTOCOL.key of OpenSSH): a magic, three
 * strings that say "not encrypted", the public key, and a block padded to 8
 * bytes with the same number twice, the private key and a comment. All
 * numbers are big-endian, all strings carry their length (RFC 4251, 5).
 *
 * Called when an intent is made, from one thread. The private key is in no
 * buffer of ours but the caller's when this returns.
 */

#include "core/localvm/keygen.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/secret.h"

enum { RAW = 32, BLOCK = 8, LINE = 70, BLOB_MAX = 512 };

#define TYPE "ssh-ed25519"

static void put_u32(struct buf *b, uint32_t v)
{
    const unsigned char be[4] = {(unsigned char) (v >> 24),
                                 (unsigned char) (v >> 16),
                                 (unsigned char) (v >> 8),
                                 (unsigned char) v};

    buf_append(b, be, sizeof be);
}

static void put_string(struct buf *b, const void *p, size_t n)
{
    put_u32(b, (uint32_t) n);
    buf_append(b, p, n);
}

static void put_public(struct buf *b, const unsigned char *pub)
{
    put_string(b, TYPE, strlen(TYPE));
    put_string(b, pub, RAW);
}

/* The part that would be encrypted if there were a passphrase. */
static void put_private(struct buf *b, const unsigned char *seed,
                        const unsigned char *pub)
{
    unsigned char both[2 * RAW];
    uint32_t check;
    char pad;

    memcpy(both, seed, RAW);
    memcpy(both + RAW, pub, RAW);
    secret_random(&check, sizeof check);
    put_u32(b, check);
    put_u32(b, check);
    put_public(b, pub);
    put_string(b, both, sizeof both);
    put_string(b, "", 0);
    for (pad = 1; b->len % BLOCK; pad++)
        buf_putc(b, pad);
    OPENSSL_cleanse(both, sizeof both);
}

/* Base64 in one piece; of a bounded blob. */
static char *encode(const struct buf *blob)
{
    char *out = mem_zalloc(blob->len * 4 / 3 + 8);

    EVP_EncodeBlock((unsigned char *) out,
                    (const unsigned char *) blob->data, (int) blob->len);
    return out;
}

static void write_private(const unsigned char *seed, const unsigned char *pub,
                          struct buf *out)
{
    struct buf blob, part;
    char *text, *at;
    size_t n;

    buf_init(&blob, BLOB_MAX);
    buf_init(&part, BLOB_MAX);
    buf_append(&blob, "openssh-key-v1", 15);
    put_string(&blob, "none", 4);
    put_string(&blob, "none", 4);
    put_string(&blob, "", 0);
    put_u32(&blob, 1);
    put_public(&part, pub);
    put_string(&blob, part.data, part.len);
    buf_reset(&part);
    put_private(&part, seed, pub);
    put_string(&blob, part.data, part.len);
    text = encode(&blob);
    buf_puts(out, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    for (at = text; *at; at += n) {
        n = strnlen(at, LINE);
        buf_append(out, at, n);
        buf_putc(out, '\n');
    }
    buf_puts(out, "-----END OPENSSH PRIVATE KEY-----\n");
    secret_free(text);
    buf_wipe(&blob);
    buf_wipe(&part);
}

static char *write_public(const unsigned char *pub)
{
    CLEANUP(buf_fini) struct buf blob;
    CLEANUP(mem_free) char *text = NULL;

    buf_init(&blob, BLOB_MAX);
    put_public(&blob, pub);
    text = encode(&blob);
    return mem_printf("%s %s", TYPE, text);
}

int keygen_ed25519(struct buf *private_key, char **ret_public,
                   struct err *err)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    unsigned char seed[RAW], pub[RAW];
    size_t n_seed = RAW, n_pub = RAW;
    int ok = key && EVP_PKEY_get_raw_private_key(key, seed, &n_seed) == 1 &&
             EVP_PKEY_get_raw_public_key(key, pub, &n_pub) == 1;

    EVP_PKEY_free(key);
    if (!ok)
        return err_set(err, ERR_INTERNAL, "cannot make an Ed25519 key");
    write_private(seed, pub, private_key);
    OPENSSL_cleanse(seed, sizeof seed);
    if (private_key->over)
        return err_set(err, ERR_TOO_LARGE, "no room for the private key");
    *ret_public = write_public(pub);
    return 0;
}
