/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_FORM_H
#define CORE_IO_FORM_H

/*
 * Query strings and bodies of type application/x-www-form-urlencoded
 * (WHATWG URL, 5): names and values, decoded. '+' is a blank. Pure.
 */

#include <stddef.h>

struct err;
struct form;

/* ERR_INVALID: a bad escape, an encoded NUL, more than max_fields fields.
 * Empty fields ("a=1&&b=2") are skipped; a field without '=' has value "". */
struct form *form_parse(const char *s, size_t n, size_t max_fields,
                        struct err *err);
void form_free(struct form *f);     /* NULL is fine */
void form_cleanup(struct form **f); /* CLEANUP(form_cleanup) */

/* The first value under that name; NULL = absent. Borrowed. f may be NULL. */
const char *form_get(const struct form *f, const char *name);
size_t form_count(const struct form *f);
/* Field i, in order. */
const char *form_name(const struct form *f, size_t i);
const char *form_value(const struct form *f, size_t i);

#endif
