/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_NODEINFO_H
#define CORE_RUNNER_NODEINFO_H

struct logs;

/* What machine this is, into node-info.txt: kernel, processors, memory, room
 * in the scratch folder. */
void nodeinfo_write(struct logs *l, const char *scratch_dir);

#endif
