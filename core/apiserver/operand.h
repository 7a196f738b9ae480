/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_OPERAND_H
#define CORE_APISERVER_OPERAND_H

/*
 * Operands of filters: a JSON value as a value of a column's type. Pure.
 */

#include "core/apiserver/filters.h"

/* What the condition's column (or member) is compared with; null is null.
 * ERR_INVALID: not of its type. Texts are borrowed from j, or f's. */
int operand_read(struct filters *f, const struct store_cond *c,
                 const struct jsn *j, struct store_value *v,
                 struct err *err);
int operand_text(const struct jsn *j, struct store_value *v,
                 struct err *err);

#endif
