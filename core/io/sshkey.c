/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SSH key without ssh-keygen, so that `init` needs no other program.
 *
 *   "openssh-key-v1\0", cipher "none", kdf "none", kdf options "", 1 key,
 *   public blob, private section: two equal check numbers, type, public key,
 *   private key (seed and public key), comment, padding 1 2 3 ... to 8.
 *
 * All of it base64 in lines of 70. Numbers are 32 bits, big endian; strings
 * have their length in front. Buffers that hold the key are wiped.
 */
#include "core/io/sshkey.h"

#include <openssl/evp.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/secret.h"

enum { RAW = 32, BLOB_MAX = 4096, LINE = 70 };
static const char type[] = "ssh-ed25519";

static void put_u32(struct buf *b, uint32_t v)
{
    unsigned char out[4] = {(unsigned char) (v >> 24),
                            (unsigned char) (v >> 16),
                            (unsigned char) (v >> 8), (unsigned char) v};

    buf_append(b, out, sizeof out);
}

static void put_string(struct buf *b, const void *p, size_t n)
{
    put_u32(b, (uint32_t) n);
    buf_append(b, p, n);
}

static void put_text(struct buf *b, const char *s)
{
    put_string(b, s, strlen(s));
}

static void put_public(struct buf *b, const unsigned char pub[RAW])
{
    put_text(b, type);
    put_string(b, pub, RAW);
}

static void put_private(struct buf *b, const unsigned char pub[RAW],
                        const unsigned char seed[RAW], const char *comment)
{
    unsigned char both[2 * RAW];
    uint32_t check;

    secret_random(&check, sizeof check);
    put_u32(b, check);
    put_u32(b, check);
    put_public(b, pub);
    memcpy(both, seed, RAW);
    memcpy(both + RAW, pub, RAW);
    put_string(b, both, sizeof both);
    explicit_bzero(both, sizeof both);
    put_text(b, comment);
    for (char pad = 1; b->len % 8; pad++)
        buf_putc(b, pad);
}

static void put_base64(struct buf *out, const struct buf *in, size_t line)
{
    CLEANUP(mem_free) char *text = mem_zalloc(4 * (in->len / 3 + 1) + 1);
    int n = EVP_EncodeBlock((unsigned char *) text,
                            (const unsigned char *) in->data, (int) in->len);

    for (size_t at = 0; at < (size_t) n; at += line) {
        size_t left = (size_t) n - at;
        buf_append(out, text + at, left < line ? left : line);
        if (line < (size_t) n)
            buf_putc(out, '\n');
    }
    explicit_bzero(text, (size_t) n);
}

static int generate(unsigned char seed[RAW], unsigned char pub[RAW],
                    struct err *err)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    size_t n = RAW, m = RAW;
    bool ok = key && EVP_PKEY_get_raw_private_key(key, seed, &n) == 1 &&
              EVP_PKEY_get_raw_public_key(key, pub, &m) == 1 && n == RAW &&
              m == RAW;

    EVP_PKEY_free(key);
    return ok ? 0 : err_set(err, ERR_INTERNAL, "OpenSSL makes no Ed25519 key");
}

int sshkey_make(const char *comment, struct buf *private_text,
                struct buf *public_line, struct err *err)
{
    CLEANUP(buf_wipe) struct buf file, secret;
    CLEANUP(buf_fini) struct buf blob;
    unsigned char seed[RAW], pub[RAW];

    buf_init(&file, BLOB_MAX);
    buf_init(&secret, BLOB_MAX);
    buf_init(&blob, BLOB_MAX);
    if (generate(seed, pub, err) < 0)
        return -1;
    put_public(&blob, pub);
    put_private(&secret, pub, seed, comment);
    explicit_bzero(seed, sizeof seed);
    buf_append(&file, "openssh-key-v1", 15);
    put_text(&file, "none");
    put_text(&file, "none");
    put_text(&file, "");
    put_u32(&file, 1);
    put_string(&file, blob.data, blob.len);
    put_string(&file, secret.data, secret.len);
    buf_puts(private_text, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    put_base64(private_text, &file, LINE);
    buf_puts(private_text, "-----END OPENSSH PRIVATE KEY-----\n");
    buf_printf(public_line, "%s ", type);
    put_base64(public_line, &blob, BLOB_MAX * 2);
    buf_printf(public_line, " %s\n", comment);
    return 0;
}
