/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_CRYPT_H
#define CORE_IO_CRYPT_H

/*
 * Digests, MACs and base64, by OpenSSL's EVP interface. Any thread. A failure
 * of the library itself (no such digest in this build) ends the process with
 * a line: nothing here can be done differently by a caller.
 */

#include <stddef.h>
#include <stdint.h>

enum { CRYPT_SHA256_LEN = 32, CRYPT_MD5_LEN = 16 };

/* Lower-case hex with NUL. MD5 only where Arvados' formats ask for it. */
void crypt_md5_hex(const void *p, size_t n, char out[33]);
void crypt_sha256(const void *p, size_t n, uint8_t out[CRYPT_SHA256_LEN]);
void crypt_sha256_hex(const void *p, size_t n, char out[65]);
void crypt_hmac_sha256(const void *key, size_t key_len, const void *p,
                       size_t n, uint8_t out[CRYPT_SHA256_LEN]);

/* A digest in pieces: for files. */
struct crypt_digest;
struct crypt_digest *crypt_digest_create(const char *name); /* "md5", ... */
void crypt_digest_add(struct crypt_digest *d, const void *p, size_t n);
/* Hex into out (2 * digest size + 1); the object is freed. */
void crypt_digest_end(struct crypt_digest *d, char *out, size_t size);
void crypt_digest_destroy(struct crypt_digest *d); /* NULL is fine */

#endif
