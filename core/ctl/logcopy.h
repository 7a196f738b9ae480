/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_LOGCOPY_H
#define CORE_CTL_LOGCOPY_H

/* Copying a container's log files to the terminal. */

#include <stdint.h>

struct ctl;
struct err;

/* From *offset to the present end of one log file, to a stream descriptor (1
 * or 2); *offset moves on. A file that is not there (yet) is no error. */
int logcopy_file(struct ctl *ctl, const char *request, const char *name,
                 int fd, int64_t *offset, struct err *err);

/* stdout.txt to standard output, stderr.txt to standard error. */
void logcopy_all(struct ctl *ctl, const char *request);

#endif
