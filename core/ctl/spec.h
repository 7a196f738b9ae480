/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_SPEC_H
#define CORE_CTL_SPEC_H

/* From the options of `submit` to the body of a create call. */

struct buf;
struct ctl;

/* {"container_request": {...}} into out; a CTL_ exit code, 0 = well. */
int spec_write(const struct ctl *ctl, struct buf *out);

#endif
