/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values: parsing and typed access. The writer is in jsn_write.c.
 *
 * The only file that includes json-c. Its accessors assert on a wrong type and
 * its parsers differ between versions; so text goes through jsn_scan() first,
 * nothing but ASCII and unambiguous tokens reaches json-c, and every accessor
 * here looks at the type before it calls. A `struct jsn` is a json_object under
 * another name. json-c has no object for null; a root that is null is therefore
 * the address of null_root, and everything converts through obj().
 *
 * A duplicate key silently replaces the earlier member in json-c. Each colon of
 * the text is one member; if the tree has fewer members, one was replaced.
 *
 * A tree belongs to one thread at a time.
 */
#include "core/base/jsn.h"

#include <json.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn_scan.h"
#include "core/base/mem.h"

static char null_root;

static json_object *obj(const struct jsn *j)
{
    return (const void *) j == &null_root ? NULL : (json_object *) (void *) j;
}

static struct jsn *jsn(json_object *o)
{
    return (struct jsn *) (void *) o;
}

enum jsn_type jsn_type(const struct jsn *j)
{
    switch (json_object_get_type(obj(j))) {
    case json_type_null:
        return JSN_NULL;
    case json_type_boolean:
        return JSN_BOOL;
    case json_type_int:
        return JSN_INT;
    case json_type_double:
        return JSN_DOUBLE;
    case json_type_string:
        return JSN_STRING;
    case json_type_array:
        return JSN_ARRAY;
    case json_type_object:
        return JSN_OBJECT;
    }
    return JSN_NULL;
}

/* Add to *members those of j and below; -1 on a number that is not finite.
 * Recursion is bounded by JSN_DEPTH. */
static int inspect(const struct jsn *j, size_t *members)
{
    struct jsn_iter it = {0};

    switch (jsn_type(j)) {
    case JSN_DOUBLE:
        return isfinite(json_object_get_double(obj(j))) ? 0 : -1;
    case JSN_ARRAY:
        for (size_t i = 0; i < jsn_count(j); i++)
            if (inspect(jsn_at(j, i), members) < 0)
                return -1;
        return 0;
    case JSN_OBJECT:
        *members += jsn_count(j);
        while (jsn_next(j, &it))
            if (inspect(it.value, members) < 0)
                return -1;
        return 0;
    default:
        return 0;
    }
}

/* Pure ASCII in, a tree out. The value ends exactly at n. */
static int parse_ascii(const char *text, size_t n, json_object **ret,
                       struct err *err)
{
    /* One level of its own for the scalars inside the deepest array. */
    struct json_tokener *tok = json_tokener_new_ex(JSN_DEPTH + 2);

    if (!tok)
        return err_set(err, ERR_TRANSIENT, "JSON: out of memory");
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
    json_object *o = json_tokener_parse_ex(tok, text, (int) n);
    enum json_tokener_error e = json_tokener_get_error(tok);
    size_t end = json_tokener_get_parse_end(tok);
    if (e == json_tokener_continue && end == n) {
        /* A number ends only when something follows. */
        o = json_tokener_parse_ex(tok, "", 1);
        e = json_tokener_get_error(tok);
    }
    json_tokener_free(tok);
    if (e == json_tokener_success && end == n) {
        *ret = o;
        return 0;
    }
    json_object_put(o);
    if (e == json_tokener_success)
        return err_set(err, ERR_INVALID,
                       "JSON: more than one value at byte %zu", end);
    if (e == json_tokener_continue)
        return err_set(err, ERR_INVALID, "JSON: the text is cut off");
    return err_set(err, ERR_INVALID, "JSON: %s near byte %zu",
                   json_tokener_error_desc(e), end);
}

static int parse_scanned(const char *text, const struct jsn_scan *scan,
                         json_object **ret, struct err *err)
{
    size_t n = scan->end - scan->start;

    if (scan->ascii)
        return parse_ascii(text + scan->start, n, ret, err);
    /* A character of two bytes becomes six, one of three six, one of four
     * twelve: at most three times the length. */
    CLEANUP(buf_fini) struct buf escaped;
    buf_init(&escaped, 3 * n);
    if (jsn_scan_escape(text + scan->start, n, &escaped) < 0)
        return err_set(err, ERR_TRANSIENT, "JSON: out of memory");
    return parse_ascii(escaped.data, escaped.len, ret, err);
}

enum { MAX_TEXT = INT32_MAX / 3 }; /* json-c counts in int */

struct jsn *jsn_parse(const char *text, size_t n, struct err *err)
{
    struct jsn_scan scan;
    json_object *o;
    size_t members = 0;

    if (n > MAX_TEXT) {
        err_set(err, ERR_TOO_LARGE, "JSON: more than %d bytes", MAX_TEXT);
        return NULL;
    }
    if (jsn_scan(text, n, &scan, err) < 0 ||
        parse_scanned(text, &scan, &o, err) < 0)
        return NULL;
    if (inspect(jsn(o), &members) < 0) {
        err_set(err, ERR_INVALID, "JSON: a number is too large");
        json_object_put(o);
        return NULL;
    }
    if (members != scan.members) {
        err_set(err, ERR_INVALID, "JSON: an object has the same key twice");
        json_object_put(o);
        return NULL;
    }
    return o ? jsn(o) : (struct jsn *) (void *) &null_root;
}

void jsn_free(struct jsn *j)
{
    json_object_put(obj(j));
}

void jsn_cleanup(struct jsn **j)
{
    jsn_free(*j);
}

struct jsn *jsn_get(const struct jsn *j, const char *key)
{
    json_object *o = NULL;

    if (jsn_type(j) == JSN_OBJECT)
        json_object_object_get_ex(obj(j), key, &o);
    return jsn(o);
}

bool jsn_has(const struct jsn *j, const char *key)
{
    return jsn_type(j) == JSN_OBJECT &&
           json_object_object_get_ex(obj(j), key, NULL);
}

size_t jsn_count(const struct jsn *j)
{
    switch (jsn_type(j)) {
    case JSN_ARRAY:
        return json_object_array_length(obj(j));
    case JSN_OBJECT:
        return (size_t) json_object_object_length(obj(j));
    default:
        return 0;
    }
}

struct jsn *jsn_at(const struct jsn *j, size_t i)
{
    if (jsn_type(j) != JSN_ARRAY)
        return NULL;
    return jsn(json_object_array_get_idx(obj(j), i)); /* NULL when outside */
}

bool jsn_next(const struct jsn *j, struct jsn_iter *it)
{
    struct lh_entry *e;

    if (jsn_type(j) != JSN_OBJECT)
        return false;
    e = it->key ? it->next : lh_table_head(json_object_get_object(obj(j)));
    if (!e)
        return false;
    it->next = lh_entry_next(e);
    it->key = lh_entry_k(e);
    it->value = jsn(lh_entry_v(e));
    return true;
}

static const char *type_name(enum jsn_type type)
{
    static const char *const names[] = {
        [JSN_NULL] = "null",     [JSN_BOOL] = "a boolean",
        [JSN_INT] = "an integer", [JSN_DOUBLE] = "a number",
        [JSN_STRING] = "a string", [JSN_ARRAY] = "an array",
        [JSN_OBJECT] = "an object",
    };

    return names[type];
}

static int wrong_type(const struct jsn *j, enum jsn_type want,
                      struct err *err)
{
    return err_set(err, ERR_INVALID, "is %s, not %s", type_name(jsn_type(j)),
                   type_name(want));
}

int jsn_as_str(const struct jsn *j, const char **ret, struct err *err)
{
    if (jsn_type(j) != JSN_STRING)
        return wrong_type(j, JSN_STRING, err);
    *ret = json_object_get_string(obj(j));
    return 0;
}

int jsn_as_i64(const struct jsn *j, int64_t *ret, struct err *err)
{
    if (jsn_type(j) != JSN_INT)
        return wrong_type(j, JSN_INT, err);
    *ret = json_object_get_int64(obj(j));
    return 0;
}

int jsn_as_f64(const struct jsn *j, double *ret, struct err *err)
{
    if (jsn_type(j) != JSN_INT && jsn_type(j) != JSN_DOUBLE)
        return wrong_type(j, JSN_DOUBLE, err);
    *ret = json_object_get_double(obj(j));
    return 0;
}

int jsn_as_bool(const struct jsn *j, bool *ret, struct err *err)
{
    if (jsn_type(j) != JSN_BOOL)
        return wrong_type(j, JSN_BOOL, err);
    *ret = json_object_get_boolean(obj(j));
    return 0;
}

static int as_container(struct jsn *j, enum jsn_type type, struct jsn **ret,
                        struct err *err)
{
    if (jsn_type(j) != type)
        return wrong_type(j, type, err);
    *ret = j;
    return 0;
}

static int as_obj(struct jsn *j, struct jsn **ret, struct err *err)
{
    return as_container(j, JSN_OBJECT, ret, err);
}

static int as_arr(struct jsn *j, struct jsn **ret, struct err *err)
{
    return as_container(j, JSN_ARRAY, ret, err);
}

/* Required and optional members: the same for every type. */

#define REQUIRED(name, T, as)                                                 \
    int jsn_##name(const struct jsn *j, const char *key, T *ret,              \
                   struct err *err)                                           \
    {                                                                         \
        struct jsn *member = jsn_get(j, key);                                 \
                                                                              \
        if (!member)                                                          \
            return err_set(err, ERR_INVALID, "'%s' is missing", key);         \
        if (as(member, ret, err) < 0)                                         \
            return name_member(key, err);                                     \
        return 0;                                                             \
    }

#define OPTIONAL(name, T, as)                                                 \
    int jsn_opt_##name(const struct jsn *j, const char *key, T *ret,          \
                       struct err *err)                                       \
    {                                                                         \
        struct jsn *member = jsn_get(j, key);                                 \
                                                                              \
        if (member && as(member, ret, err) < 0)                               \
            return name_member(key, err);                                     \
        return 0;                                                             \
    }

/* "is null, not a string" -> "'key' is null, not a string" */
static int name_member(const char *key, struct err *err)
{
    if (!err)
        return -1;
    return err_set(err, ERR_INVALID, "'%s' %s", key, err->text);
}

REQUIRED(str, const char *, jsn_as_str)
REQUIRED(i64, int64_t, jsn_as_i64)
REQUIRED(f64, double, jsn_as_f64)
REQUIRED(bool, bool, jsn_as_bool)
REQUIRED(obj, struct jsn *, as_obj)
REQUIRED(arr, struct jsn *, as_arr)
OPTIONAL(str, const char *, jsn_as_str)
OPTIONAL(i64, int64_t, jsn_as_i64)
OPTIONAL(f64, double, jsn_as_f64)
OPTIONAL(bool, bool, jsn_as_bool)

bool jsn_equal(const struct jsn *a, const struct jsn *b)
{
    return json_object_equal(obj(a), obj(b));
}
