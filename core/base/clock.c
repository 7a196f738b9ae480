/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's clocks in microseconds.
 *
 * clock_gettime cannot fail for these two clocks on Linux. Any thread.
 * Programs hand these to the clock port; core/dispatch must never call them,
 * or a simulated run would depend on the hour of the day.
 */
#include "core/base/clock.h"

#include <time.h>

static int64_t now_us(clockid_t id)
{
    struct timespec ts = {0};

    clock_gettime(id, &ts);
    return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
    return now_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_us(void)
{
    return now_us(CLOCK_REALTIME);
}
