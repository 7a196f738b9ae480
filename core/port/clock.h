/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PORT_CLOCK_H
#define CORE_PORT_CLOCK_H

/*
 * The clock port: the only source of time for core/dispatch. Synchronous.
 */

#include <stdint.h>

struct clock_timer;

struct clock_port {
    /* Microseconds, never going back; origin unspecified. */
    int64_t (*now_mono)(struct clock_port *c);
    /* Microseconds since the epoch; may jump. For records and people only. */
    int64_t (*now_wall)(struct clock_port *c);
    /* Call cb(arg) once, delay_us (>= 0) from now, on the loop thread, never
     * inside timer_arm. The timer is the port's and is gone when cb begins or
     * timer_cancel returns. */
    struct clock_timer *(*timer_arm)(struct clock_port *c, int64_t delay_us,
                                     void (*cb)(void *arg), void *arg);
    void (*timer_cancel)(struct clock_port *c, struct clock_timer *t);
    void *impl;
};

#endif
