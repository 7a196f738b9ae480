/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The steps from a name to a usable driver, each of which may refuse:
 *
 *   1. name -> `<dir>/NAME.so`, an absolute path, no symbolic link itself;
 *   2. who could have written it (trust.h);
 *   3. the file, read and not run: exports, descriptor prefix (elffile.h);
 *   4. a child opens it (preflight.h);
 *   5. we open it, check the prefix once more, copy the descriptor.
 *
 * A failed step leaves nothing behind. Every message begins with the path.
 * Runs on the main thread while a program starts.
 */

#include "core/plugin/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cdc/driver.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/plugin/descriptor.h"
#include "core/plugin/dl.h"
#include "core/plugin/elffile.h"
#include "core/plugin/hosttab.h"
#include "core/plugin/preflight.h"
#include "core/plugin/trust.h"

#ifndef DRIVERDIR
#error "DRIVERDIR is the folder where drivers are installed"
#endif

enum { PREFLIGHT_MS = 10000 };
static const char SYMBOL[] = "cdc_driver_entry";

struct entry {
    struct driver driver;
    struct cdc_driver descriptor;
    char *path;
};

struct registry {
    char *dir;
    int preflight_ms;
    VEC(struct entry *) entries;
};

struct registry *registry_create(const struct registry_options *options)
{
    struct registry *r = MEM_NEW(struct registry);

    r->dir = mem_strdup(options->dir && options->dir[0] ? options->dir
                                                        : DRIVERDIR);
    r->preflight_ms =
        options->preflight_ms > 0 ? options->preflight_ms : PREFLIGHT_MS;
    hosttab_set_log(options->log);
    trust_set_build_tree(options->trust_build_tree);
    return r;
}

static void entry_free(struct entry *e)
{
    if (!e)
        return;
    free(e->path);
    free(e);
}

void registry_destroy(struct registry *r)
{
    if (!r)
        return;
    hosttab_set_log(NULL);
    for (size_t i = 0; i < r->entries.n; i++)
        entry_free(r->entries.v[i]);
    VEC_FINI(&r->entries);
    free(r->dir);
    free(r);
}

/* --- step 3 -------------------------------------------------------------- */

static int check_file(const char *path, struct err *err)
{
    struct descriptor_prefix prefix;
    CLEANUP(mem_close) int fd = -1;
    struct stat st;
    size_t size;

    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st))
        return err_set_errno(err, errno, "open");
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_CONFIG, "not a regular file");
    if (elffile_read_symbol(fd, SYMBOL, &prefix, sizeof prefix, &size, err))
        return -1;
    return descriptor_check_prefix(&prefix, size, descriptor_host(), err);
}

/* --- step 5 -------------------------------------------------------------- */

static int open_for_good(struct entry *e, const char *stem, struct err *err)
{
    struct descriptor_prefix prefix;
    const void *symbol;
    void *module;
    size_t size;

    if (!(module = dl_open(e->path, err)) ||
        !(symbol = dl_symbol(module, SYMBOL, &size, err)))
        return -1;
    memcpy(&prefix, symbol, sizeof prefix);
    if (descriptor_check_prefix(&prefix, size, descriptor_host(), err))
        return -1;
    return descriptor_copy(symbol, stem, &e->descriptor, err);
}

/* --- all of them --------------------------------------------------------- */

static const struct driver *find(const struct registry *r, const char *path)
{
    for (size_t i = 0; i < r->entries.n; i++)
        if (strcmp(r->entries.v[i]->path, path) == 0)
            return &r->entries.v[i]->driver;
    return NULL;
}

/* path is spelled by the caller, resolved has no symbolic link. */
static const struct driver *load(struct registry *r, const char *path,
                                 const char *resolved, struct err *err)
{
    CLEANUP(mem_free) char *stem = NULL;
    const char *base = strrchr(resolved, '/') + 1;
    struct entry *e;

    if (trust_check(path, err) || check_file(resolved, err) ||
        preflight_run(resolved, r->preflight_ms, err))
        return NULL;
    stem = mem_strndup(base, strlen(base) - 3);
    e = MEM_NEW(struct entry);
    e->path = mem_strdup(resolved);
    if (open_for_good(e, stem, err)) {
        entry_free(e);
        return NULL;
    }
    e->driver.name = e->descriptor.name;
    e->driver.path = e->path;
    e->driver.descriptor = &e->descriptor;
    VEC_PUSH(&r->entries, e);
    return &e->driver;
}

static int check_spelling(const char *path, struct err *err)
{
    size_t n = strlen(path);
    struct stat st;

    if (n < 4 || strcmp(path + n - 3, ".so") != 0 || path[n - 4] == '/')
        return err_set(err, ERR_CONFIG, "the file's name must end in .so");
    if (lstat(path, &st))
        return err_set_errno(err, errno, "cannot be loaded");
    if (S_ISLNK(st.st_mode))
        return err_set(err, ERR_CONFIG, "a symbolic link is not accepted");
    return 0;
}

/* "/abs/path" as it is, "rel/path" below the working directory. */
static char *absolute(const char *path)
{
    CLEANUP(mem_free) char *cwd = path[0] == '/' ? NULL
                                                 : getcwd(NULL, 0);

    return cwd ? mem_printf("%s/%s", cwd, path) : mem_strdup(path);
}

const struct driver *registry_load_file(struct registry *r, const char *path,
                                        struct err *err)
{
    CLEANUP(mem_free) char *spelled = absolute(path);
    CLEANUP(mem_free) char *resolved = NULL;
    const struct driver *d = NULL;

    if (check_spelling(spelled, err) == 0) {
        if (!(resolved = realpath(spelled, NULL)))
            err_set_errno(err, errno, "cannot be loaded");
        else if (!(d = find(r, resolved)))
            d = load(r, spelled, resolved, err);
    }
    if (!d)
        err_prefix(err, "driver %s", path);
    return d;
}

const struct driver *registry_load(struct registry *r, const char *name,
                                   struct err *err)
{
    CLEANUP(mem_free) char *path = NULL;

    if (!text_is_name(name, 63)) {
        err_set(err, ERR_CONFIG,
                "driver name '%.64s' is not [a-z0-9_-]{1,63}", name);
        return NULL;
    }
    path = mem_printf("%s/%s.so", r->dir, name);
    return registry_load_file(r, path, err);
}
