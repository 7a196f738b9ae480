/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_STARTS_H
#define CORE_DISPATCH_STARTS_H

/* Starting a locked container on an instance. */

#include <stdbool.h>

struct qent;
struct run;
struct worker;

/* Assign q to w and go as far as possible. False: it cannot begin now. */
bool start_begin(struct qent *q, struct worker *w);
/* Something that r may wait for has happened (its attempt, its record, a free
 * channel, a session). */
void start_go(struct run *r);
/* Those of w that wait for a channel or a session. */
void start_next(struct worker *w);

#endif
