/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section InstanceTypes: a map from a name of ours to what the provider's
 * type holds and costs. Fields and their meaning are Arvados'
 * (doc.arvados.org, "Configuration reference", InstanceTypes); `Backend` is
 * ours and limits a type to one backend.
 *
 *   - ProviderType defaults to the name; scratch = included + added;
 *   - PreemptiblePriceFactor adds NAME.preemptible for each type that is not
 *     preemptible;
 *   - without the section and with the driver loopback, one type `localhost`
 *     stands for this machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/conf/conf_priv.h"

enum field_type { F_TEXT, F_COUNT, F_COUNT32, F_SIZE, F_PRICE, F_BOOL };

struct field {
    const char *key;
    enum field_type type;
    size_t offset;
    size_t size; /* of a text */
};

#define TEXT(k, m)                                                            \
    { k, F_TEXT, offsetof(struct itype, m), sizeof((struct itype *) 0)->m }
#define VALUE(k, t, m) { k, t, offsetof(struct itype, m), 0 }

static const struct field fields[] = {
    TEXT("ProviderType", provider_type),
    TEXT("Backend", backend),
    VALUE("VCPUs", F_COUNT, vcpus),
    VALUE("RAM", F_SIZE, ram),
    VALUE("IncludedScratch", F_SIZE, included_scratch),
    VALUE("AddedScratch", F_SIZE, added_scratch),
    VALUE("Price", F_PRICE, price),
    VALUE("Preemptible", F_BOOL, preemptible),
};

static const struct field gpu_fields[] = {
    TEXT("Stack", gpu_stack),
    TEXT("DriverVersion", gpu_driver),
    TEXT("HardwareTarget", gpu_target),
    VALUE("DeviceCount", F_COUNT32, gpu_count),
    VALUE("VRAM", F_SIZE, gpu_vram),
};

static int read_text(const struct conf_loader *l, const struct field *f,
                     const struct ytree *node, const char *path,
                     char *out, struct err *err)
{
    CLEANUP(mem_free) char *text = NULL;

    if (conf_get_str(l, node, path, &text, err) < 0)
        return -1;
    if (text_copy(out, text, f->size) >= f->size)
        return conf_refuse(l, node, path, "too long", err);
    return 0;
}

static int read_count(const struct conf_loader *l, const struct field *f,
                      const struct ytree *node, const char *path,
                      char *p, struct err *err)
{
    int64_t v = 0;
    int rc = f->type == F_SIZE ? conf_get_size(l, node, path, &v, err)
                               : conf_get_int(l, node, path, &v, err);
    int64_t max = f->type == F_SIZE ? INT64_MAX / 4 : 1000000;

    if (rc < 0)
        return -1;
    if (v < 0 || v > max)
        return conf_refuse(l, node, path, "out of range", err);
    if (f->type == F_COUNT32)
        *(int32_t *) (void *) p = (int32_t) v;
    else
        *(int64_t *) (void *) p = v;
    return 0;
}

static int read_price(const struct conf_loader *l,
                      const struct ytree *node, const char *path,
                      double *ret, struct err *err)
{
    if (conf_get_float(l, node, path, ret, err) < 0)
        return -1;
    if (!(*ret >= 0 && *ret <= 1e9))
        return conf_refuse(l, node, path, "out of range", err);
    return 0;
}

static int read_field(const struct conf_loader *l, const struct field *f,
                      const struct ytree *node, const char *path,
                      struct itype *it, struct err *err)
{
    char *p = (char *) it + f->offset;

    switch (f->type) {
    case F_TEXT:
        return read_text(l, f, node, path, p, err);
    case F_PRICE:
        return read_price(l, node, path, (double *) (void *) p, err);
    case F_BOOL:
        return conf_get_bool(l, node, path, (bool *) p, err);
    default:
        return read_count(l, f, node, path, p, err);
    }
}

static const struct field *find_field(const struct field *f, size_t n,
                                      const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(f[i].key, key))
            return &f[i];
    return NULL;
}

static int read_fields(const struct conf_loader *l,
                       const struct ytree *map, const char *prefix,
                       const struct field *f, size_t n, struct itype *it,
                       struct err *err)
{
    for (size_t i = 0; i < map->n; i++) {
        const struct ytree *node = map->v[i];
        const struct field *field = find_field(f, n, node->key);
        char path[256];

        snprintf(path, sizeof path, "%s.%s", prefix, node->key);
        if (ytree_is_null(node))
            continue;
        if (field) {
            if (read_field(l, field, node, path, it, err) < 0)
                return -1;
        } else if (f == fields && !strcmp(node->key, "GPU") &&
                   node->kind == YTREE_MAP) {
            if (read_fields(l, node, path, gpu_fields,
                            MEM_COUNT(gpu_fields), it, err) < 0)
                return -1;
        } else {
            conf_warn(l, node, "%s: unknown key, ignored", path);
        }
    }
    return 0;
}

static int check_itype(const struct conf_loader *l,
                       const struct ytree *node, const char *path,
                       const struct itype *it, struct err *err)
{
    if (it->vcpus < 1 || it->ram < 1)
        return conf_refuse(l, node, path, "needs VCPUs and RAM above 0", err);
    if (*it->gpu_stack && strcmp(it->gpu_stack, "cuda") &&
        strcmp(it->gpu_stack, "rocm"))
        return conf_refuse(l, node, path, "GPU.Stack is cuda or rocm", err);
    return 0;
}

static int read_itype(const struct conf_loader *l,
                      const struct ytree *node, struct itype *it,
                      struct err *err)
{
    char path[128];

    snprintf(path, sizeof path, "InstanceTypes.%s", node->key);
    if (node->kind != YTREE_MAP)
        return conf_refuse(l, node, path, "a map wanted", err);
    if (text_copy(it->name, node->key, sizeof it->name) >= sizeof it->name)
        return conf_refuse(l, node, path, "name too long", err);
    text_copy(it->provider_type, it->name, sizeof it->provider_type);
    if (read_fields(l, node, path, fields, MEM_COUNT(fields), it, err) < 0)
        return -1;
    return check_itype(l, node, path, it, err);
}

static void add_spot_variants(const struct conf_loader *l,
                              const struct ytree *section)
{
    struct itypes *its = &l->conf->itypes;
    size_t n = its->n;

    for (size_t i = 0; i < n; i++) {
        struct itype spot = its->v[i];
        int len;

        if (spot.preemptible)
            continue;
        len = snprintf(spot.name, sizeof spot.name, "%.50s.preemptible",
                       its->v[i].name);
        if (len >= (int) sizeof spot.name || itypes_find(its, spot.name) ||
            its->n == ITYPES_MAX) {
            conf_warn(l, section, "InstanceTypes.%s: not added, the name "
                                  "is taken", spot.name);
            continue;
        }
        spot.preemptible = true;
        spot.price *= l->conf->spot_price_factor;
        its->v[its->n++] = spot;
    }
}

/* This machine, as Arvados' loader does it for its loopback driver. */
static void add_localhost(struct itypes *its)
{
    struct itype *it = &its->v[its->n++];
    struct statvfs fs;
    const char *tmp = getenv("TMPDIR");

    text_copy(it->name, "localhost", sizeof it->name);
    text_copy(it->provider_type, "localhost", sizeof it->provider_type);
    it->vcpus = sysconf(_SC_NPROCESSORS_ONLN);
    it->ram = (int64_t) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    it->price = 1.0;
    if (statvfs(tmp ? tmp : "/tmp", &fs) == 0)
        it->included_scratch = (int64_t) fs.f_bavail * (int64_t) fs.f_frsize;
}

int conf_read_itypes(const struct conf_loader *l,
                     const struct ytree *node, struct err *err)
{
    struct itypes *its = &l->conf->itypes;

    its->v = mem_calloc(ITYPES_MAX, sizeof *its->v);
    if (!node || ytree_is_null(node)) {
        if (!strcmp(l->conf->driver, "loopback"))
            add_localhost(its);
        return 0;
    }
    if (node->kind != YTREE_MAP)
        return conf_refuse(l, node, "InstanceTypes",
                           "a map from name to type wanted", err);
    for (size_t i = 0; i < node->n; i++) {
        if (!strcmp(node->v[i]->key, "SAMPLE"))
            continue;
        if (its->n == ITYPES_MAX)
            return conf_refuse(l, node->v[i], "InstanceTypes",
                               "more than 1024 types", err);
        if (read_itype(l, node->v[i], &its->v[its->n++], err) < 0)
            return -1;
    }
    if (l->conf->spot_price_factor > 0)
        add_spot_variants(l, node);
    its->v = mem_realloc(its->v, its->n ? its->n : 1, sizeof *its->v);
    itypes_sort(its);
    return 0;
}
