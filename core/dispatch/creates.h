/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_CREATES_H
#define CORE_DISPATCH_CREATES_H

/*
 * Creates under way: from the intent until the outcome is settled.
 */

#include "core/dispatch/pool.h"

struct itype;
struct op_result;

enum create_state {
    CREATE_INTENT,  /* its record is on its way to the disk */
    CREATE_CALLING, /* the cloud was asked */
    CREATE_UNKNOWN  /* it may have happened: look, then ask again under the
                     * same token */
};

struct create {
    struct dispatch *d;
    struct backend *b;
    uint64_t serial;
    char token[28];          /* `c` + 26 base32 */
    char secret[41];
    const struct itype *type;
    char placement[64];
    int64_t count;
    int64_t seen;            /* instances with this token, so far */
    enum create_state state;
    bool counted;            /* in b->instances; until its instance is */
    bool wanted;             /* the last plan mapped something onto it */
    int64_t begun_us;        /* monotonic; of the first call or the replay */
    int64_t called_us;       /* start of the last call */
    int64_t unknown_us;      /* when its outcome became unknown */
    int64_t absent;          /* complete lists since then that lack it */
    struct holdoff hold;
    struct deadline timer;
    struct jr_wait wait;
    bool in_flight;
};

/* Ask for one instance of this type at this place: intent first. */
void create_begin(struct backend *b, const struct itype *it,
                  const char *placement);
void create_replay(struct backend *b, const struct journal_rec *rec);
/* An instance was seen for the first time: does it belong to a create under
 * way? Then it is booting, and true. */
bool create_claim(struct worker *w);
/* An accepted create failed later: the cloud says so in a list. */
void create_failed_later(struct worker *w, const struct err *why);
/* A complete list of b ended. */
void creates_listed(struct backend *b);
/* Does any wait for a list? */
bool creates_unsettled(const struct backend *b);
void creates_free_all(struct pool *p);

#endif
