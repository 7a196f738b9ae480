/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_GATE_H
#define CORE_DISPATCH_GATE_H

/*
 * The gate in front of the API server: how many requests may be in flight,
 * and which goes first.
 */

#include <stdbool.h>
#include <stdint.h>

struct dispatch;
struct gate;
struct op_result;

/* Most urgent first. */
enum gate_rank {
    GATE_END,   /* what ends or releases something */
    GATE_START, /* what a start waits for */
    GATE_READ,
    GATE_LOCK,  /* what merely prepares */
    GATE_RANKS
};

/* A request that waits or is in flight; embedded in its owner, one at a
 * time. */
struct gate_item {
    struct gate_item *prev, *next;
    void (*go)(void *arg);
    void *arg;
    enum gate_rank rank;
    bool waits;
};

struct gate *gate_create(struct dispatch *d);
void gate_destroy(struct gate *g); /* NULL is fine */

/* Call go(arg) as soon as the request may be sent: now, or later. */
void gate_enter(struct gate *g, struct gate_item *it, enum gate_rank rank,
                void (*go)(void *arg), void *arg);
/* It is not wanted any more; false: it is in flight already. */
bool gate_withdraw(struct gate *g, struct gate_item *it);
/* Its callback has fired. */
void gate_leave(struct gate *g, const struct op_result *r);

/* How many more requests may begin at once. */
int64_t gate_room(const struct gate *g);
/* Containers that may have a process, by what the API server bears; 0 = any.
 * `processes` is how many have one now. */
int64_t gate_processes(struct gate *g, int64_t processes);
/* Wall time of the last refusal for overload, 0 = never. */
int64_t gate_last_503_us(const struct gate *g);

#endif
