/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCHER_RUNNER_FILE_H
#define CORE_DISPATCHER_RUNNER_FILE_H

/*
 * The runner that is copied to the instances: which file it is, its bytes and
 * its name there.
 */

#include <stdbool.h>
#include <stddef.h>

struct conf;
struct dispatch_cfg;
struct err;

/*
 * Fill cfg->runner* from the setting DeployRunnerBinary. attempts: the API
 * server is ours. The bytes are owned by the caller: free(ret_bytes), after
 * core/dispatch. ERR_CONFIG when no runner can be found; the text names the
 * cures.
 */
int runner_file_load(const struct conf *conf, bool attempts,
                     struct dispatch_cfg *cfg, char **ret_bytes,
                     struct err *err);

#endif
