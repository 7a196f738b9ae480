/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_SECRET_H
#define CORE_BASE_SECRET_H

/*
 * Secrets: read from files that others cannot read, compared in constant
 * time, overwritten before they are freed, never printed.
 */

#include <stdbool.h>
#include <stddef.h>

struct err;

/* Read a whole file of at most max bytes. Refused (ERR_CONFIG, the text says
 * what to do) when it is not a regular file, is owned by neither root nor us,
 * or can be read by group (unless root-owned and root's group) or others.
 * One trailing newline is removed. Free with secret_free. */
char *secret_read(const char *path, size_t max, struct err *err);
void secret_free(char *s);       /* overwrites first; NULL is fine */
void secret_cleanup(char **s);   /* CLEANUP(secret_cleanup) */
bool secret_equal(const char *a, const char *b); /* NULL equals nothing */

/* n bytes from the kernel's generator; ends the process if it has none. */
void secret_random(void *p, size_t n);

#endif
