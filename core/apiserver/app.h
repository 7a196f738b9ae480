/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_APP_H
#define CORE_APISERVER_APP_H

/*
 * The server: its configuration as a plain record, and the object that owns
 * everything. core/apiserver/main.c fills the one from core/conf and runs the
 * other.
 */

#include <stdbool.h>
#include <stdint.h>

struct err;
struct app;
struct feed;
struct files;
struct httpd;
struct janitor;
struct limit;
struct logger;
struct loop;
struct stats;
struct status;
struct store;

/* Texts are borrowed and live as long as the server. */
struct app_cfg {
    char cluster_id[6];
    const char *root_token;       /* SystemRootToken */
    const char *management_token; /* "" = no /metrics, no /_health */
    char *external_url;           /* without a trailing slash */
    const char *address;          /* numeric, to listen on */
    int port;                     /* 0 = any */
    const char *database;
    const char *files_dir;
    const char *dispatch_url;     /* for container_status; "" = none */
    bool durable;                 /* fdatasync: store and files */

    int64_t max_dispatch_attempts;
    int64_t max_retry_attempts;
    int64_t max_items;            /* of a list page */
    int64_t max_body;             /* bytes */
    int64_t max_calls;            /* requests in work or waiting */
    int64_t max_conns;
    int64_t max_conns_peer;
    int64_t max_rate;             /* requests a second and token, 0 = any */
    int64_t readers;
    int64_t max_file, max_attempt_bytes, max_attempt_files;
    int64_t feed_length;
};

/* What handlers use. Loop thread, but for cfg (never changes), files (any
 * thread) and log (any thread). */
struct app {
    struct app_cfg cfg;
    struct loop *loop;
    struct logger *log;
    struct store *store;
    struct files *files;
    struct feed *feed;
    struct limit *limit;
    struct stats *stats;
    struct status *status;
    struct httpd *httpd;
    struct janitor *janitor;
    char *discovery;              /* the document, made once */
    int64_t calls;                /* requests in work or waiting */
    bool stopping;                /* no more long polls */
    void (*stopped)(void *arg);   /* what app_stop was told to call */
    void *stopped_arg;
};

/* Open store and files, listen. log is borrowed. */
struct app *app_create(struct loop *l, const struct app_cfg *cfg,
                       struct logger *log, struct err *err);
int app_port(const struct app *app);
/* Answer what has arrived, then done(arg), within deadline_ms. */
void app_stop(struct app *app, int64_t deadline_ms, void (*done)(void *arg),
              void *arg);
void app_destroy(struct app *app); /* NULL is fine */

#endif
