/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_GLOB_H
#define CORE_RUNNER_GLOB_H

#include <stdbool.h>

/*
 * Does the relative path match the pattern (Arvados API, output_glob)?
 * `*`, `?`, `[a-z]`, `[^a]`, `[!a]` and `\x` within one part of the path; a
 * part `**` stands for any number of parts, but for at least one when it is
 * the last. Byte by byte; a leading dot is nothing special. Pure, and linear
 * in the product of both lengths whatever the pattern.
 */
bool glob_match(const char *pattern, const char *path);

#endif
