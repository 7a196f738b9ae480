/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_NOTIFY_H
#define CORE_IO_NOTIFY_H

/*
 * Telling the service manager how we are: the datagram protocol of
 * sd_notify(3), without libsystemd. Does nothing when NOTIFY_SOCKET is unset.
 */

struct loop;
struct notify;

/* Reads NOTIFY_SOCKET and WATCHDOG_USEC, and removes them from the
 * environment, so that children do not speak for us. */
struct notify *notify_create(struct loop *loop);
void notify_destroy(struct notify *n); /* NULL is fine */

/* One or more lines "READY=1\nSTATUS=..." ; printf form. */
void notify_send(struct notify *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* From now on answer the watchdog, as often as it asks, from the loop. */
void notify_start_watchdog(struct notify *n);

#endif
