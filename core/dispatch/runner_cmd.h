/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_RUNNER_CMD_H
#define CORE_DISPATCH_RUNNER_CMD_H

/*
 * The exact commands that run on instances, and what they get on stdin.
 *
 * Commands that need it are preceded by `sudo ` unless the login user is
 * root. The path of the runner is ours and safe; every argument is quoted.
 * No secret is ever part of a command: it would show in a process list.
 */

#include <stdint.h>

struct buf;
struct dispatch_cfg;
struct itype;

/* A command never exceeds this. */
enum { RUNNER_CMD_MAX = 16 * 1024, RUNNER_STDIN_MAX = 2048 };

/* Where the runner is on an instance: what was deployed, or what the image
 * has. */
void runner_cmd_path(const struct dispatch_cfg *cfg, struct buf *out);

/* <runner> --detach --stdin-config [--runtime-engine=...] args... uuid */
void runner_cmd_start(const struct dispatch_cfg *cfg, const char *user,
                      const char *uuid, struct buf *out);
/* Its stdin: one JSON object {Env, CDC}. Env as the peer sends it, with the
 * attempt's token; CDC is {APIURL, Attempt, CABundle}. At most
 * RUNNER_STDIN_MAX bytes, the CA bundle apart: -1 when it would be more. */
int runner_cmd_stdin(const struct dispatch_cfg *cfg, const struct itype *it,
                     const char *token, int64_t attempt, struct buf *out);

void runner_cmd_list(const struct dispatch_cfg *cfg, const char *user,
                     struct buf *out);
void runner_cmd_watch(const struct dispatch_cfg *cfg, const char *user,
                      struct buf *out);
void runner_cmd_kill(const struct dispatch_cfg *cfg, const char *user,
                     int signum, const char *uuid, struct buf *out);

/* The configured boot probe, or `true`. Never sudo. */
void runner_cmd_boot_probe(const struct dispatch_cfg *cfg, struct buf *out);

/* Print the checksum of the deployed runner; runner_cmd_deployed says whether
 * this output means that it is there and whole. */
void runner_cmd_check(const struct dispatch_cfg *cfg, struct buf *out);
int runner_cmd_deployed(const struct dispatch_cfg *cfg, const char *out_text);
/* Put stdin there: into a file of its own (nonce), checked, made executable,
 * renamed. A transfer that was cut off leaves nothing under the name. */
void runner_cmd_deploy(const struct dispatch_cfg *cfg, const char *user,
                       const char *nonce, struct buf *out);

/* Print the instance secret; fixed text, no stdin: safe before trust. */
void runner_cmd_identity(const char *user, struct buf *out);
/* What a new instance runs at first boot: leaves the secret, then does what
 * the configuration says. */
void runner_cmd_init(const struct dispatch_cfg *cfg, const char *secret,
                     struct buf *out);

#endif
