/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_PROCESS_H
#define CORE_PLUGIN_PROCESS_H

/*
 * run_process of the host table: a blocking run of one program on the thread
 * that executes driver code. The contract is in <cdc/host.h>.
 */

struct call;
struct cdc_process;
struct cdc_process_result;
struct err;

/* What *result points to belongs to the call. */
int process_run(struct call *c, const struct cdc_process *process,
                struct cdc_process_result *result, struct err *err);

#endif
