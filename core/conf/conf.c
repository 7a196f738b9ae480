/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a cluster file into struct conf.
 *
 *   file -> yaml tree -> the one cluster -> defaults, then each row of the
 *   settings table that the file has -> InstanceTypes, Backends -> a walk
 *   that warns of what nobody read.
 *
 * Only the first wrong value is reported; a program that starts with
 * half a configuration would be worse than one that does not start.
 */
#include "core/conf/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/fdio.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/conf/conf_priv.h"

static void *slot(struct conf *c, const struct conf_desc *row)
{
    return (char *) c + row->offset;
}

static int in_range(const struct conf_loader *l, const struct ytree *node,
                    const struct conf_desc *row, double v, struct err *err)
{
    if (v >= (double) row->min && v <= (double) row->max)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "%s:%u: %s: \"%s\" is out of range (%lld to %lld%s)",
                   l->name, node->line, row->pub.key, node->text,
                   (long long) row->min, (long long) row->max,
                   row->type == CONF_TYPE_DURATION ? " ms"
                   : row->type == CONF_TYPE_SIZE   ? " bytes"
                                              : "");
}

static int set_number(const struct conf_loader *l, const struct conf_desc *row,
                      const struct ytree *node, int64_t *ret,
                      struct err *err)
{
    int64_t v = 0;
    int rc = row->type == CONF_TYPE_INT
                 ? conf_get_int(l, node, row->pub.key, &v, err)
             : row->type == CONF_TYPE_SIZE
                 ? conf_get_size(l, node, row->pub.key, &v, err)
                 : conf_get_duration(l, node, row->pub.key, &v, err);

    if (rc < 0 || in_range(l, node, row, (double) v, err) < 0)
        return -1;
    if (v == 0 && row->pub.flags & CONF_ZDEF)
        return 0; /* what is there is the default */
    *ret = v;
    return 0;
}

static int set_float(const struct conf_loader *l, const struct conf_desc *row,
                     const struct ytree *node, double *ret,
                     struct err *err)
{
    double v;

    if (conf_get_float(l, node, row->pub.key, &v, err) < 0 ||
        in_range(l, node, row, v, err) < 0)
        return -1;
    *ret = v;
    return 0;
}

/* InternalURLs: a map whose keys are URLs; an entry's ListenURL, when there,
 * is what is bound. */
static int set_urls(const struct conf_loader *l, const struct conf_desc *row,
                    const struct ytree *node, struct conf_list *ret,
                    struct err *err)
{
    if (node->kind != YTREE_MAP)
        return conf_refuse(l, node, row->pub.key,
                           "a map from URL to {} wanted", err);
    conf_list_fini(ret);
    ret->v = mem_calloc(node->n, sizeof *ret->v);
    for (size_t i = 0; i < node->n; i++) {
        const struct ytree *listen = ytree_get(node->v[i], "ListenURL");

        ret->v[ret->n++] =
            mem_strdup(listen && !ytree_is_null(listen) &&
                               listen->kind == YTREE_SCALAR && *listen->text
                           ? listen->text
                           : node->v[i]->key);
    }
    return 0;
}

static int set_row(const struct conf_loader *l, const struct conf_desc *row,
                   const struct ytree *node, struct err *err)
{
    void *p = slot(l->conf, row);
    const char *key = row->pub.key;

    switch (row->type) {
    case CONF_TYPE_STR:
    case CONF_TYPE_SECRET:
        return conf_get_str(l, node, key, p, err);
    case CONF_TYPE_BOOL:
        return conf_get_bool(l, node, key, p, err);
    case CONF_TYPE_INT:
    case CONF_TYPE_SIZE:
    case CONF_TYPE_DURATION:
        return set_number(l, row, node, p, err);
    case CONF_TYPE_FLOAT:
        return set_float(l, row, node, p, err);
    case CONF_TYPE_LIST:
        return conf_get_list(l, node, key, p, err);
    case CONF_TYPE_MAP:
        return conf_get_map(l, node, key, p, err);
    case CONF_TYPE_URLS:
        return set_urls(l, row, node, p, err);
    case CONF_TYPE_JSON:
        return conf_get_json(l, node, key, p, err);
    }
    return err_set(err, ERR_INTERNAL, "%s: unknown type of setting", key);
}

/* Defaults are written in the table as in a file, so the same parsers read
 * them; a default that does not parse is a bug and is found by every test. */
static int set_default(struct conf *c, const struct conf_desc *row,
                       struct err *err)
{
    struct conf_loader l = { .conf = c, .name = "built-in defaults" };
    struct ytree node = { .kind = YTREE_SCALAR,
                              .text = (char *) row->pub.def };
    char **text = slot(c, row);

    switch (row->type) {
    case CONF_TYPE_LIST:
    case CONF_TYPE_MAP:
    case CONF_TYPE_URLS:
        return 0; /* empty */
    case CONF_TYPE_JSON:
        *text = mem_strdup("{}");
        return 0;
    case CONF_TYPE_STR:
    case CONF_TYPE_SECRET:
        *text = mem_strdup(row->pub.def);
        return 0;
    default:
        return set_row(&l, row, &node, err);
    }
}

/* The node at a dotted key below root; NULL when absent. */
static const struct ytree *find(const struct ytree *root,
                                    const char *key)
{
    char part[64];
    const char *dot;

    for (; root && (dot = strchr(key, '.')); key = dot + 1) {
        snprintf(part, sizeof part, "%.*s", (int) (dot - key), key);
        root = ytree_get(root, part);
    }
    return root ? ytree_get(root, key) : NULL;
}

static const struct ytree *find_row(const struct ytree *cluster,
                                        const struct conf_desc *row)
{
    const struct ytree *node = find(cluster, row->pub.key);

    if (!node &&
        row->offset == offsetof(struct conf, max_per_instance))
        node = find(cluster, "Containers.MaxRunningContainersPerInstance");
    return node;
}

static int read_rows(const struct conf_loader *l,
                     const struct ytree *cluster, struct err *err)
{
    for (size_t i = 0; i < CONF_ID_COUNT; i++) {
        const struct ytree *node = find_row(cluster, &conf_descs[i]);

        if (set_default(l->conf, &conf_descs[i], err) < 0)
            return -1;
        if (!node || ytree_is_null(node))
            continue;
        l->conf->set[i] = true;
        if (conf_descs[i].pub.flags & CONF_SPECIAL)
            continue;
        if (set_row(l, &conf_descs[i], node, err) < 0)
            return -1;
        if (conf_descs[i].pub.flags & CONF_UNUSED)
            conf_warn(l, node, "%s: accepted, not used", conf_descs[i].pub.key);
    }
    return 0;
}

/* --- from file to record -------------------------------------------------- */

static int pick_cluster(const struct conf_loader *l,
                        const struct ytree *root,
                        const struct ytree **ret, struct err *err)
{
    const struct ytree *clusters = ytree_get(root, "Clusters"), *one = NULL;

    if (!clusters || clusters->kind != YTREE_MAP)
        return conf_refuse(l, clusters ? clusters : root, "Clusters",
                           "a map with one cluster id wanted", err);
    for (size_t i = 0; i < clusters->n; i++) {
        if (!strcmp(clusters->v[i]->key, "SAMPLE"))
            continue;
        if (one)
            return conf_refuse(l, clusters->v[i], "Clusters",
                               "more than one cluster", err);
        one = clusters->v[i];
    }
    if (!one || one->kind != YTREE_MAP)
        return conf_refuse(l, clusters, "Clusters", "no cluster", err);
    if (strlen(one->key) != 5 ||
        strspn(one->key, "abcdefghijklmnopqrstuvwxyz0123456789") != 5)
        return conf_refuse(l, one, "Clusters",
                           "a cluster id is 5 characters of a-z and 0-9",
                           err);
    *ret = one;
    return 0;
}

/* A token becomes a header and, hashed, a tag: plain characters only. */
static int check_tokens(const struct conf_loader *l, struct err *err)
{
    const struct {
        const char *key, *value;
    } t[] = {
        { "SystemRootToken", l->conf->system_root_token },
        { "ManagementToken", l->conf->management_token },
        { "Containers.CloudVMs.APIToken", l->conf->api_token },
    };

    for (size_t i = 0; i < MEM_COUNT(t); i++)
        for (const char *p = t[i].value; *p; p++)
            if (*p <= ' ' || *p >= 0x7f || *p == '"' || *p == '\\')
                return err_set(err, ERR_CONFIG,
                               "%s: %s: a token consists of printable ASCII "
                               "without blanks and quotes",
                               l->name, t[i].key);
    return 0;
}

static int check_words(const struct conf_loader *l, struct err *err)
{
    const struct conf *c = l->conf;

    if (log_level_of(c->log_level) < 0)
        return err_set(err, ERR_CONFIG,
                       "%s: SystemLogs.LogLevel: \"%s\" is none of debug, "
                       "info, warning, error",
                       l->name, c->log_level);
    if (strcmp(c->log_format, "json") && strcmp(c->log_format, "text"))
        return err_set(err, ERR_CONFIG,
                       "%s: SystemLogs.Format: \"%s\" is neither json nor "
                       "text",
                       l->name, c->log_format);
    if (strcmp(c->as_durability, "full") &&
        strcmp(c->as_durability, "process"))
        return err_set(err, ERR_CONFIG,
                       "%s: APIServer.Durability: \"%s\" is neither full nor "
                       "process",
                       l->name, c->as_durability);
    return check_tokens(l, err);
}

static int read_cluster(const struct conf_loader *l,
                        const struct ytree *root, struct err *err)
{
    const struct ytree *cluster = NULL;

    if (pick_cluster(l, root, &cluster, err) < 0)
        return -1;
    text_copy(l->conf->cluster_id, cluster->key, sizeof l->conf->cluster_id);
    if (read_rows(l, cluster, err) < 0 || check_words(l, err) < 0)
        return -1;
    if (conf_read_itypes(l, ytree_get(cluster, "InstanceTypes"), err) < 0 ||
        conf_read_backends(
            l, find(cluster, "Containers.CloudVMs.Backends"), err) < 0)
        return -1;
    conf_warn_unknown(l, cluster, "");
    return 0;
}

int conf_parse(const char *text, size_t n, const char *name,
               void (*warn)(void *arg, const char *text), void *arg,
               struct conf **ret, struct err *err)
{
    struct conf *c = MEM_NEW(struct conf);
    struct conf_loader l = { c, name, warn, arg };
    struct ytree *root = NULL;
    int rc;

    c->file = mem_strdup(name);
    rc = ytree_parse(text, n, name, &root, err);
    if (rc == 0)
        rc = read_cluster(&l, root, err);
    ytree_free(root);
    if (rc < 0) {
        conf_destroy(c);
        return -1;
    }
    *ret = c;
    return 0;
}

static void set_open_error(const char *path, int code, struct err *err)
{
    err_set(err, ERR_CONFIG, "%s: %s%s", path, strerror(code),
            code == ENOENT ? " (-config FILE names it, crunch-api-server init "
                             "makes one)" : "");
}

int conf_load(const char *path, void (*warn)(void *arg, const char *text),
              void *arg, struct conf **ret, struct err *err)
{
    bool standard = !strcmp(path, "-");
    const char *name = standard ? "(standard input)" : path;
    CLEANUP(mem_close) int opened = -1;
    CLEANUP(buf_wipe) struct buf b;
    struct stat st;

    buf_init(&b, YTREE_FILE_MAX);
    if (!standard) {
        opened = open(path, O_RDONLY | O_CLOEXEC);
        if (opened < 0) {
            set_open_error(path, errno, err);
            return -1;
        }
        if (warn && fstat(opened, &st) == 0 && st.st_mode & S_IROTH) {
            char text[512];

            snprintf(text, sizeof text,
                     "%s: can be read by everybody; it holds tokens: "
                     "chmod o-r it",
                     path);
            warn(arg, text);
        }
    }
    if (fdio_read_all(standard ? 0 : opened, &b) < 0) {
        err_set_errno(err, errno, "%s", name);
        if (err)
            err->class = ERR_CONFIG;
        return -1;
    }
    return conf_parse(b.data, b.len, name, warn, arg, ret, err);
}

static void row_fini(struct conf *c, const struct conf_desc *row)
{
    void *p = slot(c, row);

    switch (row->type) {
    case CONF_TYPE_SECRET:
        secret_free(*(char **) p);
        break;
    case CONF_TYPE_STR:
    case CONF_TYPE_JSON:
        free(*(char **) p);
        break;
    case CONF_TYPE_LIST:
    case CONF_TYPE_URLS:
        conf_list_fini(p);
        break;
    case CONF_TYPE_MAP:
        conf_map_fini(p);
        break;
    default:
        break;
    }
}

void conf_destroy(struct conf *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < CONF_ID_COUNT; i++)
        row_fini(c, &conf_descs[i]);
    for (size_t i = 0; i < c->n_backends; i++) {
        struct conf_backend *b = &c->backends[i];

        free(b->name);
        free(b->driver);
        free(b->parameters);
        free(b->image_id);
        free(b->ssh_user);
        conf_list_fini(&b->placements);
    }
    free(c->backends);
    itypes_fini(&c->itypes);
    free(c->file);
    free(c);
}

const char *conf_default_path(void)
{
    const char *env = getenv("ARVADOS_CONFIG");

    return env && *env ? env : "/etc/arvados/config.yml";
}

const char *conf_dispatch_token(const struct conf *c)
{
    return *c->api_token ? c->api_token : c->system_root_token;
}
