/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_SPEC_H
#define CORE_APISERVER_SPEC_H

/*
 * What a container request asks for: defaults, validation, and the container
 * that follows from it. Pure. Source: Arvados API, "container_requests",
 * "Mount types", "Runtime constraints", "Scheduling parameters"; what this
 * server cannot run (Keep mounts, image collections) is refused, not ignored.
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/store/store.h"

struct buf;
struct err;
struct jsn;

/* Every column of REQUESTS that a new request has and `cr` does not set. */
void spec_defaults(struct store_row *cr, int64_t max_retries);

/*
 * Check a request's definition and bring constraints and scheduling
 * parameters to their full form. `commit`: what a Committed request needs must
 * be there. ERR_INVALID begins with the attribute's name.
 */
int spec_check(struct store_row *cr, bool commit, struct err *err);

/* The columns of a new container that follow from a checked request. Not
 * among them: uuid, times, owner, priority. */
void spec_container(const struct store_row *cr, struct store_row *ret);

/* A new container with the definition of an old one, for a retry; not among
 * it: uuid, times, owner, priority, scheduling_parameters. */
void spec_copy(const struct store_row *old, struct store_row *ret);

/* spec_constraints.c: the full form of runtime_constraints; with_cache false
 * leaves the cache sizes out, for comparing. scheduling: likewise. */
int spec_constraints(struct store_row *row, unsigned col, bool commit,
                     struct err *err);
void spec_constraints_key(const char *full, struct buf *out);
int spec_scheduling(struct store_row *row, unsigned col, struct err *err);
void spec_scheduling_supervisor(struct store_row *row, unsigned col);
/* Merge another's scheduling parameters (both in full form) for a retry. */
void spec_scheduling_merge(struct store_row *row, unsigned col,
                           const char *other);

/* spec_mounts.c: `mounts` or, if secret, `secret_mounts`. */
int spec_mounts(const struct jsn *mounts, const char *output_path,
                bool secret, struct err *err);

#endif
