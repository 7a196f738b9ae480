/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_STORE_JOURNAL_H
#define CORE_STORE_JOURNAL_H

/*
 * The journal port (core/port/journal.h) on SQLite, in the state directory:
 * WAL, synchronous FULL, one writer thread with group commit. An append's
 * callback fires after its commit is durable.
 */

struct err;
struct journal;
struct journal_port;
struct loop;

/*
 * Open or create the file `path`. Refused with one line: a file that is
 * damaged (ERR_INTERNAL), of a newer schema than this program knows, or not
 * ours (ERR_CONFIG).
 */
struct journal *journal_open(struct loop *loop, const char *path,
                             struct err *err);
struct journal_port *journal_port(struct journal *j);
/* Appends that were asked for are written first; their callbacks do not fire
 * any more. NULL is fine. */
void journal_close(struct journal *j);

#endif
