/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunchctl logs: a container's stdout.txt and stderr.txt on the streams of
 * the same name, or one named file. With -f it polls, each second at most,
 * until the request is final and its files have been read to the end.
 *
 * What a container writes is not to be trusted: control characters are made
 * visible unless --raw is given. Newlines and tabs stay.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/fdio.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/ctl/client.h"
#include "core/ctl/ctl.h"
#include "core/ctl/logcopy.h"
#include "core/ctl/record.h"
#include "core/ctl/verbs.h"

enum { LOGS_CHUNK_MAX = 64 << 20, LOGS_POLL_MS = 300 };

/* Quote everything but newline and tab. */
static void quote(const struct buf *in, struct buf *out)
{
    const char *p = in->data, *end = in->data + in->len;

    while (p < end) {
        const char *q = p;

        while (q < end && *q != '\n' && *q != '\t')
            q++;
        text_quote_terminal(out, p, (size_t) (q - p));
        if (q < end)
            buf_putc(out, *q++);
        p = q;
    }
}

static int emit(struct ctl *ctl, int fd, const struct buf *b, struct err *err)
{
    CLEANUP(buf_fini) struct buf quoted;

    buf_init(&quoted, 4 * b->len + 16);
    if (!ctl_has(ctl, "raw")) {
        quote(b, &quoted);
        b = &quoted;
    }
    if (fdio_write_all(fd, b->data, b->len) < 0)
        return err_set_errno(err, errno, "cannot write");
    return 0;
}

int logcopy_file(struct ctl *ctl, const char *request, const char *name,
                 int fd, int64_t *offset, struct err *err)
{
    CLEANUP(mem_free) char *dir =
        record_path("/arvados/v1/container_requests/", request, "/log/");
    CLEANUP(mem_free) char *path = record_path(dir, name, "");

    for (;;) {
        CLEANUP(buf_fini) struct buf b;

        buf_init(&b, LOGS_CHUNK_MAX);
        if (client_fetch(ctl->client, path, *offset, &b, err) < 0)
            return err->class == ERR_NOT_FOUND ? 0 : -1;
        if (!b.len)
            return 0;
        *offset += (int64_t) b.len;
        if (emit(ctl, fd, &b, err) < 0)
            return -1;
    }
}

void logcopy_all(struct ctl *ctl, const char *request)
{
    int64_t out = 0, errout = 0;
    struct err err;

    if (logcopy_file(ctl, request, "stdout.txt", 1, &out, &err) < 0 ||
        logcopy_file(ctl, request, "stderr.txt", 2, &errout, &err) < 0)
        ctl_fail_err(&err);
}

struct follow {
    const char *request;
    const char *only;
    int64_t out, errout;
};

static int copy(struct ctl *ctl, struct follow *f, struct err *err)
{
    if (f->only)
        return logcopy_file(ctl, f->request, f->only, 1, &f->out, err);
    if (logcopy_file(ctl, f->request, "stdout.txt", 1, &f->out, err) < 0)
        return -1;
    return logcopy_file(ctl, f->request, "stderr.txt", 2, &f->errout, err);
}

static int follow(struct ctl *ctl, struct follow *f, struct err *err)
{
    for (;;) {
        struct record r;
        bool final;

        if (record_get(ctl->client, f->request, &r, err) < 0)
            return -1;
        final = record_final(&r);
        record_fini(&r);
        /* Read after it was seen to be final: then nothing is missed. */
        if (copy(ctl, f, err) < 0)
            return -1;
        if (final || !client_sleep(ctl->client, LOGS_POLL_MS))
            return 0;
    }
}

int verb_logs(struct ctl *ctl)
{
    struct follow f = { .only = ctl_opt(ctl, "name") };
    CLEANUP(mem_free) char *uuid = NULL;
    struct record r;
    struct err err;
    int rc;

    if (ctl->n_args != 1)
        return ctl_usage(ctl, "one uuid wanted");
    if (!ctl_client(ctl))
        return CTL_USAGE;
    if (record_get(ctl->client, ctl->args[0], &r, &err) < 0)
        return ctl_fail_err(&err);
    uuid = mem_strdup(record_str(r.request, "uuid"));
    record_fini(&r);
    if (!uuid || !*uuid)
        return ctl_fail(CTL_NOT_FOUND, "%s: no request of yours has it",
                        ctl->args[0]);
    f.request = uuid;
    rc = ctl_has(ctl, "follow") ? follow(ctl, &f, &err)
                                : copy(ctl, &f, &err);
    return rc < 0 ? ctl_fail_err(&err) : CTL_OK;
}
