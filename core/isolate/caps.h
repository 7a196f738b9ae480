/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ISOLATE_CAPS_H
#define CORE_ISOLATE_CAPS_H

/*
 * Giving up privileges (capabilities(7)). All of it is for ever: nothing here
 * can be undone by the process or what it starts. For single-threaded
 * processes; raw system calls, no library behind it.
 */

#include <stddef.h>
#include <sys/types.h>

struct err;

/* Drop the capabilities (CAP_... numbers) from the bounding, ambient,
 * inheritable, permitted and effective sets. Numbers that this kernel does
 * not know are fine. */
int caps_drop(const int *caps, size_t n, struct err *err);

/* Become uid:gid without supplementary groups and without any capability,
 * with no_new_privs set. As a caller that already is that user and may not
 * change groups: no_new_privs and capabilities only. */
int caps_become(uid_t uid, gid_t gid, struct err *err);

int caps_no_new_privs(struct err *err);

#endif
