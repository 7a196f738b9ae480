/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_TABLE_H
#define CORE_CTL_TABLE_H

/* Aligned columns for people. */

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct table;

/* heads: names separated by '|'; a name that starts with '>' is aligned to
 * the right. */
struct table *table_create(const char *heads);
void table_destroy(struct table *t); /* NULL is fine */
/* The next cell; after the last column a new row begins. NULL counts as "".
 * Control characters are made visible. */
void table_cell(struct table *t, const char *text);
void table_printf(struct table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
size_t table_rows(const struct table *t);
/* Append all rows, each ended by a newline; width 0 = do not cut lines. */
void table_print(const struct table *t, size_t width, struct buf *out);

#endif
