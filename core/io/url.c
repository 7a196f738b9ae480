/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of the few URLs that settings contain. Strict: what is not needed
 * is refused, so that a password in a URL, a query or a stray fragment is
 * noticed where it was written and not where it is used. Pure.
 */
#include "core/io/url.h"

#include <arpa/inet.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/text.h"

static int refuse(const char *text, const char *what, struct err *err)
{
    return err_set(err, ERR_CONFIG, "URL \"%s\": %s", text, what);
}

static const char *scheme(const char *text, bool *ret_tls)
{
    if (!strncmp(text, "http://", 7)) {
        *ret_tls = false;
        return text + 7;
    }
    if (!strncmp(text, "https://", 8)) {
        *ret_tls = true;
        return text + 8;
    }
    return NULL;
}

static int parse_port(const char *digits, size_t n, int *ret)
{
    char text[8];
    int64_t port;

    if (n == 0 || n >= sizeof text || strspn(digits, "0123456789") < n)
        return -1;
    memcpy(text, digits, n);
    text[n] = 0;
    if (text_parse_i64(text, &port, NULL) < 0 || port > 65535)
        return -1;
    *ret = (int) port;
    return 0;
}

/* host, host:port or [v6]:port in [p, end). */
static int parse_authority(const char *text, const char *p, const char *end,
                           struct url *u, struct err *err)
{
    const char *close = *p == '[' ? memchr(p, ']', (size_t) (end - p)) : NULL;
    const char *colon = memchr(close ? close : p, ':',
                               (size_t) (end - (close ? close : p)));
    const char *host = close ? p + 1 : p;
    size_t n = (size_t) ((close ? close : colon ? colon : end) - host);

    if (*p == '[' && !close)
        return refuse(text, "a bracket is not closed", err);
    if (n == 0 || n >= sizeof u->host)
        return refuse(text, "the host is missing or too long", err);
    memcpy(u->host, host, n);
    u->host[n] = 0;
    if (strpbrk(u->host, "@%\\ "))
        return refuse(text, "the host has a character that does not belong "
                            "there", err);
    u->port = u->tls ? 443 : 80;
    if (colon && parse_port(colon + 1, (size_t) (end - colon - 1),
                            &u->port) < 0)
        return refuse(text, "the port is not a number up to 65535", err);
    if (!strcmp(u->host, "localhost"))
        text_copy(u->host, "127.0.0.1", sizeof u->host);
    return 0;
}

int url_parse(const char *text, struct url *ret, struct err *err)
{
    struct url u = { 0 };
    const char *p = scheme(text, &u.tls), *slash;
    size_t n;

    if (!p)
        return refuse(text, "http:// or https:// wanted", err);
    if (strpbrk(p, "?#"))
        return refuse(text, "a query or fragment does not belong here", err);
    slash = strchr(p, '/');
    if (!slash)
        slash = p + strlen(p);
    if (parse_authority(text, p, slash, &u, err) < 0)
        return -1;
    n = text_copy(u.path, slash, sizeof u.path);
    if (n >= sizeof u.path)
        return refuse(text, "the path is too long", err);
    if (n && u.path[n - 1] == '/')
        u.path[n - 1] = 0;
    *ret = u;
    return 0;
}

bool url_is_loopback(const struct url *u)
{
    struct in_addr v4;

    if (inet_pton(AF_INET, u->host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return !strcmp(u->host, "::1");
}
