/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_SSHKEY_H
#define CORE_IO_SSHKEY_H

/*
 * A new Ed25519 key for SSH, in OpenSSH's own format (source: OpenSSH,
 * PROTOCOL.key; RFC 8709).
 */

struct buf;
struct err;

/* Append the private key file's text and the public key's line. */
int sshkey_make(const char *comment, struct buf *private_text,
                struct buf *public_line, struct err *err);

#endif
