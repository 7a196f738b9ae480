/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_IO_PROC_H
#define CORE_IO_PROC_H

/*
 * Child processes on the loop: run a program with given input, collect what
 * it prints, tell how it ended. No shell is involved, nothing but the three
 * pipes is inherited, and the child leads a session of its own, so that its
 * descendants can be killed with it. Loop thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

struct loop;
struct proc;

struct proc_req {
    const char *const *argv; /* argv[0] is looked up in PATH unless it has a
                              * slash; ends with NULL */
    const char *const *env;  /* NULL = ours; ends with NULL */
    const char *cwd;         /* NULL = ours */
    const void *input;       /* bytes for standard input, then end of file */
    size_t input_len;
    size_t max_output;       /* kept of each stream; 0 = 1 MiB. The rest is
                              * read and thrown away, so that nobody blocks */
    int64_t deadline_ms;     /* then it is killed; 0 = 60 s */
};

/* Borrowed during the callback. */
struct proc_result {
    /* ERR_NONE: it ended by itself, in whatever way. TIMEOUT, CANCELLED: it
     * was killed. Else it could not be started (NOT_FOUND, ...). */
    struct err err;
    int exit_code; /* -1 unless it exited */
    int signal;    /* 0 unless a signal ended it */
    const char *out, *errout; /* NUL-terminated; never NULL */
    size_t out_len, errout_len;
    bool out_cut, errout_cut; /* something was thrown away */
};

/* Everything in req is copied. cb fires exactly once, never inside: when the
 * child has ended and its output is complete, or one second after its end
 * when a descendant still holds its streams. */
struct proc *proc_start(struct loop *l, const struct proc_req *req,
                        void (*cb)(void *arg, const struct proc_result *r),
                        void *arg);
/* SIGKILL to the child and its session; cb follows. Valid until cb. */
void proc_kill(struct proc *p);
int proc_pid(const struct proc *p); /* 0 when it could not be started */

#endif
