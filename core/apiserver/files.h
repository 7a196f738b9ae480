/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_FILES_H
#define CORE_APISERVER_FILES_H

/*
 * Logs and output of containers, as plain files beside the database: one
 * folder for each attempt, with `log` and `output` in it.
 *
 * Any thread. Names come from clients: each part is checked, no link is ever
 * followed, nothing outside the folder can be reached.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct files;

struct files_opts {
    const char *dir;         /* made if it is not there */
    bool durable;            /* fdatasync before files are published */
    int64_t max_file;        /* bytes; beyond: ERR_TOO_LARGE */
    int64_t max_attempt;     /* bytes of one attempt */
    int64_t max_files;       /* files of one attempt */
};

int files_open(const struct files_opts *opts, struct files **ret,
               struct err *err);
void files_close(struct files *f); /* NULL is fine */

enum files_kind { FILES_LOG, FILES_OUTPUT };

/* Which files: of one attempt of a container. */
struct files_at {
    const char *uuid;
    int64_t attempt;
    enum files_kind kind;
};

/* May a client name a file so? ERR_INVALID. Log names are a fixed list. */
int files_check_name(enum files_kind kind, const char *path,
                     struct err *err);

/*
 * Write n bytes at offset, which may not exceed the present length
 * (ERR_CONFLICT, the text names it). truncate: the file ends there. *ret_size:
 * the length then.
 */
int files_put(struct files *f, const struct files_at *at, const char *path,
              int64_t offset, bool truncate, const void *p, size_t n,
              int64_t *ret_size, struct err *err);

/* Append up to max bytes from offset to out; *ret_total: the length.
 * ERR_NOT_FOUND. An offset beyond the end reads nothing. */
int files_get(struct files *f, const struct files_at *at, const char *path,
              int64_t offset, size_t max, struct buf *out,
              int64_t *ret_total, struct err *err);

/*
 * Every file: a folder's files in order of name, then its folders likewise.
 * dir is "" or "a/b". fd is open for reading; -1 unless `open`. each() returns
 * -1 to end the walk. No such attempt: nothing to walk over.
 */
int files_walk(struct files *f, const struct files_at *at, bool open,
               int (*each)(void *arg, const char *dir, const char *name,
                           int fd, int64_t size, struct err *err),
               void *arg, struct err *err);

/* Is the store durable: must what is published be synced? */
bool files_durable(const struct files *f);

/* Forget what is remembered of an attempt that takes no more files. */
void files_forget(struct files *f, const char *uuid, int64_t attempt);

#endif
