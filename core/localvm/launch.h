/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_LAUNCH_H
#define CORE_LOCALVM_LAUNCH_H

/*
 * Starting a VM whose intent is written, and ending one.
 */

#include "core/localvm/mode.h"
#include "core/localvm/vm.h"

struct err;

/* Check what the host must have for this spec: the image, the shared folders,
 * sshd. ERR_CONFIG names what is missing. */
int launch_check(const struct wire_spec *spec, const struct mode *mode,
                 struct err *err);

/* Start it; holds the VM's lock. When this returns 0 the VM lives on its own
 * and vm->run is saved. On failure nothing of it runs. */
int launch_start(struct vm *vm, const struct mode *mode, struct err *err);

/* Kill all processes, remove groups and whatever mounts are left; the files
 * stay. Fine for a VM that never started. Holds the VM's lock. */
int launch_end(const struct vm *vm, struct err *err);

#endif
