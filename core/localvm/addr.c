/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addr.c: choosing where a VM's sshd listens.
 *
 * All of 127/8 is the machine itself, so an address of its own per VM costs
 * nothing and lets every VM use any port. The choice is random in the range
 * and then tried with bind(2): another program may have the port on all
 * addresses. Between the trial and sshd's own bind somebody could take it;
 * with millions of pairs that is left to sshd's restart.
 */

#include "core/localvm/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/secret.h"

enum { TRIES = 64, LEN_MIN = 8, LEN_MAX = 24 };

int addr_parse_range(const char *text, struct addr_range *ret,
                     struct err *err)
{
    unsigned a, b, c, d, len;
    uint32_t base, size;
    char end;

    if (sscanf(text, "%3u.%3u.%3u.%3u/%2u%c", &a, &b, &c, &d, &len,
               &end) != 5 || a != 127 || b > 255 || c > 255 || d > 255)
        return err_set(err, ERR_CONFIG, "address_range: %.40s is not of the "
                       "form 127.A.B.C/LEN", text);
    if (len < LEN_MIN || len > LEN_MAX)
        return err_set(err, ERR_CONFIG, "address_range: a length from %d to "
                       "%d is needed", LEN_MIN, LEN_MAX);
    size = 1U << (32 - len);
    base = (a << 24 | b << 16 | c << 8 | d) & ~(size - 1);
    ret->first = base + 1;
    ret->count = size - 2;
    if (base >> 8 == 0x7f0000) { /* 127.0.0.x is everybody's */
        if (size <= 256)
            return err_set(err, ERR_CONFIG, "address_range: 127.0.0.x is "
                           "not for VMs");
        ret->first = base + 256;
        ret->count = size - 257;
    }
    return 0;
}

static int try_bind(uint32_t address, int port)
{
    CLEANUP(mem_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC,
                                       0);
    struct sockaddr_in sin = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t) port),
        .sin_addr.s_addr = htonl(address),
    };

    return fd < 0 ? -1 : bind(fd, (struct sockaddr *) &sin, sizeof sin);
}

int addr_choose(const struct addr_range *range, char out[16], int *ret_port,
                struct err *err)
{
    int i, errnum = 0;

    for (i = 0; i < TRIES; i++) {
        uint32_t dice[2], address;
        int port;
        secret_random(dice, sizeof dice);
        address = range->first + dice[0] % range->count;
        port = ADDR_PORT_FIRST +
               (int) (dice[1] % (ADDR_PORT_LAST - ADDR_PORT_FIRST));
        if (try_bind(address, port) == 0) {
            snprintf(out, 16, "%u.%u.%u.%u", address >> 24,
                     address >> 16 & 255, address >> 8 & 255, address & 255);
            *ret_port = port;
            return 0;
        }
        errnum = errno;
    }
    err_set_errno(err, errnum, "no free loopback address");
    if (err)
        err->class = ERR_CAPACITY;
    return -1;
}
