/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands: what a client compares a column with.
 *
 * Numbers may come as texts (every Arvados dispatcher asks for a priority
 * above "0"), booleans in ten spellings, times in any form of RFC 3339. JSON
 * columns are compared as canonical text, their members as what they are.
 * Nothing is guessed: 1.5 is no integer and "1x" no number.
 *
 * Pure; any thread.
 */
#include "core/apiserver/operand.h"

#include <string.h>
#include <strings.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/text.h"

enum { TEXT_MAX = 1 << 20 };

static int as_int(const struct jsn *j, struct store_value *v, struct err *err)
{
    const char *s;

    v->kind = STORE_INT;
    if (jsn_type(j) == JSN_STRING) {
        jsn_as_str(j, &s, NULL);
        return text_parse_i64(s, &v->i, err);
    }
    return jsn_as_i64(j, &v->i, err);
}

static int as_real(const struct jsn *j, struct store_value *v,
                   struct err *err)
{
    const char *s;

    v->kind = STORE_REAL;
    if (jsn_type(j) == JSN_STRING) {
        jsn_as_str(j, &s, NULL);
        return text_parse_f64(s, &v->f, err);
    }
    return jsn_as_f64(j, &v->f, err);
}

static int as_bool(const struct jsn *j, struct store_value *v,
                   struct err *err)
{
    static const char *const yes[] = {"t", "true", "1", "y", "yes"};
    static const char *const no[] = {"f", "false", "0", "n", "no"};
    const char *s;
    bool b;

    v->kind = STORE_INT;
    if (jsn_type(j) != JSN_STRING) {
        if (jsn_as_bool(j, &b, err) < 0)
            return -1;
        v->i = b;
        return 0;
    }
    jsn_as_str(j, &s, NULL);
    for (size_t i = 0; i < MEM_COUNT(yes); i++)
        if (strcasecmp(yes[i], s) == 0 || strcasecmp(no[i], s) == 0) {
            v->i = strcasecmp(yes[i], s) == 0;
            return 0;
        }
    return err_set(err, ERR_INVALID, "'%.30s' is no boolean", s);
}

int operand_text(const struct jsn *j, struct store_value *v,
                   struct err *err)
{
    if (jsn_as_str(j, &v->s, err) < 0)
        return -1;
    v->kind = STORE_TEXT;
    v->n = strlen(v->s);
    return 0;
}

/* What a JSON column or its member is compared with. */
static int as_json(struct filters *f, const struct jsn *j,
                   struct store_value *v, struct err *err)
{
    struct buf text;

    switch (jsn_type(j)) {
    case JSN_STRING:
        return operand_text(j, v, err);
    case JSN_INT:
        return as_int(j, v, err);
    case JSN_DOUBLE:
        return as_real(j, v, err);
    case JSN_BOOL:
        return as_bool(j, v, err);
    default:
        break;
    }
    buf_init(&text, TEXT_MAX);
    if (jsn_print(j, true, &text) < 0) {
        buf_fini(&text);
        return err_set(err, ERR_INVALID, "the operand is too long");
    }
    v->kind = STORE_TEXT;
    v->s = filters_keep(f, buf_take(&text, &v->n));
    return 0;
}

static int as_time(const struct jsn *j, struct store_value *v,
                   struct err *err)
{
    const char *s;

    v->kind = STORE_INT;
    if (jsn_as_str(j, &s, err) < 0)
        return -1;
    return text_parse_time(s, &v->i, err);
}

int operand_read(struct filters *f, const struct store_cond *c,
                        const struct jsn *j, struct store_value *v,
                        struct err *err)
{
    if (jsn_type(j) == JSN_NULL) {
        v->kind = STORE_NULL;
        return 0;
    }
    switch (store_col(c->table, c->col)->type) {
    case STORE_STR:
        return operand_text(j, v, err);
    case STORE_I64:
        return as_int(j, v, err);
    case STORE_F64:
        return as_real(j, v, err);
    case STORE_BOOL:
        return as_bool(j, v, err);
    case STORE_TIME:
        return as_time(j, v, err);
    case STORE_JSON:
        return as_json(f, j, v, err);
    }
    return -1;
}
