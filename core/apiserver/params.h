/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_PARAMS_H
#define CORE_APISERVER_PARAMS_H

/*
 * The parameters of a request, wherever a client of the Arvados API may put
 * them: the query string, a form body, a JSON body (source: Arvados API,
 * "Requests"). In the first two, structured values are JSON texts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/vec.h"

struct err;
struct form;
struct jsn;

/* Starts as {0}. */
struct params {
    struct form *query;
    struct form *form;
    struct jsn *json;          /* an object, or NULL */
    VEC(struct jsn *) parsed;  /* of texts in query or form */
};

void params_fini(struct params *p);

/* type: the Content-Type header or NULL. ERR_INVALID; a JSON body that cannot
 * be parsed is told apart by *ret_bad_json. */
int params_read(struct params *p, const char *query, const char *type,
                const char *body, size_t len, bool *ret_bad_json,
                struct err *err);

/* A text; NULL = absent. Borrowed. */
const char *params_text(const struct params *p, const char *name);
/* A structured value; NULL = absent or null. */
int params_json(struct params *p, const char *name, const struct jsn **ret,
                struct err *err);
/* Decimal digits, or a JSON number; absent leaves *ret. */
int params_i64(const struct params *p, const char *name, int64_t *ret,
               struct err *err);
/* true, false, 1, 0; absent leaves *ret. */
int params_bool(const struct params *p, const char *name, bool *ret,
                struct err *err);
/* The attributes of a record: under `one`, or at the top of a JSON body. An
 * empty request has none: NULL. */
int params_attrs(struct params *p, const char *one, const struct jsn **ret,
                 struct err *err);

#endif
