/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_MANIFEST_H
#define CORE_APISERVER_MANIFEST_H

/*
 * Arvados manifests: what files a collection has, and in which blocks their
 * content lies (source: Arvados, "Manifest format"). Written stream by stream:
 * a stream is a folder, its files follow one another in blocks of at most
 * 64 MiB, each named by its MD5 and size.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"

struct err;
struct manifest_w;

struct manifest {
    struct buf text;
    char pdh[56];   /* portable data hash: MD5 of the text + its length */
    int64_t files;
    int64_t bytes;
};

void manifest_init(struct manifest *m);
void manifest_fini(struct manifest *m);

struct manifest_w *manifest_begin(struct manifest *m);
/* The next file, in folder dir ("" = top). Files of one folder must come one
 * after the other. */
void manifest_file(struct manifest_w *w, const char *dir, const char *name);
/* Content of the present file, in pieces. */
void manifest_data(struct manifest_w *w, const void *p, size_t n);
/* Complete m and free the writer. ERR_TOO_LARGE. */
int manifest_end(struct manifest_w *w, struct err *err);

#endif
