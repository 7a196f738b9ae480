/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVERS_COMMON_VMPROG_H
#define DRIVERS_COMMON_VMPROG_H

/*
 * A program that makes VMs, spoken to in JSON: one process per call, a verb
 * as its last argument, an object in on standard input, an object out on
 * standard output; exit code 1 comes with {"error": {class, scope, retry_ms,
 * code, text}}; lines on standard error are remarks for the log. The language
 * is written down in cdc-local-vm(8).
 */

#include <cdc/host.h>

#include "drivers/common/jsonw.h"

struct vmprog {
    const struct cdc_host *host;
    const char *program;         /* absolute path */
    const char *const *options;  /* before the verb; ends with NULL; may be
                                  * NULL; at most VMPROG_OPTIONS */
};

enum { VMPROG_OPTIONS = 8 };

/* The reply, valid until the callback returns; or NULL after host->fail().
 * What is known of the effect goes into the class: a program that ended in
 * an unforeseen way may have done something (OUTCOME_UNKNOWN). */
const struct cdc_json *vmprog_call(const struct vmprog *p, struct cdc_op *op,
                                   const char *verb, const struct jsonw *in);

/* Emit an instance record of a reply. -1 after host->fail(). */
int32_t vmprog_emit(const struct vmprog *p, struct cdc_op *op,
                    const struct cdc_json *instance);

#endif
