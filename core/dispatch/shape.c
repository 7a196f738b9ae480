/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shapes: containers that need the same and may run on the same types.
 *
 * Most queues have thousands of containers and a few dozen shapes. Needs and
 * types are computed once, when a container is admitted, and stay fixed: what
 * was taken from an instance is what will be given back.
 *
 * Loop thread only.
 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/dispatch/choose.h"
#include "core/dispatch/cqueue_impl.h"

struct shape {
    struct plan_shape p;
    const struct itype **types;
    uint8_t *eligible;
    char *key;
    size_t users;
};

void shape_free(void *arg)
{
    struct shape *s = arg;

    free(s->types);
    free(s->eligible);
    free(s->key);
    free(s);
}

void shape_release(struct cqueue *cq, struct qent *q)
{
    struct shape *s = (struct shape *) q->shape;

    if (!s)
        return;
    q->shape = q->pc.shape = NULL;
    if (--s->users > 0)
        return;
    map_take(cq->shapes, s->key);
    shape_free(s);
}

static void make_key(const struct need *n, const struct itype *const *types,
                     size_t n_types, const struct itypes *its, struct buf *out)
{
    buf_printf(out, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
               n->vcpus, n->ram, n->scratch, n->gpus, n->vram);
    for (size_t i = 0; i < n_types; i++)
        buf_printf(out, ",%zu", (size_t) (types[i] - its->v));
}

static struct shape *intern(struct cqueue *cq, const struct need *need,
                            const struct itype **types, size_t n_types)
{
    const struct itypes *its = &cq->d->cfg->itypes;
    CLEANUP(buf_fini) struct buf key;
    struct shape *s;

    buf_init(&key, 16384);
    make_key(need, types, n_types, its, &key);
    assert(!key.over); /* ITYPES_MAX numbers of at most four digits */
    s = map_get(cq->shapes, key.data);
    if (s)
        return s;
    s = MEM_NEW(struct shape);
    s->key = mem_strdup(key.data);
    s->types = mem_calloc(n_types + 1, sizeof(struct itype *));
    s->eligible = mem_zalloc(its->n / 8 + 1);
    for (size_t i = 0; i < n_types; i++) {
        size_t at = (size_t) (types[i] - its->v);

        s->types[i] = types[i];
        s->eligible[at / 8] |= (uint8_t) (1u << at % 8);
    }
    s->p.need = *need;
    s->p.types = s->types;
    s->p.n_types = n_types;
    s->p.eligible = s->eligible;
    map_set(cq->shapes, s->key, s);
    return s;
}

void shape_admit(struct cqueue *cq, struct qent *q)
{
    const struct dispatch_cfg *cfg = cq->d->cfg;
    const struct itype *types[ITYPES_MAX];
    struct need need;
    struct err err = {0};
    size_t n = 0;

    need_of(&q->c, &cfg->need, &need);
    if (q->c.invalid[0] != '\0')
        err_set(&err, ERR_CONFIG, "%s", q->c.invalid);
    else
        n = choose(&q->c, &need, &cfg->itypes, cfg->max_price_factor, types,
                   &err);
    struct shape *s = intern(cq, &need, types, n);

    s->users++;
    shape_release(cq, q);
    q->shape = q->pc.shape = &s->p;
    q->admitted = true;
    mem_set_str(&q->impossible, n == 0 ? err.text : NULL);
}
