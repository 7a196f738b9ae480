/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parsing of form fields: split at '&', then at the first '=', then decode.
 * Everything lives in one copy of the text, which is cut in place. Pure; used
 * by HTTP handlers for query strings and form bodies.
 */

#include "core/io/form.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/base/vec.h"

struct field {
    const char *name, *value;
};

struct form {
    char *text;
    VEC(struct field) fields;
};

static int add_field(struct form *f, char *field, size_t max,
                     struct err *err)
{
    char *value = strchr(field, '=');

    if (!*field)
        return 0;
    if (value)
        *value++ = '\0';
    else
        value = field + strlen(field);
    if (f->fields.n == max)
        return err_set(err, ERR_INVALID, "more than %zu form fields", max);
    if (text_decode_uri(field, true) < 0 || text_decode_uri(value, true) < 0)
        return err_set(err, ERR_INVALID, "malformed escape in a form field");
    VEC_PUSH(&f->fields, (struct field) {field, value});
    return 0;
}

struct form *form_parse(const char *s, size_t n, size_t max_fields,
                        struct err *err)
{
    struct form *f = MEM_NEW(struct form);
    char *rest, *field;

    f->text = rest = mem_strndup(s, n);
    if (memchr(s, '\0', n)) {
        err_set(err, ERR_INVALID, "NUL in a form");
        goto error;
    }
    while ((field = strsep(&rest, "&")))
        if (add_field(f, field, max_fields, err) < 0)
            goto error;
    return f;
error:
    form_free(f);
    return NULL;
}

void form_free(struct form *f)
{
    if (!f)
        return;
    VEC_FINI(&f->fields);
    free(f->text);
    free(f);
}

void form_cleanup(struct form **f)
{
    form_free(*f);
}

const char *form_get(const struct form *f, const char *name)
{
    for (size_t i = 0; f && i < f->fields.n; i++)
        if (strcmp(f->fields.v[i].name, name) == 0)
            return f->fields.v[i].value;
    return NULL;
}

size_t form_count(const struct form *f)
{
    return f ? f->fields.n : 0;
}

const char *form_name(const struct form *f, size_t i)
{
    return f->fields.v[i].name;
}

const char *form_value(const struct form *f, size_t i)
{
    return f->fields.v[i].value;
}
