/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters from query, form and JSON body as one.
 *
 * Clients differ: Go sends forms with JSON texts in them, Python a query for
 * lists and JSON for records, people use curl. The query wins over the body. A
 * body counts as a form only if its Content-Type says so, else as JSON.
 *
 * Runs in the lane of its request; a request's parameters belong to it.
 */
#include "core/apiserver/params.h"

#include <string.h>
#include <strings.h>

#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/text.h"
#include "core/io/form.h"

enum { FIELDS_MAX = 200 };

void params_fini(struct params *p)
{
    form_free(p->query);
    form_free(p->form);
    jsn_free(p->json);
    for (size_t i = 0; i < p->parsed.n; i++)
        jsn_free(p->parsed.v[i]);
    VEC_FINI(&p->parsed);
    *p = (struct params){0};
}

static bool is_form(const char *type)
{
    static const char name[] = "application/x-www-form-urlencoded";

    return type && strncasecmp(type, name, sizeof name - 1) == 0;
}

int params_read(struct params *p, const char *query, const char *type,
                const char *body, size_t len, bool *ret_bad_json,
                struct err *err)
{
    *ret_bad_json = false;
    if (!(p->query = form_parse(query, strlen(query), FIELDS_MAX, err)))
        return -1;
    if (len == 0)
        return 0;
    if (is_form(type)) {
        p->form = form_parse(body, len, FIELDS_MAX, err);
        return p->form ? 0 : -1;
    }
    p->json = jsn_parse(body, len, err);
    if (p->json && jsn_type(p->json) == JSN_OBJECT)
        return 0;
    *ret_bad_json = true;
    if (p->json)
        return err_set(err, ERR_INVALID, "the body must be a JSON object");
    return err_prefix(err, "error parsing request body");
}

static const char *form_text(const struct params *p, const char *name)
{
    const char *s = form_get(p->query, name);

    return s ? s : form_get(p->form, name);
}

const char *params_text(const struct params *p, const char *name)
{
    const char *s = form_text(p, name);

    if (!s && p->json)
        jsn_opt_str(p->json, name, &s, NULL);
    return s;
}

int params_json(struct params *p, const char *name, const struct jsn **ret,
                struct err *err)
{
    const struct jsn *v = jsn_get(p->json, name);
    const char *text = form_text(p, name);
    struct jsn *j;

    if (!text && v && jsn_type(v) == JSN_STRING)
        jsn_as_str(v, &text, NULL); /* JSON in a JSON string */
    if (!text) {
        *ret = v;
        return 0;
    }
    if (!*text) {
        *ret = NULL;
        return 0;
    }
    if (!(j = jsn_parse(text, strlen(text), err)))
        return err_prefix(err, "%s is not valid JSON", name);
    VEC_PUSH(&p->parsed, j);
    *ret = jsn_type(j) == JSN_NULL ? NULL : j;
    return 0;
}

int params_i64(const struct params *p, const char *name, int64_t *ret,
               struct err *err)
{
    const char *text = params_text(p, name);
    const struct jsn *v = jsn_get(p->json, name);

    if (!text && v) {
        if (jsn_as_i64(v, ret, err) < 0)
            return err_prefix(err, "%s", name);
        return 0;
    }
    if (!text)
        return 0;
    if (!*text || text[strspn(text, "0123456789")] ||
        text_parse_i64(text, ret, err) < 0)
        return err_set(err, ERR_INVALID, "%s must be a number, not '%.30s'",
                       name, text);
    return 0;
}

int params_bool(const struct params *p, const char *name, bool *ret,
                struct err *err)
{
    const char *text = params_text(p, name);
    const struct jsn *v = jsn_get(p->json, name);

    if (!text && v)
        return jsn_as_bool(v, ret, err);
    if (!text)
        return 0;
    if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
        *ret = true;
    else if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
        *ret = false;
    else
        return err_set(err, ERR_INVALID, "%s must be true or false", name);
    return 0;
}

int params_attrs(struct params *p, const char *one, const struct jsn **ret,
                 struct err *err)
{
    if (params_json(p, one, ret, err) < 0)
        return -1;
    if (!*ret && p->json && !jsn_has(p->json, one))
        *ret = p->json;
    if (*ret && jsn_type(*ret) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "%s must be an object", one);
    return 0;
}
