/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_JR_H
#define CORE_DISPATCH_JR_H

/*
 * The dispatcher's use of the journal: records are collected during a turn,
 * appended as one batch at its end, and everybody who waits for one is called
 * when the batch is durable.
 */

#include <stdbool.h>

#include "core/port/journal.h"

struct dispatch;
struct jr;

struct jr *jr_create(struct dispatch *d);
void jr_destroy(struct jr *jr); /* NULL is fine */

/* Read everything; on_rec for each, then end. Once, at the start. */
void jr_replay(struct jr *jr,
               void (*on_rec)(void *arg, const struct journal_rec *rec),
               void (*end)(void *arg, const struct op_result *r), void *arg);

/* A wait, embedded in its owner; one record at a time. */
struct jr_wait {
    struct jr_wait *next;
    void (*done)(void *arg);
    void *arg;
    bool pending;
};

/* Write rec. w may be NULL; else done(arg) fires when rec is durable, however
 * long that takes (a broken journal is tried again and again). */
void jr_put(struct jr *jr, const struct journal_rec *rec, struct jr_wait *w,
            void (*done)(void *arg), void *arg);
void jr_delete(struct jr *jr, enum journal_kind kind, const char *key);
/* Its owner goes away. */
void jr_forget(struct jr *jr, struct jr_wait *w);

/* Append what was collected; called at the end of each turn. */
void jr_flush(struct jr *jr);
/* The last append succeeded. */
bool jr_ok(const struct jr *jr);

#endif
