/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_JSN_H
#define CORE_BASE_JSN_H

/*
 * JSON: strict parsing with typed, non-aborting access, and a streaming
 * writer. The only file that includes json-c is jsn.c; its accessors assert
 * on a wrong type, these return an error that names the path.
 *
 * A parsed value is a tree owned by its root; everything obtained from it is
 * borrowed until jsn_free() of the root. JSON null and an absent key are the
 * same thing to every getter (jsn_has tells them apart).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct jsn;

enum jsn_type {
    JSN_NULL, JSN_BOOL, JSN_INT, JSN_DOUBLE, JSN_STRING, JSN_ARRAY, JSN_OBJECT
};

enum { JSN_DEPTH = 32 };

/*
 * Parse exactly one value from n bytes. Refused with ERR_INVALID: anything
 * RFC 8259 refuses, invalid UTF-8, lone surrogates, NUL (also as \u0000),
 * duplicate keys, nesting beyond JSN_DEPTH, integers outside int64, non-finite
 * numbers.
 * Identical on json-c 0.16 and 0.18.
 */
struct jsn *jsn_parse(const char *text, size_t n, struct err *err);
void jsn_free(struct jsn *j);     /* NULL is fine */
void jsn_cleanup(struct jsn **j); /* CLEANUP(jsn_cleanup) */

enum jsn_type jsn_type(const struct jsn *j); /* NULL counts as JSN_NULL */

/* Object members. jsn_get is NULL when j is no object, or absent, or null. */
struct jsn *jsn_get(const struct jsn *j, const char *key);
bool jsn_has(const struct jsn *j, const char *key);
size_t jsn_count(const struct jsn *j); /* members or elements; else 0 */
struct jsn *jsn_at(const struct jsn *j, size_t i); /* array element or NULL */

/* Iterate over an object in its own order: it = 0 first; false at the end. */
struct jsn_iter {
    void *next; /* private; start with {0} */
    const char *key;
    struct jsn *value; /* NULL for JSON null */
};
bool jsn_next(const struct jsn *j, struct jsn_iter *it);

/* The value itself; -1/ERR_INVALID when of another type. Integers are
 * accepted by _f64; doubles with an integral value are not by _i64. */
int jsn_as_str(const struct jsn *j, const char **ret, struct err *err);
int jsn_as_i64(const struct jsn *j, int64_t *ret, struct err *err);
int jsn_as_f64(const struct jsn *j, double *ret, struct err *err);
int jsn_as_bool(const struct jsn *j, bool *ret, struct err *err);

/* Required members: absent, null or another type is an error. */
int jsn_str(const struct jsn *j, const char *key, const char **ret,
            struct err *err);
int jsn_i64(const struct jsn *j, const char *key, int64_t *ret,
            struct err *err);
int jsn_f64(const struct jsn *j, const char *key, double *ret,
            struct err *err);
int jsn_bool(const struct jsn *j, const char *key, bool *ret,
             struct err *err);
int jsn_obj(const struct jsn *j, const char *key, struct jsn **ret,
            struct err *err);
int jsn_arr(const struct jsn *j, const char *key, struct jsn **ret,
            struct err *err);

/* Optional members: absent or null leaves *ret as it is and returns 0;
 * another type is an error. */
int jsn_opt_str(const struct jsn *j, const char *key, const char **ret,
                struct err *err);
int jsn_opt_i64(const struct jsn *j, const char *key, int64_t *ret,
                struct err *err);
int jsn_opt_f64(const struct jsn *j, const char *key, double *ret,
                struct err *err);
int jsn_opt_bool(const struct jsn *j, const char *key, bool *ret,
                 struct err *err);

/* Append the value as compact JSON. sorted: object keys in byte order at
 * every level (a canonical form for hashing and comparing). */
int jsn_print(const struct jsn *j, bool sorted, struct buf *out);
bool jsn_equal(const struct jsn *a, const struct jsn *b);

/*
 * The writer appends JSON to a buf without building a tree. key is NULL
 * inside arrays and for the root. Strings must be NUL-terminated; bytes that
 * are not valid UTF-8 (and NUL bytes in _strn) are replaced by U+FFFD. NULL
 * and non-finite doubles write null. Nothing fails but the buffer (look at buf->over at the end).
 */
struct jsn_w {
    struct buf *out;
    unsigned depth;
    bool comma;
};

void jsn_w_init(struct jsn_w *w, struct buf *out);
void jsn_w_obj(struct jsn_w *w, const char *key);
void jsn_w_arr(struct jsn_w *w, const char *key);
void jsn_w_end_obj(struct jsn_w *w);
void jsn_w_end_arr(struct jsn_w *w);
void jsn_w_str(struct jsn_w *w, const char *key, const char *s);
void jsn_w_strn(struct jsn_w *w, const char *key, const char *s, size_t n);
void jsn_w_i64(struct jsn_w *w, const char *key, int64_t v);
void jsn_w_f64(struct jsn_w *w, const char *key, double v);
void jsn_w_bool(struct jsn_w *w, const char *key, bool v);
void jsn_w_null(struct jsn_w *w, const char *key);
/* Microseconds as an RFC 3339 string; 0 writes null. */
void jsn_w_time(struct jsn_w *w, const char *key, int64_t us);
/* A parsed value, or JSON text that is known to be valid. */
void jsn_w_value(struct jsn_w *w, const char *key, const struct jsn *v);
void jsn_w_raw(struct jsn_w *w, const char *key, const char *json);

#endif
