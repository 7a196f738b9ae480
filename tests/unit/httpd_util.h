/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_HTTPD_UTIL_H
#define TESTS_UNIT_HTTPD_UTIL_H

/*
 * A server on a thread of its own and blocking clients, for the tests of
 * core/io/httpd. srv_start and srv_finish are a test's setup and teardown;
 * text that a function returns is the caller's.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "core/io/httpd.h"
#include "core/io/loop.h"
#include "tests/unit/unit.h"

#define H "Host: x\r\n"
#define C "Connection: close\r\n"

enum { BIG = 8 << 20, HEAD_MS = 300, BODY_MS = 900 };

struct srv {
    struct loop *loop;
    struct httpd *h;
    struct httpd_cfg cfg;
    pthread_t thread;
    struct httpd_req *held;
    atomic_int gone, replies, handled;
    atomic_int conns; /* see conns_now() */
    atomic_bool stopped;
    char *big;
};

void *srv_run(void *arg);
void srv_stop_loop(void *arg);
int srv_start(void **state);
int srv_finish(void **state);
int srv_dial_from(const struct srv *s, const char *from);
int srv_dial(const struct srv *s);
void put(int fd, const char *text, size_t n);
void puts_to(int fd, const char *text);
char *read_to_end(int fd);
char *talk(const struct srv *s, const char *request, size_t n);
void expect(const struct srv *s, const char *request, size_t n,
            const char *what, const char *status);
void expect_text(const struct srv *s, const char *request,
                 const char *status);
char *read_one(int fd);

#endif
