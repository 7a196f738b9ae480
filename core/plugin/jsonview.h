/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_JSONVIEW_H
#define CORE_PLUGIN_JSONVIEW_H

/*
 * The JSON accessors of the host table over values of core/base/jsn.h. The
 * contract is in <cdc/host.h>. Reading one value from several threads is
 * safe: nothing is changed or converted.
 */

#include <cdc/host.h>

struct jsn;

/* The same value, as drivers see it; NULL stays NULL. */
const struct cdc_json *jsonview_of(const struct jsn *j);

uint32_t jsonview_type(const struct cdc_json *j);
uint32_t jsonview_count(const struct cdc_json *j);
const struct cdc_json *jsonview_get(const struct cdc_json *j,
                                    const char *key);
const struct cdc_json *jsonview_at(const struct cdc_json *j, uint32_t i);
const char *jsonview_key(const struct cdc_json *j, uint32_t i);
const char *jsonview_str(const struct cdc_json *j);
int32_t jsonview_i64(const struct cdc_json *j, int64_t *ret);
int32_t jsonview_f64(const struct cdc_json *j, double *ret);
int32_t jsonview_bool(const struct cdc_json *j, int32_t *ret);

#endif
