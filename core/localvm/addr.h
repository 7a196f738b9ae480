/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_ADDR_H
#define CORE_LOCALVM_ADDR_H

/*
 * A loopback address and port for a VM's sshd.
 *
 * Ports are high, because any sshd on 0.0.0.0:22 takes port 22 of every
 * loopback address, and below 32768, where the kernel's own choices begin.
 */

#include <stdint.h>

struct err;

enum { ADDR_PORT_FIRST = 20000, ADDR_PORT_LAST = 32000 };

struct addr_range {
    uint32_t first; /* usable addresses, host byte order */
    uint32_t count;
};

/* "127.A.B.C/LEN", LEN 8..24; ERR_CONFIG. The first and the last address
 * and 127.0.0.x are left out. */
int addr_parse_range(const char *text, struct addr_range *ret,
                     struct err *err);

/* A free one, found by trying to bind; nothing is kept open. ERR_CAPACITY
 * when many tries failed. out: 16 bytes. */
int addr_choose(const struct addr_range *range, char out[16], int *ret_port,
                struct err *err);

#endif
