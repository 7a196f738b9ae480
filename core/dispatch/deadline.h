/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_DEADLINE_H
#define CORE_DISPATCH_DEADLINE_H

/*
 * Many deadlines over one timer of the clock port.
 *
 * A deadline is embedded in its owner and zero-initialised. It fires once, on
 * the loop, in order of time, then of arming; before fn begins it is free to
 * be armed again. Its owner stops it before going away.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock_port;
struct deadlines;

struct deadline {
    int64_t at_us; /* monotonic */
    uint64_t seq;
    size_t slot;   /* place in the heap + 1; 0 = not armed */
    void (*fn)(void *arg);
    void *arg;
};

/* after(arg) is called when a turn of deadlines is over, and at
 * deadlines_soon(): the place for the one pass per turn. */
struct deadlines *deadlines_create(struct clock_port *clock,
                                   void (*after)(void *arg), void *arg);
void deadlines_destroy(struct deadlines *ds); /* NULL is fine */

/*
 * The dispatcher's own time: monotonic, but it stands still while the process
 * does. When the timer is late (the process was stopped, or its machine
 * suspended), the delay is left out: nobody could be heard meanwhile, so it is
 * no silence of theirs. It never goes back.
 */
int64_t deadlines_now(struct deadlines *ds);

/* Arm, or move, d to at_us. */
void deadline_set(struct deadlines *ds, struct deadline *d, int64_t at_us,
                  void (*fn)(void *arg), void *arg);
void deadline_stop(struct deadlines *ds, struct deadline *d);
static inline bool deadline_armed(const struct deadline *d)
{
    return d->slot != 0;
}

/* Call `after` in the next turn. */
void deadlines_soon(struct deadlines *ds);

#endif
