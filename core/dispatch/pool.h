/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_POOL_H
#define CORE_DISPATCH_POOL_H

/*
 * All instances, the creates under way, and the clouds they come from.
 */

#include "core/base/vec.h"
#include "core/dispatch/core.h"
#include "core/dispatch/guard.h"
#include "core/dispatch/holdoff.h"
#include "core/dispatch/jr.h"

struct cloud_instance;
struct create;
struct map;
struct run;
struct worker;

/* A bucket of tokens: so many acts per second, a second's worth at once. */
struct pace {
    int64_t per_s; /* 0 = unlimited */
    int64_t credit_us;
    int64_t last_us;
    bool claimed;  /* the next token is for somebody who goes first */
};

struct backend {
    struct dispatch *d;
    struct cloud_port *cloud;
    const struct dispatch_backend *cfg;
    bool open;
    struct holdoff open_hold;
    struct holdoffs *holds;   /* of creates, by guard_key */
    struct pace pace;
    int64_t instances;        /* workers and unresolved creates */
    bool looked;              /* reported to core_look_done */
    struct deadline timer;    /* next list, or next try to open */

    bool listing;
    int64_t list_us;          /* when it began */
    int64_t listed_us;        /* start of the last complete one; 0 = never */
    struct holdoff list_hold;
    unsigned list_fast;       /* quick lists in a row */
    bool list_again;          /* somebody needs one that begins from now on */
};

struct pool {
    struct dispatch *d;
    struct backend *b;
    size_t n;
    struct map *workers;      /* by key */
    VEC(struct worker *) list; /* the same, in order of serial */
    struct map *creates;      /* by token */
    struct run *limbo;        /* over, but with operations in flight */
    struct map *buried;       /* dead, but with operations in flight */
    uint64_t next_serial;
    int64_t creates_in_flight;
    struct pace probes;
};

struct pool *pool_create(struct dispatch *d);
void pool_destroy(struct pool *p); /* NULL is fine */
/* Open the clouds, list them; core_look_done() when each was tried. */
void pool_start(struct pool *p);
void pool_stop(struct pool *p);

/* Records of the journal: INSTANCE, then START, then CREATE. */
void pool_replay(struct pool *p, const struct journal_rec *rec);

struct worker *pool_find(struct pool *p, const char *backend, const char *id);
/* The instance with this serial, or NULL (gone, or a create). */
struct worker *pool_by_serial(struct pool *p, uint64_t serial);

/* A new record, in state unknown. */
struct worker *pool_add(struct backend *b, const char *id);
void pool_set_type(struct worker *w, const char *name);

/* A cloud told of an instance: in a list, or as the result of a create. */
void pool_saw(struct backend *b, const struct cloud_instance *i,
              int64_t start_us);
/* A list that begins from now on is wanted, soon. */
void pool_list_soon(struct backend *b);
/* dead and without operations: free it. */
void pool_bury(struct worker *w);
/* Every instance was looked at since we started, or is known to be gone. */
bool pool_all_known(const struct pool *p);
/* Write the INSTANCE record. */
void pool_record(struct worker *w);

/* The backend as guard sees it. */
void pool_guard_view(const struct backend *b, struct guard_backend *ret);

/* A tag's name with the configured prefix. */
const char *pool_tag_name(const struct dispatch *d, const char *name,
                          char out[128]);
const char *pool_tag_of(const struct cloud_instance *i, const char *key);

/* Take one token; false: none before *ret_next_us. */
bool pace_take(struct pace *p, int64_t now_us, int64_t *ret_next_us);
/* The same for one who goes first: if there is none, the next is kept for
 * him, and he must ask again at *ret_next_us. */
bool pace_take_first(struct pace *p, int64_t now_us, int64_t *ret_next_us);

#endif
