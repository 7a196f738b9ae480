/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from strings to pointers: an AA tree.
 *
 * An AA tree is a balanced tree with one number per node, its level, and two
 * repairs: skew turns a left child of the same level to the right, split lifts
 * the middle of two right children of the same level (A. Andersson, "Balanced
 * search trees made simple", WADS 1993). Invariants: a leaf has level 1; a
 * left child is one level below its parent, a right child at most one; a right
 * grandchild is strictly below its grandparent; a node above level 1 has two
 * children.
 *
 * Recursion is as deep as the tree, at most 2 log2(n). A node holds its key,
 * so it is moved by relinking and a key that map_next() gave out stays valid
 * until its own entry goes.
 *
 * Not synchronised: a map belongs to one thread at a time.
 */
#include "core/base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

struct node {
    struct node *left;
    struct node *right;
    void *value;
    unsigned level;
    char key[];
};

struct map {
    struct node *root;
    size_t count;
    void (*free_value)(void *value);
};

static unsigned level(const struct node *t)
{
    return t ? t->level : 0;
}

static struct node *skew(struct node *t)
{
    struct node *left = t ? t->left : NULL;

    if (!left || left->level != t->level)
        return t;
    t->left = left->right;
    left->right = t;
    return left;
}

static struct node *split(struct node *t)
{
    struct node *right = t ? t->right : NULL;

    if (!right || level(right->right) != t->level)
        return t;
    t->right = right->left;
    right->left = t;
    right->level++;
    return right;
}

/* Restore the invariants of t after one of its subtrees lost a node. */
static struct node *repair(struct node *t)
{
    unsigned low = level(t->left) < level(t->right) ? level(t->left)
                                                    : level(t->right);

    if (low + 1 < t->level) {
        t->level = low + 1;
        if (level(t->right) > t->level)
            t->right->level = t->level;
    }
    t = skew(t);
    t->right = skew(t->right);
    if (t->right)
        t->right->right = skew(t->right->right);
    t = split(t);
    t->right = split(t->right);
    return t;
}

static struct node *find(const struct map *m, const char *key)
{
    struct node *t = m->root;

    while (t) {
        int c = strcmp(key, t->key);
        if (c == 0)
            return t;
        t = c < 0 ? t->left : t->right;
    }
    return NULL;
}

static struct node *node_create(const char *key, void *value)
{
    size_t size = strlen(key) + 1;
    struct node *t = mem_zalloc(sizeof *t + size);

    memcpy(t->key, key, size);
    t->value = value;
    t->level = 1;
    return t;
}

/* The key of fresh is not in t. */
static struct node *insert(struct node *t, struct node *fresh)
{
    if (!t)
        return fresh;
    if (strcmp(fresh->key, t->key) < 0)
        t->left = insert(t->left, fresh);
    else
        t->right = insert(t->right, fresh);
    return split(skew(t));
}

static struct node *unlink_min(struct node *t, struct node **ret_min)
{
    if (!t->left) {
        *ret_min = t;
        return t->right;
    }
    t->left = unlink_min(t->left, ret_min);
    return repair(t);
}

/* Take the node with that key out of t; *ret stays as it is if there is none. */
static struct node *unlink_key(struct node *t, const char *key,
                               struct node **ret)
{
    if (!t)
        return NULL;
    int c = strcmp(key, t->key);
    if (c < 0) {
        t->left = unlink_key(t->left, key, ret);
    } else if (c > 0) {
        t->right = unlink_key(t->right, key, ret);
    } else {
        struct node *next;
        *ret = t;
        if (!t->right)
            return t->left;
        struct node *right = unlink_min(t->right, &next);
        next->left = t->left;
        next->right = right;
        next->level = t->level;
        t = next;
    }
    return repair(t);
}

struct map *map_create(void (*free_value)(void *value))
{
    struct map *m = MEM_NEW(struct map);

    m->free_value = free_value;
    return m;
}

static void free_tree(struct map *m, struct node *t)
{
    if (!t)
        return;
    free_tree(m, t->left);
    free_tree(m, t->right);
    if (m->free_value)
        m->free_value(t->value);
    free(t);
}

void map_clear(struct map *m)
{
    struct node *root = m->root;

    /* Emptied first: a destructor may look into the map. */
    m->root = NULL;
    m->count = 0;
    free_tree(m, root);
}

void map_destroy(struct map *m)
{
    if (!m)
        return;
    map_clear(m);
    free(m);
}

void *map_get(const struct map *m, const char *key)
{
    struct node *t = find(m, key);

    return t ? t->value : NULL;
}

void map_set(struct map *m, const char *key, void *value)
{
    struct node *t = find(m, key);

    assert(value);
    if (t) {
        void *old = t->value;
        t->value = value;
        if (m->free_value && old != value)
            m->free_value(old);
        return;
    }
    m->root = insert(m->root, node_create(key, value));
    m->count++;
}

void *map_take(struct map *m, const char *key)
{
    struct node *t = NULL;

    m->root = unlink_key(m->root, key, &t);
    if (!t)
        return NULL;
    void *value = t->value;
    free(t);
    m->count--;
    return value;
}

bool map_delete(struct map *m, const char *key)
{
    void *value = map_take(m, key);

    if (value && m->free_value)
        m->free_value(value);
    return value != NULL;
}

size_t map_count(const struct map *m)
{
    return m->count;
}

void *map_next(const struct map *m, const char **key)
{
    struct node *t = m->root;
    struct node *best = NULL;

    /* The leftmost node greater than *key. */
    while (t) {
        if (!*key || strcmp(t->key, *key) > 0) {
            best = t;
            t = t->left;
        } else {
            t = t->right;
        }
    }
    if (!best)
        return NULL;
    *key = best->key;
    return best->value;
}
