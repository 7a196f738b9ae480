/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_SCHEMA_H
#define CORE_PLUGIN_SCHEMA_H

/*
 * DriverParameters against the schema in a driver's descriptor. Pure.
 */

struct err;
struct jsn;

/*
 * schema: lines as described beside cdc_driver.schema; NULL accepts every
 * object. params NULL counts as {}. -1/ERR_CONFIG: params is no object, or a
 * setting is unknown, missing or of another type (the text names it), or the
 * schema itself is malformed (the text says so).
 */
int schema_check(const char *schema, const struct jsn *params,
                 struct err *err);

#endif
