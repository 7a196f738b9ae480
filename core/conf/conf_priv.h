/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CONF_CONF_PRIV_H
#define CORE_CONF_CONF_PRIV_H

/* What the files of core/conf share while a configuration is being read. */

#include "core/conf/conf.h"
#include "core/conf/ytree.h"

enum conf_type {
    CONF_TYPE_STR, CONF_TYPE_SECRET, CONF_TYPE_BOOL, CONF_TYPE_INT,
    CONF_TYPE_FLOAT, CONF_TYPE_DURATION, CONF_TYPE_SIZE, CONF_TYPE_LIST,
    CONF_TYPE_MAP, CONF_TYPE_URLS, CONF_TYPE_JSON
};

/* A row of the settings table, by enum conf_id. */
struct conf_desc {
    struct conf_row pub;
    enum conf_type type;
    size_t offset; /* in struct conf */
    int64_t min, max;
};
extern const struct conf_desc conf_descs[CONF_ID_COUNT];

struct conf_loader {
    struct conf *conf;
    const char *name; /* of the file, for messages */
    void (*warn)(void *arg, const char *text);
    void *arg;
};

/* "file:line: key: what"; returns -1. */
int conf_refuse(const struct conf_loader *l, const struct ytree *node,
                const char *key, const char *what, struct err *err);
void conf_warn(const struct conf_loader *l, const struct ytree *node,
               const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Typed values of one node; null is an error here (callers skip it). */
int conf_get_str(const struct conf_loader *l, const struct ytree *node,
                 const char *key, char **ret, struct err *err);
int conf_get_bool(const struct conf_loader *l, const struct ytree *node,
                  const char *key, bool *ret, struct err *err);
int conf_get_int(const struct conf_loader *l, const struct ytree *node,
                 const char *key, int64_t *ret, struct err *err);
int conf_get_float(const struct conf_loader *l, const struct ytree *node,
                   const char *key, double *ret, struct err *err);
int conf_get_size(const struct conf_loader *l, const struct ytree *node,
                  const char *key, int64_t *ret, struct err *err);
int conf_get_duration(const struct conf_loader *l,
                      const struct ytree *node, const char *key,
                      int64_t *ret, struct err *err);
int conf_get_list(const struct conf_loader *l, const struct ytree *node,
                  const char *key, struct conf_list *ret, struct err *err);
int conf_get_map(const struct conf_loader *l, const struct ytree *node,
                 const char *key, struct conf_map *ret, struct err *err);
/* A map, as JSON text. */
int conf_get_json(const struct conf_loader *l, const struct ytree *node,
                  const char *key, char **ret, struct err *err);

void conf_list_fini(struct conf_list *list);
void conf_map_fini(struct conf_map *map);

/* Warn of keys below `map` (at the dotted path `prefix`) that nobody reads. */
void conf_warn_unknown(const struct conf_loader *l, const struct ytree *map,
                       const char *prefix);

/* Sections with code of their own. node may be NULL (absent). */
int conf_read_itypes(const struct conf_loader *l,
                     const struct ytree *node, struct err *err);
int conf_read_backends(const struct conf_loader *l,
                       const struct ytree *node, struct err *err);

#endif
