/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_RECORDS_H
#define CORE_APISERVER_RECORDS_H

/*
 * What every resource has: a list and a single record.
 */

#include "core/apiserver/call.h"

/* GET {resource} */
enum store_next records_list(struct call *c, struct store_tx *tx);
/* GET {resource}/{uuid} */
enum store_next records_get(struct call *c, struct store_tx *tx);

#endif
