/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_CLOCK_H
#define CORE_BASE_CLOCK_H

/*
 * The system's clocks, for programs and adapters. core/dispatch never calls
 * these: its time comes from the clock port.
 */

#include <stdint.h>

int64_t clock_mono_us(void); /* CLOCK_MONOTONIC, microseconds */
int64_t clock_wall_us(void); /* microseconds since the epoch, UTC */

#endif
