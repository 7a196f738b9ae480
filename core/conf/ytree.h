/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CONF_YTREE_H
#define CORE_CONF_YTREE_H

/*
 * YAML text to a tree that remembers lines (libyaml itself owns the prefix
 * yaml_). The only file that includes
 * libyaml is ytree.c. Aliases are resolved, `<<` merges; duplicate keys,
 * several documents, tags of one's own, more than YTREE_NODES nodes after
 * expansion or a depth beyond YTREE_DEPTH are refused.
 */

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

enum { YTREE_NODES = 100000, YTREE_DEPTH = 64, YTREE_FILE_MAX = 4 << 20 };

enum ytree_kind { YTREE_SCALAR, YTREE_SEQ, YTREE_MAP };

struct ytree {
    enum ytree_kind kind;
    unsigned line;     /* from 1 */
    char *key;         /* of this node in its map, else NULL */
    char *text;        /* scalar */
    bool quoted;       /* scalar in quotes or a block: always a string */
    struct ytree **v;
    size_t n;
};

/* name: the file, for messages "name:line: ...". */
int ytree_parse(const char *text, size_t n, const char *name,
               struct ytree **ret, struct err *err);
void ytree_free(struct ytree *root); /* NULL is fine */

struct ytree *ytree_get(const struct ytree *map, const char *key);
/* Plain ~, null, Null, NULL or nothing at all. */
bool ytree_is_null(const struct ytree *node);
/* YAML 1.1 booleans; -1 when it is none. */
int ytree_bool(const struct ytree *node, bool *ret);
/* Append as JSON, plain scalars resolved by the YAML 1.1 core rules. */
int ytree_to_json(const struct ytree *node, struct buf *out);

#endif
