/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunchctl output: a container's output files into a new folder.
 *
 * File names come from a container, so nothing about them is believed: every
 * path is opened beneath the folder with openat2 (no symbolic links, no way
 * out), folders and files are made new, nothing is overwritten. A copy that
 * fails leaves what it has and says which file it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/fdio.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/ctl/client.h"
#include "core/ctl/ctl.h"
#include "core/ctl/record.h"
#include "core/ctl/verbs.h"

enum { OUTPUT_CHUNK_MAX = 64 << 20 };

static int open_beneath(int dir, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t) flags | O_CLOEXEC,
        .mode = flags & O_CREAT ? 0666 : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                   RESOLVE_NO_MAGICLINKS,
    };

    return (int) syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* The folders above a file, made one by one. */
static int make_folders(int dir, const char *path, struct err *err)
{
    for (const char *slash = strchr(path, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        CLEANUP(mem_free) char *part =
            mem_strndup(path, (size_t) (slash - path));
        char *last = strrchr(part, '/');
        CLEANUP(mem_close) int parent = -1;

        if (last)
            *last = 0;
        parent = open_beneath(dir, last ? part : ".",
                              O_RDONLY | O_DIRECTORY);
        if (parent < 0 ||
            (mkdirat(parent, last ? last + 1 : part, 0777) < 0 &&
             errno != EEXIST))
            return err_set_errno(err, errno, "%s", path);
    }
    return 0;
}

static int copy_file(struct ctl *ctl, const char *collection,
                     const char *name, int64_t size, int dir,
                     struct err *err)
{
    CLEANUP(mem_free) char *base =
        record_path("/arvados/v1/collections/", collection, "/files/");
    CLEANUP(buf_fini) struct buf path;
    CLEANUP(mem_close) int fd = -1;
    int64_t offset = 0;

    buf_init(&path, 64 << 10);
    buf_puts(&path, base);
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, "/");
        CLEANUP(mem_free) char *part = mem_strndup(p, n);

        text_encode_uri(&path, part);
        p += n;
        if (*p)
            buf_putc(&path, *p++);
    }
    if (make_folders(dir, name, err) < 0)
        return -1;
    fd = open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return err_set_errno(err, errno, "%s", name);
    while (offset < size) {
        CLEANUP(buf_fini) struct buf b;

        buf_init(&b, OUTPUT_CHUNK_MAX);
        if (client_fetch(ctl->client, path.data, offset, &b, err) < 0)
            return err_prefix(err, "%s", name);
        if (!b.len)
            return err_set(err, ERR_TRANSIENT, "%s: ends too early", name);
        if (fdio_write_all(fd, b.data, b.len) < 0)
            return err_set_errno(err, errno, "%s", name);
        offset += (int64_t) b.len;
    }
    return 0;
}

static int copy_all(struct ctl *ctl, const char *collection, int dir,
                    struct err *err)
{
    CLEANUP(mem_free) char *path =
        record_path("/arvados/v1/collections/", collection, "/files");
    CLEANUP(jsn_cleanup) struct jsn *list =
        client_call(ctl->client, CLIENT_API, "GET", path, NULL, err);
    const struct jsn *items = jsn_get(list, "items");

    if (!list)
        return -1;
    for (size_t i = 0; i < jsn_count(items); i++) {
        const struct jsn *item = jsn_at(items, i);
        CLEANUP(buf_fini) struct buf safe = {0};
        const char *name;
        int64_t size;

        if (jsn_str(item, "name", &name, err) < 0 ||
            jsn_i64(item, "size", &size, err) < 0 ||
            copy_file(ctl, collection, name, size, dir, err) < 0)
            return -1;
        buf_init(&safe, 64 << 10);
        text_quote_terminal(&safe, name, strlen(name));
        if (!ctl->json)
            printf("%s\n", safe.data);
    }
    return 0;
}

/* The collection of a record's output; "" when there is none. */
static const char *collection_of(const struct record *r)
{
    const char *uuid = record_str(r->request, "output_uuid");

    return *uuid ? uuid : record_str(r->container, "output");
}

static int copy_to(struct ctl *ctl, const struct record *r, const char *path)
{
    CLEANUP(mem_close) int dir = -1;
    const char *collection = collection_of(r);
    struct err err;

    if (!*collection)
        return ctl_fail(CTL_NOT_FOUND, "%s has no output (it is %s)",
                        ctl->args[0], record_str(r->container, "state"));
    if (mkdir(path, 0777) < 0)
        return ctl_fail(CTL_FAILED, "%s: %s%s", path, strerror(errno),
                        errno == EEXIST ? " (name a new folder)" : "");
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return ctl_fail(CTL_FAILED, "%s: %s", path, strerror(errno));
    if (copy_all(ctl, collection, dir, &err) < 0)
        return ctl_fail_err(&err);
    return CTL_OK;
}

int verb_output(struct ctl *ctl)
{
    struct record r;
    struct err err;
    int rc;

    if (ctl->n_args != 2)
        return ctl_usage(ctl, "a uuid and a folder wanted");
    if (!ctl_client(ctl))
        return CTL_USAGE;
    if (record_get(ctl->client, ctl->args[0], &r, &err) < 0)
        return ctl_fail_err(&err);
    rc = copy_to(ctl, &r, ctl->args[1]);
    record_fini(&r);
    return rc;
}
