/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a driver calls `struct cdc_json` is our `struct jsn` under another
 * name: the view costs nothing, owns nothing and cannot be stored wrongly in
 * more ways than any borrowed pointer. Every accessor takes NULL as JSON
 * null, and returns "not there" instead of an error text: which setting is
 * wrong is the driver's to say (or the schema's, before the driver is asked).
 */

#include "core/plugin/jsonview.h"

#include <stdbool.h>

#include "core/base/jsn.h"

const struct cdc_json *jsonview_of(const struct jsn *j)
{
    return (const struct cdc_json *)j;
}

static const struct jsn *jsn_of(const struct cdc_json *j)
{
    return (const struct jsn *)j;
}

uint32_t jsonview_type(const struct cdc_json *j)
{
    switch (jsn_type(jsn_of(j))) {
    case JSN_BOOL: return CDC_JSON_BOOL;
    case JSN_INT: return CDC_JSON_INT;
    case JSN_DOUBLE: return CDC_JSON_DOUBLE;
    case JSN_STRING: return CDC_JSON_STRING;
    case JSN_ARRAY: return CDC_JSON_ARRAY;
    case JSN_OBJECT: return CDC_JSON_OBJECT;
    case JSN_NULL: break;
    }
    return CDC_JSON_NULL;
}

uint32_t jsonview_count(const struct cdc_json *j)
{
    return (uint32_t)jsn_count(jsn_of(j));
}

const struct cdc_json *jsonview_get(const struct cdc_json *j,
                                    const char *key)
{
    return key ? jsonview_of(jsn_get(jsn_of(j), key)) : NULL;
}

/* Member i of an object. */
static bool member(const struct cdc_json *j, uint32_t i, struct jsn_iter *it)
{
    if (jsn_type(jsn_of(j)) != JSN_OBJECT)
        return false;
    while (jsn_next(jsn_of(j), it))
        if (i-- == 0)
            return true;
    return false;
}

const struct cdc_json *jsonview_at(const struct cdc_json *j, uint32_t i)
{
    struct jsn_iter it = {0};

    if (jsn_type(jsn_of(j)) == JSN_ARRAY)
        return jsonview_of(jsn_at(jsn_of(j), i));
    return member(j, i, &it) ? jsonview_of(it.value) : NULL;
}

const char *jsonview_key(const struct cdc_json *j, uint32_t i)
{
    struct jsn_iter it = {0};

    return member(j, i, &it) ? it.key : NULL;
}

const char *jsonview_str(const struct cdc_json *j)
{
    const char *s = NULL;

    jsn_as_str(jsn_of(j), &s, NULL);
    return s;
}

int32_t jsonview_i64(const struct cdc_json *j, int64_t *ret)
{
    return jsn_as_i64(jsn_of(j), ret, NULL);
}

int32_t jsonview_f64(const struct cdc_json *j, double *ret)
{
    return jsn_as_f64(jsn_of(j), ret, NULL);
}

int32_t jsonview_bool(const struct cdc_json *j, int32_t *ret)
{
    bool b;

    if (jsn_as_bool(jsn_of(j), &b, NULL))
        return -1;
    *ret = b;
    return 0;
}
