/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_REALPORTS_H
#define CORE_IO_REALPORTS_H

/*
 * The clock and entropy ports of a real program: the loop's timers, the
 * system's clocks and the kernel's generator.
 */

struct clock_port;
struct entropy_port;
struct loop;

/* Fill *c; valid as long as the loop. */
void realports_clock(struct clock_port *c, struct loop *l);
void realports_entropy(struct entropy_port *e);

#endif
