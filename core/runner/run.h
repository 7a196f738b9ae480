/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_RUN_H
#define CORE_RUNNER_RUN_H

/*
 * One run of one container, from the record to the final word.
 *
 *   run.c        the sequence up to the start
 *   supervise.c  while the payload lives
 *   finish.c     after its death
 *
 * The record below is shared by the three; nobody else sees it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/runner/job.h"
#include "core/runner/limits.h"
#include "core/runner/payload.h"
#include "core/runner/report.h"
#include "core/runner/stage.h"

struct api;
struct cli;
struct settings;
struct node;

enum {
    RUN_PATIENCE_MS = 10 * 60 * 1000, /* for the first and the last word */
    RUN_GRACE_MS = 10 * 1000,         /* between TERM and KILL */
};

enum run_stop {
    RUN_NOT_STOPPED,
    RUN_SIGNAL,       /* TERM, INT or QUIT to the supervisor: cancelled */
    RUN_MAX_RUN_TIME,
};

struct run {
    const struct cli *cli;
    const struct node *node;
    struct settings *settings;
    int lock_fd;

    struct api *api;
    int sigfd;   /* TERM, INT, QUIT */
    int timerfd; /* the next deadline of the payload */
    int ep;      /* epoll: readable = something to do at once */
    int64_t begun_us; /* monotonic */

    struct job job;
    struct stage stage;
    struct limits limits;
    struct payload payload;
    char **env;
    char *plain_cwd; /* plain mode: where the working folder really is */
    struct report report;

    /* Why no word may be written any more: the attempt is not ours. */
    bool revoked;
    /* The server has acknowledged Running. */
    bool running;
    bool api_down; /* and the log says so */
    enum run_stop stop;
    bool killed;  /* we have sent SIGKILL */
    bool exited;  /* `status` is the command's */
    int status;
    bool not_run; /* the command could not be executed: code in status */
};

/* The whole run; removes the lock file at its end, unless something of the
 * payload still lives. Returns the program's exit code: 0 when supervision
 * ended as it should, whatever became of the container. */
int run_container(const struct cli *cli, const struct node *node,
                  struct settings *settings, int lock_fd);

/* --- between the three files ---------------------------------------------- */

/* Go, and stay until the command has ended or was killed. */
void supervise(struct run *r);

/* Collect and send everything, write the final state. 0 = acknowledged. */
int finish_run(struct run *r);

#endif
