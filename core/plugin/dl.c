/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Modules through libltdl, with a loader of our own.
 *
 * libltdl's stock loader binds lazily (a missing function ends the process at
 * its first call), forgets the linker's message (everything is "file not
 * found"), and there is no way to ask it for anything else. So we register a
 * loader that calls dlopen() with NOW, LOCAL and NODELETE and keeps the text
 * of dlerror(), and remove the stock one: libltdl asks its loaders in turn,
 * and the stock one would open lazily what ours has just refused. Removing
 * works only before the first module is open, therefore it happens in init.
 * The loader for preloaded modules (`lt_preopen`) stays.
 *
 * Names without a path search LTDL_LIBRARY_PATH and more, names without `.so`
 * read `.la` files, which can name any other file: both are refused here.
 *
 * lt_dlclose and lt_dlexit are never called: unloading code in a threaded
 * program cannot be made safe (thread-specific destructors, exit handlers,
 * threads inside). lt_dlerror's text may be freed memory after the next call,
 * so it is copied at once and only used when we have no better words.
 *
 * libltdl has global state and is not safe for threads: one lock around it.
 */

#include "core/plugin/dl.h"

#include <dlfcn.h>
#include <link.h>
#include <ltdl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/text.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char reason[1024]; /* dlerror's text of the last failure */

static void keep_reason(void)
{
    const char *text = dlerror();

    text_copy(reason, text ? text : "", sizeof reason);
}

static lt_module module_open(lt_user_data data, const char *filename,
                             lt_dladvise advise)
{
    void *module;

    (void)data;
    (void)advise;
    reason[0] = '\0';
    module = dlopen(filename, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!module)
        keep_reason();
    return module;
}

static int module_close(lt_user_data data, lt_module module)
{
    (void)data;
    (void)module;
    return 0;
}

static void *find_sym(lt_user_data data, lt_module module, const char *name)
{
    (void)data;
    return dlsym(module, name);
}

static const lt_dlvtable loader = {
    .name = "cdc_now",
    .sym_prefix = "",
    .module_open = module_open,
    .module_close = module_close,
    .find_sym = find_sym,
    .priority = LT_DLLOADER_PREPEND,
};

static int ltdl_failed(struct err *err, const char *what)
{
    char text[256];
    const char *words = lt_dlerror();

    text_copy(text, words ? words : "no reason given", sizeof text);
    return err_set(err, ERR_INTERNAL, "%s: %s", what, text);
}

/* Once per process. */
static int init(struct err *err)
{
    static bool ready;
    lt_dlvtable *stock;

    if (ready)
        return 0;
    if (lt_dlinit() != 0)
        return ltdl_failed(err, "lt_dlinit");
    if (!(stock = lt_dlloader_remove("lt_dlopen")))
        return ltdl_failed(err, "cannot remove libltdl's own loader");
    free(stock); /* as lt_dlexit does: it was allocated for the list */
    if (lt_dlloader_add(&loader) != 0)
        return ltdl_failed(err, "cannot add our loader to libltdl");
    ready = true;
    return 0;
}

static bool acceptable(const char *path)
{
    size_t n = strlen(path);

    return path[0] == '/' && n > 3 && strcmp(path + n - 3, ".so") == 0;
}

static void *open_locked(const char *path, struct err *err)
{
    lt_dlhandle module;

    if (init(err))
        return NULL;
    reason[0] = '\0';
    module = lt_dlopen(path);
    if (module)
        return module;
    if (reason[0])
        err_set(err, ERR_CONFIG, "%s", reason);
    else
        ltdl_failed(err, path);
    return NULL;
}

void *dl_open(const char *path, struct err *err)
{
    void *module;

    if (!acceptable(path)) {
        err_set(err, ERR_CONFIG,
                "%s: not an absolute path that ends in .so", path);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    module = open_locked(path, err);
    pthread_mutex_unlock(&lock);
    return module;
}

const void *dl_symbol(void *module, const char *name, size_t *ret_size,
                      struct err *err)
{
    const ElfW(Sym) *symbol = NULL;
    const void *address;
    Dl_info info;

    pthread_mutex_lock(&lock);
    address = lt_dlsym(module, name);
    pthread_mutex_unlock(&lock);
    if (!address) {
        err_set(err, ERR_CONFIG, "it exports no %s", name);
        return NULL;
    }
    if (!dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT))
        symbol = NULL;
    *ret_size = symbol ? symbol->st_size : 0;
    return address;
}
