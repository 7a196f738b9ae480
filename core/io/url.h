/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_URL_H
#define CORE_IO_URL_H

/*
 * The URLs that this suite is given: http or https, a host, perhaps a port
 * and a path; no user, no query, no fragment (RFC 3986 without the rest).
 */

#include <stdbool.h>

struct err;

struct url {
    bool tls;
    char host[256]; /* without brackets; "localhost" becomes 127.0.0.1 */
    int port;       /* 80 or 443 when not given; 0 is kept */
    char path[512]; /* starts with '/'; one trailing '/' removed, so "/" is
                     * "" */
};

/* ERR_CONFIG names the text and what is wrong. */
int url_parse(const char *text, struct url *ret, struct err *err);

/* A numeric address of 127/8, or ::1. */
bool url_is_loopback(const struct url *u);

#endif
