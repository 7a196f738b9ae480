/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ISOLATE_MNT_FS_H
#define CORE_ISOLATE_MNT_FS_H

/*
 * What mnt.c and mnt_fs.c share; nobody else includes this.
 */

#include <stdint.h>

struct err;

/* enum mnt_flag to MOUNT_ATTR_*. */
uint64_t mnt_attrs(uint32_t flags);

/* Attach a detached mount at target, relative to dir_fd. */
int mnt_attach(int mount_fd, int dir_fd, const char *target, struct err *err);

/* A detached copy of what is at source, relative to dir_fd, with the flags
 * set; a descriptor or -1. */
int mnt_clone(int dir_fd, const char *source, uint32_t flags,
              struct err *err);

#endif
