/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the files of an attempt to its two manifests.
 *
 * Runs before the transaction that makes the container final, on a thread that
 * has no database: hashing gigabytes there would stop every other write. When
 * the server is durable, content and folders are synced here, so that a record
 * never names files that a loss of power could take away.
 */
#include "core/apiserver/publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/apiserver/files.h"
#include "core/apiserver/ident.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"

enum { PIECE = 256 * 1024 };

struct publish {
    char uuid[IDENT_UUID];
    int64_t attempt;
    struct manifest log, output;
};

struct reader {
    struct manifest_w *w;
    bool durable;
    char *piece;
};

static int read_file(void *arg, const char *dir, const char *name, int fd,
                     int64_t size, struct err *err)
{
    struct reader *r = arg;
    ssize_t got;

    (void) size;
    manifest_file(r->w, dir, name);
    while ((got = read(fd, r->piece, PIECE)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_errno(err, errno, "cannot read %.200s", name);
        manifest_data(r->w, r->piece, (size_t) got);
    }
    if (r->durable && fdatasync(fd) < 0)
        return err_set_errno(err, errno, "cannot sync %.200s", name);
    return 0;
}

static int hash(struct files *f, const struct files_at *at,
                struct manifest *m, struct err *err)
{
    CLEANUP(mem_free) char *piece = mem_zalloc(PIECE);
    struct reader r = {manifest_begin(m), files_durable(f), piece};
    int walked = files_walk(f, at, true, read_file, &r, err);

    return manifest_end(r.w, walked < 0 ? NULL : err) < 0 ? -1 : walked;
}

struct publish *publish_create(struct files *f, const char *uuid,
                               int64_t attempt, struct err *err)
{
    struct publish *p = MEM_NEW(struct publish);
    struct files_at log = {uuid, attempt, FILES_LOG};
    struct files_at output = {uuid, attempt, FILES_OUTPUT};

    text_copy(p->uuid, uuid, sizeof p->uuid);
    p->attempt = attempt;
    manifest_init(&p->log);
    manifest_init(&p->output);
    if (hash(f, &log, &p->log, err) == 0 &&
        hash(f, &output, &p->output, err) == 0) {
        files_forget(f, uuid, attempt);
        return p;
    }
    publish_free(p);
    return NULL;
}

void publish_free(struct publish *p)
{
    if (!p)
        return;
    manifest_fini(&p->log);
    manifest_fini(&p->output);
    free(p);
}

bool publish_is_of(const struct publish *p, const char *uuid, int64_t attempt)
{
    return p->attempt == attempt && strcmp(p->uuid, uuid) == 0;
}

const struct manifest *publish_log(const struct publish *p)
{
    return &p->log;
}

const struct manifest *publish_output(const struct publish *p)
{
    return &p->output;
}
