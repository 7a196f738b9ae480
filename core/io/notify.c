/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sd_notify(3) by hand: the protocol is one datagram to a Unix socket whose
 * address the service manager leaves in the environment, promised to stay as
 * it is; a library for it would bring seven others. Failure to tell the
 * manager is not our failure: it is ignored, and the manager's own time-out
 * speaks. Loop thread.
 */
#include "core/io/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/io/loop.h"

struct notify {
    struct loop *loop;
    int fd;
    struct sockaddr_un addr;
    socklen_t addr_len;
    int64_t watchdog_us;
    struct loop_timer *timer;
};

static void read_address(struct notify *n, const char *path)
{
    size_t len = strlen(path);

    if ((*path != '/' && *path != '@') || len >= sizeof n->addr.sun_path)
        return;
    n->addr.sun_family = AF_UNIX;
    memcpy(n->addr.sun_path, path, len);
    if (*path == '@')
        n->addr.sun_path[0] = 0;
    n->addr_len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len);
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* WATCHDOG_PID, when set, says whom the manager watches. */
static void read_watchdog(struct notify *n)
{
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    int64_t us = 0, who = getpid();

    if (!usec || text_parse_i64(usec, &us, NULL) < 0 || us <= 0)
        return;
    if (pid && (text_parse_i64(pid, &who, NULL) < 0 || who != getpid()))
        return;
    n->watchdog_us = us;
}

struct notify *notify_create(struct loop *loop)
{
    struct notify *n = MEM_NEW(struct notify);
    const char *path = getenv("NOTIFY_SOCKET");

    n->loop = loop;
    n->fd = -1;
    if (path)
        read_address(n, path);
    read_watchdog(n);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return n;
}

void notify_destroy(struct notify *n)
{
    if (!n)
        return;
    loop_timer_cancel(n->timer);
    mem_close(&n->fd);
    free(n);
}

void notify_send(struct notify *n, const char *fmt, ...)
{
    char text[1024];
    int len;
    va_list ap;

    if (n->fd < 0)
        return;
    va_start(ap, fmt);
    len = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (len <= 0)
        return;
    if ((size_t) len >= sizeof text)
        len = sizeof text - 1;
    sendto(n->fd, text, (size_t) len, MSG_NOSIGNAL | MSG_DONTWAIT,
           (const struct sockaddr *) &n->addr, n->addr_len);
}

static void on_watchdog(void *arg)
{
    struct notify *n = arg;

    notify_send(n, "WATCHDOG=1");
    n->timer = loop_timer_arm(n->loop, n->watchdog_us / 3, on_watchdog, n);
}

void notify_start_watchdog(struct notify *n)
{
    if (n->watchdog_us > 0 && n->fd >= 0 && !n->timer)
        n->timer = loop_timer_arm(n->loop, 0, on_watchdog, n);
}
