/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_PROBE_H
#define CORE_DISPATCH_PROBE_H

/*
 * What an instance says about itself: parsers of `--list` and `--watch`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum { PROBE_UUID_SIZE = 28, PROBE_RUNS_MAX = 4096 };

struct probe_run {
    char uuid[PROBE_UUID_SIZE];
    bool stale; /* supervisor gone, its lock still held */
};

struct probe_list {
    struct probe_run *v;
    size_t n;
    bool broken; /* the machine calls itself unusable */
};

/* The output of `<runner> --list`. Lines of other clusters (the first five
 * characters differ), empty lines and anything that is no such line are left
 * out. ERR_TOO_LARGE beyond PROBE_RUNS_MAX. Free with probe_list_fini. */
int probe_parse_list(const char *out, size_t n, const char *cluster_id,
                     struct probe_list *ret, struct err *err);
void probe_list_fini(struct probe_list *l);

/* Events of `<runner> --watch`, one JSON object a line (see the runner's
 * protocol page). */
#define PROBE_EVENTS(X)                                                       \
    X(HELLO,  "hello")  /* boot */                                            \
    X(RUN,    "run")    /* uuid, attempt, pid: lives already */               \
    X(SYNC,   "sync")   /* every live one has been named */                   \
    X(START,  "start")  /* uuid, attempt, pid */                              \
    X(EXIT,   "exit")   /* uuid, attempt: its whole tree is dead */           \
    X(STALE,  "stale")  /* uuid, attempt: supervisor gone, tree alive */      \
    X(BROKEN, "broken")                                                       \
    X(BEAT,   "beat")

enum probe_event_kind {
#define X(name, label) PROBE_##name,
    PROBE_EVENTS(X)
#undef X
    PROBE_OTHER /* unknown to us, or of another cluster: a sign of life only */
};

struct probe_event {
    enum probe_event_kind kind;
    char uuid[PROBE_UUID_SIZE];
    int64_t attempt; /* 0 = not told */
    char boot[128];
};

/* -1/ERR_INVALID: no such line. */
int probe_parse_event(const char *line, size_t n, const char *cluster_id,
                      struct probe_event *ret, struct err *err);

#endif
