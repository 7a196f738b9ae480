/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCHER_VIEW_H
#define CORE_DISPATCHER_VIEW_H

/* What the management API shows, as JSON: one writer per kind of object. */

struct buf;
struct dispatch;

/* {"items":[...]}; -1 when the buffer is full. */
int view_instances(struct dispatch *d, struct buf *out);
int view_containers(struct dispatch *d, struct buf *out);
/* One entry. 0, or -1 when the container is not known here. */
int view_container(struct dispatch *d, const char *uuid, struct buf *out);
/* Why it waits, where it is, what it needs, which types fit. */
int view_explain(struct dispatch *d, const char *uuid, struct buf *out);
/* {"health":"OK"} or {"health":"ERROR","error":"..."}, with ages. */
void view_health(struct dispatch *d, const char *problem, struct buf *out);

#endif
