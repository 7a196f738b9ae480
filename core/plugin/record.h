/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_RECORD_H
#define CORE_PLUGIN_RECORD_H

/*
 * What a driver emits, checked and copied into records of the cloud port.
 * Pure. This is the border: behind it every string is there, valid UTF-8
 * without control characters and of bounded length, every number in range.
 */

#include <cdc/types.h>

#include "core/base/err.h"

struct cloud_instance;
struct cloud_tag;

/* Numbers of the ABI to ours; unknown ones as cdc/types.h says. */
enum err_class record_class(uint32_t error_class);
enum err_scope record_scope(uint32_t scope);

/*
 * A copy in one block: free() it. NULL/ERR_INTERNAL when the record is
 * malformed; the text names the member. in may be NULL (malformed).
 */
struct cloud_instance *record_copy_instance(const struct cdc_instance *in,
                                            struct err *err);

/* -1/ERR_INTERNAL when malformed. */
int record_check_price(const struct cdc_price *in, struct err *err);

/* A text of at most max bytes, valid UTF-8, no control characters; NULL is
 * "". `what` names it in the error. */
int record_check_text(const char *text, size_t max, const char *what,
                      struct err *err);

/* Does the instance carry every tag of the filter, with the same value? */
int record_has_tags(const struct cloud_instance *i,
                    const struct cdc_tag *filter, uint32_t n_filter);

#endif
