/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_API_H
#define CORE_RUNNER_API_H

/*
 * The API server as the runner sees it: one container, one attempt token
 * (doc/protocol-api.md, "Attempts" and "Logs and output").
 *
 * The class of an error is the verdict:
 *   AUTH       401, 403: the attempt was revoked or superseded. Kill the
 *              payload and write nothing more.
 *   NOT_FOUND  404
 *   TOO_LARGE  413: this file may not grow further
 *   INVALID    any other 4xx: refused, and would be refused again
 *   TRANSIENT  connection lost, 429, 5xx: worth repeating
 *   TIMEOUT    no answer in time: worth repeating
 *   CANCELLED  the wake descriptor became readable
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct http_url;

enum {
    API_RECORD_MAX = 16 * 1024 * 1024,
    API_PIECE_MAX = 8 * 1024 * 1024, /* the server takes 16 MiB a body */
    API_CALL_MS = 60 * 1000,
};

struct api;

struct api *api_create(const struct http_url *url, const char *uuid,
                       const char *token);
void api_destroy(struct api *a); /* NULL is fine */
/* A child forgets connection and token. */
void api_forget(struct api *a);

/* Calls and pauses end early (CANCELLED) when fd is readable; -1 = never. */
void api_set_wake(struct api *a, int fd);

/* Until when failed calls are repeated, monotonic; 0 = never (the default). */
void api_set_patience(struct api *a, int64_t until_us);

/* When the server last answered with anything but an error, monotonic. */
int64_t api_last_ok_us(const struct api *a);

/* GET containers/{uuid}: the record as JSON text, appended. */
int api_get(struct api *a, struct buf *record, struct err *err);
/* The same with only the members state and priority. */
int api_get_state(struct api *a, struct buf *record, struct err *err);
int api_get_auth(struct api *a, struct buf *record, struct err *err);
/* {"secret_mounts": {...}}, which no record shows. */
int api_get_secrets(struct api *a, struct buf *reply, struct err *err);

/* PUT containers/{uuid} with {"container": members}; members is the text of
 * a JSON object. The reply's record is appended when ret is not NULL. */
int api_update(struct api *a, const char *members, struct buf *ret,
               struct err *err);

/* PUT containers/{uuid}/{kind}/{path}?offset=at: n bytes of fd from there.
 * kind: "log" or "output"; path is escaped here. n <= API_PIECE_MAX. */
int api_put_file(struct api *a, const char *kind, const char *path, int fd,
                 int64_t at, size_t n, struct err *err);

#endif
