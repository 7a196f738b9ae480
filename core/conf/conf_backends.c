/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section Containers.CloudVMs.Backends: several instance sets at once,
 * NAME: {Driver, DriverParameters, ImageID, Placements, MaxInstances,
 * SSHUser}. Without it, the plain settings of an Arvados file are one backend
 * called `default`, so that the rest of the program knows only backends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/conf/conf_priv.h"
#include "core/model/dispatch_cfg.h"

static struct conf_backend *add(struct conf *c, const char *name)
{
    struct conf_backend *b;

    c->backends = mem_realloc(c->backends, c->n_backends + 1,
                              sizeof *c->backends);
    b = &c->backends[c->n_backends++];
    *b = (struct conf_backend){ 0 };
    b->name = mem_strdup(name);
    b->driver = mem_strdup("");
    b->parameters = mem_strdup("{}");
    b->image_id = mem_strdup(c->image_id);
    b->ssh_user = mem_strdup("");
    return b;
}

static int read_member(const struct conf_loader *l,
                       const struct ytree *node, const char *path,
                       struct conf_backend *b, struct err *err)
{
    const char *key = node->key;

    if (!strcmp(key, "Driver"))
        return conf_get_str(l, node, path, &b->driver, err);
    if (!strcmp(key, "DriverParameters"))
        return conf_get_json(l, node, path, &b->parameters, err);
    if (!strcmp(key, "ImageID"))
        return conf_get_str(l, node, path, &b->image_id, err);
    if (!strcmp(key, "SSHUser"))
        return conf_get_str(l, node, path, &b->ssh_user, err);
    if (!strcmp(key, "Placements"))
        return conf_get_list(l, node, path, &b->placements, err);
    if (!strcmp(key, "MaxInstances"))
        return conf_get_int(l, node, path, &b->max_instances, err);
    conf_warn(l, node, "%s: unknown key, ignored", path);
    return 0;
}

static int check_backend(const struct conf_loader *l,
                         const struct ytree *node,
                         const struct conf_backend *b, struct err *err)
{
    if (!text_is_name(b->name, DISPATCH_NAME - 1))
        return conf_refuse(l, node, b->name,
                           "the name of a backend consists of a-z, 0-9, "
                           "- and _", err);
    if (!text_is_name(b->driver, DISPATCH_NAME - 1))
        return conf_refuse(l, node, b->name,
                           "Driver: a name of a-z, 0-9, - and _ wanted", err);
    if (b->placements.n > 8)
        return conf_refuse(l, node, b->name, "more than 8 Placements", err);
    if (b->max_instances < 0)
        return conf_refuse(l, node, b->name, "MaxInstances is negative", err);
    return 0;
}

static int read_backend(const struct conf_loader *l,
                        const struct ytree *map, struct err *err)
{
    struct conf_backend *b = add(l->conf, map->key);

    if (map->kind != YTREE_MAP)
        return conf_refuse(l, map, map->key, "a map wanted", err);
    for (size_t i = 0; i < map->n; i++) {
        char path[256];

        snprintf(path, sizeof path, "Containers.CloudVMs.Backends.%s.%s",
                 map->key, map->v[i]->key);
        if (!ytree_is_null(map->v[i]) &&
            read_member(l, map->v[i], path, b, err) < 0)
            return -1;
    }
    return check_backend(l, map, b, err);
}

static int add_default(const struct conf_loader *l, struct err *err)
{
    struct conf_backend *b = add(l->conf, "default");

    mem_set_str(&b->driver, l->conf->driver);
    mem_set_str(&b->parameters, l->conf->driver_parameters);
    if (!text_is_name(b->driver, DISPATCH_NAME - 1))
        return err_set(err, ERR_CONFIG,
                       "%s: Containers.CloudVMs.Driver: \"%s\": a name of "
                       "a-z, 0-9, - and _ wanted",
                       l->name, b->driver);
    return 0;
}

int conf_read_backends(const struct conf_loader *l,
                       const struct ytree *node, struct err *err)
{
    if (!node || ytree_is_null(node))
        return add_default(l, err);
    if (node->kind != YTREE_MAP || !node->n)
        return conf_refuse(l, node, "Containers.CloudVMs.Backends",
                           "a map from name to backend wanted", err);
    if (node->n > DISPATCH_BACKENDS)
        return conf_refuse(l, node, "Containers.CloudVMs.Backends",
                           "more than 16 backends", err);
    for (size_t i = 0; i < node->n; i++)
        if (read_backend(l, node->v[i], err) < 0)
            return -1;
    return 0;
}
