/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing and reading the runner to deploy.
 *
 * In Arvados the default of DeployRunnerBinary, /proc/self/exe, is right
 * because its dispatcher and its runner are one program. Ours are two, so
 * that value (given or by default) means: our crunch-run for containers of
 * our own API server; for an Arvados cluster the real one, which alone knows
 * Keep: /usr/bin/crunch-run, else /usr/bin/arvados-server. Never the wrong
 * one silently. An empty value deploys nothing. Read once at the start;
 * RUNNER_MAX bounds what a mistake can load.
 */
#include "core/dispatcher/runner_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/conf/conf.h"
#include "core/io/crypt.h"
#include "core/model/dispatch_cfg.h"

enum { RUNNER_MAX = 512 << 20 };

static const char self_exe[] = "/proc/self/exe";

static bool usable(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111;
}

static const char *choose(const struct conf *conf, bool attempts,
                          struct err *err)
{
    static const char *const real[] = { "/usr/bin/crunch-run",
                                        "/usr/bin/arvados-server" };

    if (strcmp(conf->deploy_runner, self_exe) != 0)
        return conf->deploy_runner;
    if (attempts) {
        if (usable(CDC_RUNNER_PATH))
            return CDC_RUNNER_PATH;
        err_set(err, ERR_CONFIG,
                "there is no runner at %s: install crunch-run, or name one "
                "with Containers.CloudVMs.DeployRunnerBinary (\"\" if the "
                "image has it)", CDC_RUNNER_PATH);
        return NULL;
    }
    for (size_t i = 0; i < MEM_COUNT(real); i++)
        if (usable(real[i]))
            return real[i];
    err_set(err, ERR_CONFIG,
            "Arvados' runner is not on this machine: install its package "
            "crunch-run, or set Containers.CloudVMs.DeployRunnerBinary to \"\" "
            "if the image has it");
    return NULL;
}

static int read_file(const char *path, char **ret, size_t *ret_n,
                     struct err *err)
{
    CLEANUP(mem_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *bytes;
    size_t n = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "DeployRunnerBinary %s", path);
    if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > RUNNER_MAX)
        return err_set(err, ERR_CONFIG,
                       "DeployRunnerBinary %s: a file of 1 byte to 512 MiB "
                       "wanted", path);
    bytes = mem_zalloc((size_t) st.st_size);
    while (n < (size_t) st.st_size) {
        ssize_t got = read(fd, bytes + n, (size_t) st.st_size - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            free(bytes);
            return err_set_errno(err, got ? errno : EIO,
                                 "DeployRunnerBinary %s", path);
        }
        n += (size_t) got;
    }
    *ret = bytes;
    *ret_n = n;
    return 0;
}

int runner_file_load(const struct conf *conf, bool attempts,
                     struct dispatch_cfg *cfg, char **ret_bytes,
                     struct err *err)
{
    const char *path;
    size_t n = 0;

    *ret_bytes = NULL;
    if (!*conf->deploy_runner)
        return 0;
    path = choose(conf, attempts, err);
    if (!path || read_file(path, ret_bytes, &n, err) < 0) {
        if (err)
            err->class = ERR_CONFIG;
        return -1;
    }
    cfg->runner = *ret_bytes;
    cfg->runner_size = n;
    crypt_md5_hex(*ret_bytes, n, cfg->runner_hash);
    return 0;
}
