/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CONF_CONF_PRIV_H
#define CORE_CONF_CONF_PRIV_H

/* What the files of core/conf share while a configuration is being read. */

#include "core/conf/conf.h"
#include "core/conf/ytree.h"

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

/* Sections with code of their own. node may be NULL (absent). */
int conf_read_itypes(const struct conf_loader *l,
                     const struct ytree *node, struct err *err);
int conf_read_backends(const struct conf_loader *l,
                       const struct ytree *node, struct err *err);

#endif
