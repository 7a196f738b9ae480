/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The settings of a driver, checked by the host, so that a typing error is
 * found when the dispatcher starts and reads the same for every driver.
 *
 * The schema is text, `Name TAB type TAB required|default TAB help` a line.
 * It is parsed into rows on each call: it has a few lines and is read once
 * per configured backend. Two passes: every setting that is there must be in
 * the schema and have its type; every required one must be there.
 *
 * The default column is documentation: the driver applies its own defaults.
 */

#include "core/plugin/schema.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"

enum { ROWS_MAX = 64 };

struct row {
    const char *name, *type;
    bool required;
};

struct schema {
    char *text; /* a copy, cut into fields */
    struct row rows[ROWS_MAX];
    size_t n;
};

static bool type_known(const char *type)
{
    static const char *const types[] = {
        "str", "int", "num", "bool", "list", "map",
    };

    for (size_t i = 0; i < MEM_COUNT(types); i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

static bool type_matches(const char *type, enum jsn_type t)
{
    switch (t) {
    case JSN_STRING: return strcmp(type, "str") == 0;
    case JSN_INT: return strcmp(type, "int") == 0 || strcmp(type, "num") == 0;
    case JSN_DOUBLE: return strcmp(type, "num") == 0;
    case JSN_BOOL: return strcmp(type, "bool") == 0;
    case JSN_ARRAY: return strcmp(type, "list") == 0;
    case JSN_OBJECT: return strcmp(type, "map") == 0;
    case JSN_NULL: return true; /* as if absent */
    }
    return false;
}

static int parse_line(struct schema *s, char *line, unsigned number,
                      struct err *err)
{
    struct row *row = &s->rows[s->n];
    char *save = line;

    if (s->n == ROWS_MAX)
        return err_set(err, ERR_CONFIG,
                       "the driver's schema has more than %d lines",
                       ROWS_MAX);
    row->name = strsep(&save, "\t");
    row->type = save ? strsep(&save, "\t") : "";
    row->required = save && strcmp(strsep(&save, "\t"), "required") == 0;
    if (!row->name[0] || !type_known(row->type))
        return err_set(err, ERR_CONFIG,
                       "line %u of the driver's schema is malformed", number);
    s->n++;
    return 0;
}

static int parse(struct schema *s, const char *text, struct err *err)
{
    unsigned number = 0;
    char *save, *line;

    s->n = 0;
    s->text = save = mem_strdup(text);
    while ((line = strsep(&save, "\n")))
        if (number++, line[0] && parse_line(s, line, number, err))
            return -1;
    return 0;
}

static const struct row *find(const struct schema *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->rows[i].name, name) == 0)
            return &s->rows[i];
    return NULL;
}

static int refuse_unknown(const struct schema *s, const char *name,
                          struct err *err)
{
    struct buf known;

    buf_init(&known, 300); /* cut, not failed, when there are many */
    for (size_t i = 0; i < s->n; i++)
        buf_printf(&known, "%s%s", i ? ", " : "", s->rows[i].name);
    err_set(err, ERR_CONFIG,
            "unknown setting '%.64s' in DriverParameters; known: %s", name,
            s->n ? known.data : "none");
    buf_fini(&known);
    return -1;
}

static int check_present(const struct schema *s, const struct jsn *params,
                         struct err *err)
{
    struct jsn_iter it = {0};

    while (jsn_next(params, &it)) {
        const struct row *row = find(s, it.key);

        if (!row)
            return refuse_unknown(s, it.key, err);
        if (!type_matches(row->type, jsn_type(it.value)))
            return err_set(err, ERR_CONFIG,
                           "setting '%s' in DriverParameters must be of type "
                           "%s", row->name, row->type);
    }
    return 0;
}

static int check_required(const struct schema *s, const struct jsn *params,
                          struct err *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].required && !jsn_get(params, s->rows[i].name))
            return err_set(err, ERR_CONFIG,
                           "setting '%s' is missing in DriverParameters",
                           s->rows[i].name);
    return 0;
}

int schema_check(const char *schema, const struct jsn *params,
                 struct err *err)
{
    struct schema s;
    int rc;

    if (jsn_type(params) != JSN_OBJECT && jsn_type(params) != JSN_NULL)
        return err_set(err, ERR_CONFIG, "DriverParameters is not a map");
    if (!schema)
        return 0;
    rc = parse(&s, schema, err) || check_present(&s, params, err) ||
         check_required(&s, params, err) ? -1 : 0;
    free(s.text);
    return rc;
}
