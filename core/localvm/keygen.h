/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_KEYGEN_H
#define CORE_LOCALVM_KEYGEN_H

/*
 * A fresh Ed25519 host key for an OpenSSH server.
 */

struct buf;
struct err;

enum { KEYGEN_PRIVATE_MAX = 1024 };

/* *ret_public: "ssh-ed25519 AAAA...", free() it. private_key: the text of an
 * unencrypted private key file (openssh-key-v1); wipe it after use. */
int keygen_ed25519(struct buf *private_key, char **ret_public,
                   struct err *err);

#endif
