/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_HOSTTAB_H
#define CORE_PLUGIN_HOSTTAB_H

/*
 * The host table that drivers are handed; the contract is <cdc/host.h>.
 */

struct cdc_host;
struct logger;

const struct cdc_host *hosttab_get(void);

/* Where `log` without a living op goes; NULL = nowhere. Call it before there
 * are threads. */
void hosttab_set_log(struct logger *log);

#endif
