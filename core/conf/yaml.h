/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CONF_YAML_H
#define CORE_CONF_YAML_H

/*
 * YAML text to a tree that remembers lines. The only file that includes
 * libyaml is yaml.c. Aliases are resolved, `<<` merges; duplicate keys,
 * several documents, tags of one's own, more than YAML_NODES nodes after
 * expansion or a depth beyond YAML_DEPTH are refused.
 */

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

enum { YAML_NODES = 100000, YAML_DEPTH = 64, YAML_FILE_MAX = 4 << 20 };

enum yaml_kind { YAML_SCALAR, YAML_SEQ, YAML_MAP };

struct yaml_node {
    enum yaml_kind kind;
    unsigned line;     /* from 1 */
    char *key;         /* of this node in its map, else NULL */
    char *text;        /* scalar */
    bool quoted;       /* scalar in quotes or a block: always a string */
    struct yaml_node **v;
    size_t n;
};

/* name: the file, for messages "name:line: ...". */
int yaml_parse(const char *text, size_t n, const char *name,
               struct yaml_node **ret, struct err *err);
void yaml_free(struct yaml_node *root); /* NULL is fine */

struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
/* Plain ~, null, Null, NULL or nothing at all. */
bool yaml_is_null(const struct yaml_node *node);
/* YAML 1.1 booleans; -1 when it is none. */
int yaml_bool(const struct yaml_node *node, bool *ret);
/* Append as JSON, plain scalars resolved by the YAML 1.1 core rules. */
int yaml_to_json(const struct yaml_node *node, struct buf *out);

#endif
