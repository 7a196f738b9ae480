/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_COMMAND_H
#define CORE_LOCALVM_COMMAND_H

/*
 * The commands: one JSON value in, one out. On failure nothing is written to
 * out. Their meaning is in wire.h.
 */

struct buf;
struct err;
struct jsn;
struct state;

typedef int command_fn(const struct state *s, const struct jsn *in,
                       struct buf *out, struct err *err);

command_fn command_probe, command_create, command_list, command_tag,
    command_destroy;

#endif
