/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of settings: a YAML node to a C value, or one line that says what is
 * wrong and where. Every kind of value of the table has its function here;
 * the readers of InstanceTypes and Backends use the same ones, so that a size
 * is a size everywhere. Pure but for the memory of the results.
 */
#include "core/conf/conf_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"

enum { CONF_LIST_MAX = 1000, CONF_JSON_MAX = 1 << 20 };

int conf_refuse(const struct conf_loader *l, const struct ytree *node,
                const char *key, const char *what, struct err *err)
{
    return err_set(err, ERR_CONFIG, "%s:%u: %s: %s", l->name,
                   node ? node->line : 1, key, what);
}

void conf_warn(const struct conf_loader *l, const struct ytree *node,
               const char *fmt, ...)
{
    char text[512];
    int n;
    va_list ap;

    if (!l->warn)
        return;
    n = snprintf(text, sizeof text, "%s:%u: ", l->name,
                 node ? node->line : 1);
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t) n, fmt, ap);
    va_end(ap);
    l->warn(l->arg, text);
}

static int scalar(const struct conf_loader *l, const struct ytree *node,
                  const char *key, const char *want, struct err *err)
{
    if (node->kind == YTREE_SCALAR)
        return 0;
    return err_set(err, ERR_CONFIG, "%s:%u: %s: %s wanted, not a %s", l->name,
                   node->line, key, want,
                   node->kind == YTREE_MAP ? "map" : "list");
}

int conf_get_str(const struct conf_loader *l, const struct ytree *node,
                 const char *key, char **ret, struct err *err)
{
    if (scalar(l, node, key, "a text", err) < 0)
        return -1;
    if (!text_is_utf8(node->text, strlen(node->text)))
        return conf_refuse(l, node, key, "not valid UTF-8", err);
    mem_set_str(ret, node->text);
    return 0;
}

int conf_get_bool(const struct conf_loader *l, const struct ytree *node,
                  const char *key, bool *ret, struct err *err)
{
    if (scalar(l, node, key, "true or false", err) < 0)
        return -1;
    if (ytree_bool(node, ret) < 0)
        return conf_refuse(l, node, key, "true or false wanted", err);
    return 0;
}

/* Put "file:line: key: " before what a text parser said. */
static int located(const struct conf_loader *l, const struct ytree *node,
                   const char *key, int rc, struct err *err)
{
    if (rc == 0)
        return 0;
    if (err)
        err->class = ERR_CONFIG;
    return err_prefix(err, "%s:%u: %s", l->name, node->line, key);
}

int conf_get_int(const struct conf_loader *l, const struct ytree *node,
                 const char *key, int64_t *ret, struct err *err)
{
    if (scalar(l, node, key, "a whole number", err) < 0)
        return -1;
    return located(l, node, key, text_parse_i64(node->text, ret, err), err);
}

int conf_get_float(const struct conf_loader *l, const struct ytree *node,
                   const char *key, double *ret, struct err *err)
{
    if (scalar(l, node, key, "a number", err) < 0)
        return -1;
    return located(l, node, key, text_parse_f64(node->text, ret, err), err);
}

int conf_get_size(const struct conf_loader *l, const struct ytree *node,
                  const char *key, int64_t *ret, struct err *err)
{
    if (scalar(l, node, key, "a size (as in 4GiB)", err) < 0)
        return -1;
    return located(l, node, key, text_parse_size(node->text, ret, err), err);
}

int conf_get_duration(const struct conf_loader *l,
                      const struct ytree *node, const char *key,
                      int64_t *ret, struct err *err)
{
    if (scalar(l, node, key, "a duration (as in 1m30s)", err) < 0)
        return -1;
    return located(l, node, key, text_parse_duration(node->text, ret, err),
                   err);
}

void conf_list_fini(struct conf_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->v[i]);
    free(list->v);
    *list = (struct conf_list){ 0 };
}

void conf_map_fini(struct conf_map *map)
{
    for (size_t i = 0; i < map->n; i++) {
        free(map->v[i].key);
        free(map->v[i].value);
    }
    free(map->v);
    *map = (struct conf_map){ 0 };
}

/* A list, or one scalar that stands for a list of one (EC2's SubnetID). */
int conf_get_list(const struct conf_loader *l, const struct ytree *node,
                  const char *key, struct conf_list *ret, struct err *err)
{
    struct ytree one = *node, *self = &one;
    struct ytree *const *v = node->kind == YTREE_SEQ ? node->v : &self;
    size_t n = node->kind == YTREE_SEQ ? node->n : 1;
    struct conf_list list = { 0 };

    if (node->kind == YTREE_MAP)
        return conf_refuse(l, node, key, "a list wanted, not a map", err);
    if (n > CONF_LIST_MAX)
        return conf_refuse(l, node, key, "too many entries", err);
    list.v = mem_calloc(n, sizeof *list.v);
    for (size_t i = 0; i < n; i++) {
        if (conf_get_str(l, v[i], key, &list.v[i], err) < 0) {
            list.n = i;
            conf_list_fini(&list);
            return -1;
        }
        list.n = i + 1;
    }
    conf_list_fini(ret);
    *ret = list;
    return 0;
}

int conf_get_map(const struct conf_loader *l, const struct ytree *node,
                 const char *key, struct conf_map *ret, struct err *err)
{
    struct conf_map map = { 0 };

    if (node->kind != YTREE_MAP)
        return conf_refuse(l, node, key, "a map wanted", err);
    if (node->n > CONF_LIST_MAX)
        return conf_refuse(l, node, key, "too many entries", err);
    map.v = mem_calloc(node->n, sizeof *map.v);
    for (size_t i = 0; i < node->n; i++) {
        map.v[i].key = mem_strdup(node->v[i]->key);
        map.n = i + 1;
        if (conf_get_str(l, node->v[i], key, &map.v[i].value, err) < 0) {
            conf_map_fini(&map);
            return -1;
        }
    }
    conf_map_fini(ret);
    *ret = map;
    return 0;
}

int conf_get_json(const struct conf_loader *l, const struct ytree *node,
                  const char *key, char **ret, struct err *err)
{
    struct buf b;

    if (node->kind != YTREE_MAP)
        return conf_refuse(l, node, key, "a map wanted", err);
    buf_init(&b, CONF_JSON_MAX);
    if (ytree_to_json(node, &b) < 0) {
        buf_fini(&b);
        return conf_refuse(l, node, key, "too large", err);
    }
    free(*ret);
    *ret = buf_take(&b, NULL);
    return 0;
}
