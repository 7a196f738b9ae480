/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_JSN_SCAN_H
#define CORE_BASE_JSN_SCAN_H

/*
 * The lexical pass over JSON text that comes before json-c; used by jsn.c
 * alone.
 */

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

struct jsn_scan {
    size_t start;   /* offset of the value, behind leading blanks */
    size_t end;     /* offset behind the value, before trailing blanks */
    size_t members; /* colons outside of strings: one per object member */
    bool ascii;     /* no byte beyond 0x7F anywhere */
};

/* Check every token of text; -1/ERR_INVALID with the offset in the text.
 * Whether the tokens stand in a legal order is json-c's business. */
int jsn_scan(const char *text, size_t n, struct jsn_scan *ret,
             struct err *err);

/* Append text that jsn_scan() took, with each non-ASCII character written as
 * \uXXXX (two of them beyond U+FFFF). */
int jsn_scan_escape(const char *text, size_t n, struct buf *out);

#endif
