/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The callbacks of a driver, each wrapped once: begin the call, enter the
 * driver, end the call, and for some put the results in order. This is the
 * only file that enters driver code (constructors apart).
 *
 * A callback that is not there, or whose capability the set does not have, is
 * answered UNSUPPORTED without entering the driver.
 *
 * Runs on whatever thread its caller chose, never on the loop.
 */

#include "core/plugin/drvset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/fault.h"
#include "core/base/jsn.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/plugin/hosttab.h"
#include "core/plugin/jsonview.h"
#include "core/plugin/record.h"
#include "core/plugin/registry.h"
#include "core/plugin/schema.h"
#include "core/port/cloud.h"

enum { PARAMS_MAX = 1 << 20 };

/* --- the set ------------------------------------------------------------- */

static struct jsn *copy_params(const struct jsn *params, struct err *err)
{
    CLEANUP(buf_fini) struct buf text;

    buf_init(&text, PARAMS_MAX);
    if (params)
        jsn_print(params, false, &text);
    else
        buf_puts(&text, "{}");
    if (text.over) {
        err_set(err, ERR_CONFIG, "DriverParameters is too large");
        return NULL;
    }
    return jsn_parse(text.data, text.len, err);
}

int drvset_init(struct drvset *s, const struct driver *driver,
                const char *backend, const char *set_id,
                const char *state_dir, const struct jsn *params,
                struct logger *log, struct err *err)
{
    memset(s, 0, sizeof *s);
    if (schema_check(driver->descriptor->schema, params, err) ||
        !(s->params = copy_params(params, err)))
        return err_prefix(err, "backend %s", backend);
    s->entry = *driver->descriptor;
    s->backend = mem_strdup(backend);
    s->set_id = mem_strdup(set_id);
    s->state_dir = state_dir && state_dir[0]
                       ? mem_printf("%s/%s", state_dir, driver->name)
                       : mem_strdup("");
    s->origin.log = log;
    s->origin.driver = s->entry.name;
    s->origin.backend = s->backend;
    return 0;
}

void drvset_fini(struct drvset *s)
{
    if (s->set)
        s->entry.set_close(s->set);
    s->set = NULL;
    jsn_free(s->params);
    free(s->backend);
    free(s->set_id);
    free(s->state_dir);
    memset(s, 0, sizeof *s);
}

/* --- entering the driver ------------------------------------------------- */

static struct cdc_op *begin(struct call *c)
{
    struct cdc_op *op = call_begin(c);

    if (!op) {
        c->outcome = OP_REFUSED;
        err_set(&c->err, ERR_TRANSIENT, "%d driver calls are running",
                CALLS_MAX);
    }
    return op;
}

static void unsupported(struct call *c)
{
    c->outcome = OP_REFUSED;
    err_set(&c->err, ERR_UNSUPPORTED, "the driver has no %s",
            call_label(c->kind));
}

static int make_state_dir(const char *dir, struct err *err)
{
    if (dir[0] && mkdir(dir, 0700) && errno != EEXIST)
        return err_set_errno(err, errno, "mkdir %s", dir);
    return 0;
}

struct cdc_set *drvset_open(const struct drvset *s, struct call *c)
{
    const struct cdc_set_config config = {
        .size = sizeof config,
        .set_id = s->set_id,
        .backend = s->backend,
        .state_dir = s->state_dir,
        .params = jsonview_of(s->params),
    };
    struct cdc_set *set = NULL;
    struct cdc_op *op;
    int32_t rc;

    c->caps = s->entry.caps;
    c->outcome = OP_REFUSED;
    if (make_state_dir(s->state_dir, &c->err) || !(op = begin(c)))
        return NULL;
    rc = s->entry.set_open(hosttab_get(), op, &config, &set);
    call_end(c, rc);
    if (c->outcome == OP_DONE && !set) {
        c->outcome = OP_REFUSED;
        err_set(&c->err, ERR_INTERNAL, "the driver opened no set");
    }
    return c->outcome == OP_DONE ? set : NULL;
}

void drvset_adopt(struct drvset *s, struct cdc_set *set, const struct call *c)
{
    s->set = set;
    s->caps = c->caps;
}

void drvset_create(const struct drvset *s, struct call *c,
                   const struct cdc_create_spec *spec)
{
    struct cdc_op *op = begin(c);

    if (!op)
        return;
    c->count = spec->count;
    call_end(c, s->entry.create(op, s->set, spec));
    if (c->outcome == OP_DONE)
        fault_hit(FAULT_AFTER_CREATE);
}

/* Keep what matches, and of each id the last record, at its first place. */
static void tidy(struct call *c, const struct cdc_tag *filter,
                 uint32_t n_filter)
{
    struct map *seen = map_create(NULL); /* id -> index + 1 */
    size_t n = 0, at;

    for (size_t i = 0; i < c->instances.n; i++) {
        struct cloud_instance *r = c->instances.v[i];

        if (!record_has_tags(r, filter, n_filter)) {
            free(r);
        } else if ((at = (size_t)(uintptr_t)map_get(seen, r->id))) {
            free(c->instances.v[at - 1]);
            c->instances.v[at - 1] = r;
        } else {
            c->instances.v[n++] = r;
            map_set(seen, r->id, (void *)(uintptr_t)n);
        }
    }
    c->instances.n = n;
    map_destroy(seen);
}

static void forget_instances(struct call *c)
{
    for (size_t i = 0; i < c->instances.n; i++)
        free(c->instances.v[i]);
    VEC_CLEAR(&c->instances);
    c->has_unknown = false;
    buf_reset(&c->unknown);
}

void drvset_list(const struct drvset *s, struct call *c,
                 const struct cdc_tag *filter, uint32_t n_filter)
{
    struct cdc_op *op = begin(c);

    if (!op)
        return;
    call_end(c, s->entry.list(op, s->set, filter, n_filter));
    if (c->outcome != OP_DONE || fault_hit(FAULT_LIST_EMPTY))
        forget_instances(c);
    else
        tidy(c, filter, n_filter);
}

void drvset_set_tags(const struct drvset *s, struct call *c, const char *id,
                     const struct cdc_tag *tags, uint32_t n_tags)
{
    const struct cdc_driver *d = &s->entry;
    struct cdc_op *op;

    if (!d->set_tags || !(s->caps & CDC_CAP_SET_TAGS))
        unsupported(c);
    else if ((op = begin(c)))
        call_end(c, d->set_tags(op, s->set, id, tags, n_tags));
}

void drvset_destroy(const struct drvset *s, struct call *c, const char *id)
{
    struct cdc_op *op = begin(c);

    if (op)
        call_end(c, s->entry.destroy(op, s->set, id));
}

void drvset_verify_host_key(const struct drvset *s, struct call *c,
                            const char *id, const char *key)
{
    const struct cdc_driver *d = &s->entry;
    struct cdc_op *op;

    if (!d->verify_host_key)
        unsupported(c);
    else if ((op = begin(c)))
        call_end(c, d->verify_host_key(op, s->set, id, key));
}

void drvset_price_history(const struct drvset *s, struct call *c,
                          const char *provider_type, bool preemptible,
                          const char *placement, int64_t since_ms)
{
    const struct cdc_driver *d = &s->entry;
    struct cdc_op *op;

    if (!d->price_history || !(s->caps & CDC_CAP_PRICES))
        unsupported(c);
    else if ((op = begin(c)))
        call_end(c, d->price_history(op, s->set, provider_type, preemptible,
                                     placement, since_ms));
}

void drvset_describe(const struct drvset *s, struct call *c)
{
    const struct cdc_driver *d = &s->entry;
    struct cdc_op *op;

    if (!d->describe)
        unsupported(c);
    else if ((op = begin(c)))
        call_end(c, d->describe(op, s->set));
}

void drvset_quota_group(const struct drvset *s, const char *provider_type,
                        bool preemptible, char *out, size_t size)
{
    const struct cdc_driver *d = &s->entry;

    memset(out, 0, size);
    if (!d->quota_group || !s->set)
        return;
    d->quota_group(s->set, provider_type, preemptible, out, (uint32_t)size);
    out[size - 1] = '\0';
    if (!text_is_utf8(out, strlen(out)))
        out[0] = '\0';
}
