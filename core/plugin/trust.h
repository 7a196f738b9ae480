/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_TRUST_H
#define CORE_PLUGIN_TRUST_H

/*
 * Who could have written a file that is about to be run with our rights:
 * a driver, or a program that a driver starts.
 */

#include <stdbool.h>

struct err;

/*
 * 0 when the file at an absolute path and every folder above it, as spelled
 * and as resolved, belong to root or to us and can be written by nobody else.
 * Then nobody else can exchange it between this check and its use.
 * -1/ERR_CONFIG: no; the text names the file or folder. ERR_NOT_FOUND.
 * Any thread.
 */
int trust_check(const char *path, struct err *err);

/* Tests only: from now on trust_check accepts everything (a build tree may
 * lie anywhere). Before there are threads. */
void trust_set_build_tree(bool on);

#endif
