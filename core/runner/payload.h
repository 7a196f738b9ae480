/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_PAYLOAD_H
#define CORE_RUNNER_PAYLOAD_H

/*
 * The payload as a tree of processes.
 *
 * Its first process is ours ("init"): pid 1 of the payload's namespaces, or,
 * in plain mode, a child subreaper. It puts the root together, waits for leave
 * to go, starts the command as an unprivileged child, reaps, and ends with it.
 * It holds the container's lock file, so that the lock is free only when the
 * tree is dead, and it ends the tree when the supervisor dies.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "core/runner/pump.h"

struct err;
struct job;
struct node;
struct stage;

struct payload_spec {
    const struct node *node;
    const struct job *job;
    const struct stage *stage;
    const char *image;      /* folder of the root; unused in plain mode */
    const char *cwd;
    char *const *env;       /* the whole environment, NULL-terminated */
    int group_fd;           /* v2 group that the command is started in; -1 */
    const int *group_fds;   /* else files through which it moves */
    size_t n_group_fds;
    bool network;           /* the machine's network instead of none */
    int lock_fd;
    int out_fd[2];          /* for payload_spawn: ends of the pipes that the
                             * command writes to */
    struct pump out[2];     /* and what init does with the other ends */
    /* Called in the child first: let go of what it must not have. */
    void (*forget)(void *arg);
    void *arg;
};

enum payload_event {
    PAYLOAD_NONE,
    PAYLOAD_READY,     /* the root stands; nothing of the payload has run */
    PAYLOAD_FAILED,    /* it could not be made; text and error class say why */
    PAYLOAD_NOT_RUN,   /* the command cannot be executed: code 126 or 127 */
    PAYLOAD_EXITED,    /* wait status of the command; the rest is dying */
};

enum { PAYLOAD_TEXT_SIZE = 512 };

struct payload_msg {
    int32_t event; /* enum payload_event */
    int32_t value; /* error class, exit code or wait status */
    char text[PAYLOAD_TEXT_SIZE];
};

struct payload {
    pid_t pid;  /* of init, as seen here; 0 = none */
    struct pump out[2]; /* stdout, stderr; read ends kept for the end */
    int pidfd;
    int ctl_fd; /* readable when there is a message */
    bool plain;
    bool dead;  /* reaped */
    struct rusage usage; /* of the dead tree */
};

/* Fork init. Then wait for PAYLOAD_READY. Fills the last members of spec. */
int payload_spawn(struct payload_spec *spec, struct payload *ret,
                  struct err *err);

/* The next message, waiting up to timeout_ms (0 = do not wait). NONE: there is
 * none, or init has died. */
enum payload_event payload_read(struct payload *p, int timeout_ms,
                                struct payload_msg *ret);

void payload_go(struct payload *p);   /* start the command */
void payload_term(struct payload *p); /* SIGTERM to every process of it */
void payload_kill(struct payload *p); /* SIGKILL to all, no way back; may be
                                       * called again, and without a payload */

/* Has the tree ended? Then it is reaped, `usage` filled. */
bool payload_reap(struct payload *p, int timeout_ms);

/* Kill what is left, wait, close. uuid: the container's. -1/ERR_TIMEOUT:
 * something does not die; it holds the lock. */
int payload_finish(struct payload *p, const char *uuid, struct err *err);

/* For init and its children: send a message. */
void payload_tell(int ctl_fd, enum payload_event event, int value,
                  const char *text);

#endif
