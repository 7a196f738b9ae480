/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SSH_SSH_PORT_H
#define CORE_SSH_SSH_PORT_H

/*
 * The exec port (core/port/exec.h) over SSH: libssh, non-blocking, on one
 * thread of its own. Logs in by public key only; no agent, no configuration
 * file, no known_hosts, no name resolution is ever consulted.
 */

#include <stddef.h>

struct err;
struct exec_port;
struct loop;
struct ssh_port;

/* private_key: PEM or OpenSSH text (ed25519, ECDSA, RSA), not encrypted.
 * default_port: for targets whose port is 0. ERR_CONFIG when the key cannot
 * be read. */
struct ssh_port *ssh_port_create(struct loop *loop, const char *private_key,
                                 int default_port, struct err *err);
/* Every session must be closed and every op have ended. NULL is fine. */
void ssh_port_destroy(struct ssh_port *p);
struct exec_port *ssh_port_exec(struct ssh_port *p);

/* The public part, "ssh-ed25519 AAAA...", borrowed. */
const char *ssh_port_public_key(const struct ssh_port *p);

#endif
