/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clock and entropy for a real dispatcher. The simulator has its own.
 *
 * This is the only file of core/io that knows core/port: the two ports are so
 * thin over the loop that a folder of their own would hold nothing else. A
 * clock_timer is a loop_timer under another name. Called by the program's
 * composition root; the ports are used by core/dispatch on the loop thread.
 */

#include "core/io/realports.h"

#include "core/base/clock.h"
#include "core/base/secret.h"
#include "core/io/loop.h"
#include "core/port/clock.h"
#include "core/port/entropy.h"

static int64_t now_mono(struct clock_port *c)
{
    (void) c;
    return clock_mono_us();
}

static int64_t now_wall(struct clock_port *c)
{
    (void) c;
    return clock_wall_us();
}

static struct clock_timer *timer_arm(struct clock_port *c, int64_t delay_us,
                                     void (*cb)(void *arg), void *arg)
{
    return (struct clock_timer *) loop_timer_arm(c->impl, delay_us, cb, arg);
}

static void timer_cancel(struct clock_port *c, struct clock_timer *t)
{
    (void) c;
    loop_timer_cancel((struct loop_timer *) t);
}

void realports_clock(struct clock_port *c, struct loop *l)
{
    *c = (struct clock_port) {
        .now_mono = now_mono, .now_wall = now_wall,
        .timer_arm = timer_arm, .timer_cancel = timer_cancel, .impl = l,
    };
}

static void bytes(struct entropy_port *e, void *out, size_t n)
{
    (void) e;
    secret_random(out, n);
}

void realports_entropy(struct entropy_port *e)
{
    *e = (struct entropy_port) {.bytes = bytes};
}
