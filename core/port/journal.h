/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PORT_JOURNAL_H
#define CORE_PORT_JOURNAL_H

/*
 * The journal port: what the dispatcher must not forget at a crash.
 *
 * A set of records, each identified by (kind, key). append() applies a batch
 * of puts and deletes atomically; its callback fires after they are durable.
 * Batches are applied in the order of the calls. What was not acknowledged
 * may or may not be there after a crash, but always as a whole suffix: when
 * batch n is missing, n+1 is too. No secrets in it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/op.h"

/*
 *      name      label       key           meaning; fields used
 *  CREATE: we are about to ask (or asked) a cloud for instances under this
 *      token, outcome not yet settled. key = create token. backend, itype,
 *      placement, count, at_us (wall), text = instance secret is NOT kept.
 *      Deleted when every instance of the batch was seen or known refused.
 *  START: a start command for an attempt of a container may reach this VM.
 *      key = "<uuid>/<attempt>". uuid, attempt, backend, instance, at_us.
 *      Deleted when that attempt can no longer have a live payload.
 *  INSTANCE: an instance that is or was ours. key = "<backend>/<id>". backend,
 *      instance, itype, token, hostkey (pinned, or ""), at_us (first seen).
 *      Deleted when it is confirmed gone.
 *  QUEUE: first sight of a container. key = uuid. at_us. count = attempts
 *      lost to dying instances.
 */
#define JOURNAL_KINDS(X)                                                      \
    X(CREATE,   "create")                                                     \
    X(START,    "start")                                                      \
    X(INSTANCE, "instance")                                                   \
    X(QUEUE,    "queue")

enum journal_kind {
#define X(name, label) JOURNAL_##name,
    JOURNAL_KINDS(X)
#undef X
    JOURNAL_KIND_COUNT
};

/* Strings: NUL-terminated, "" when unused. */
struct journal_rec {
    enum journal_kind kind;
    bool deleted; /* in append: delete (kind, key); other fields ignored */
    char key[320];
    char backend[64];
    char token[32];
    char instance[256];
    char itype[64];
    char placement[64];
    char uuid[28];
    char hostkey[128]; /* "SHA256:..." fingerprint or full key text */
    int64_t attempt;
    int64_t count;
    int64_t at_us;
};

struct journal_port {
    /* Every live record, in order of (kind, key); then end. */
    struct op *(*replay)(struct journal_port *j,
                         void (*on_rec)(void *arg,
                                        const struct journal_rec *rec),
                         void (*end)(void *arg, const struct op_result *r),
                         void *arg);
    /* OP_DONE = durable. Anything else: the journal is broken (disk full,
     * damage); the caller must start no new effect until an append succeeds. */
    struct op *(*append)(struct journal_port *j,
                         const struct journal_rec *recs, size_t n,
                         void (*cb)(void *arg, const struct op_result *r),
                         void *arg);
    void *impl;
};

#endif
