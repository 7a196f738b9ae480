/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_WORKER_H
#define CORE_DISPATCH_WORKER_H

/*
 * An instance in our books.
 */

#include "core/base/vec.h"
#include "core/dispatch/core.h"
#include "core/dispatch/holdoff.h"
#include "core/dispatch/worker_fsm.h"
#include "core/model/need.h"
#include "core/port/exec.h"

struct backend;
struct itype;
struct probe_event;
struct run;

enum worker_link {
    LINK_DOWN,       /* no session */
    LINK_CONNECTING,
    LINK_TRUSTING,   /* connected, the host key is not approved yet */
    LINK_UP
};

struct worker_tag {
    char *key, *value;
};

struct worker {
    struct dispatch *d;
    struct backend *b;
    uint64_t serial;
    char *key;           /* "<backend>/<id>" */
    char *id, *name, *address, *user;
    char *token;         /* create token, "" = unknown */
    char *secret;        /* instance secret, "" = unknown */
    char *pinned;        /* host key, "" = none yet */
    char *listed_key;    /* host key that the cloud tells, "" = none */
    char *placement;
    int32_t port, member;
    const struct itype *type; /* NULL: not configured any more */
    char *type_name;
    double price;
    VEC(struct worker_tag) tags; /* as the cloud last told */

    enum worker_state state;
    enum dispatch_behavior behavior;
    char *why_down;      /* why it was drained or ended */
    int64_t created_us;  /* monotonic: first sight, or first list that had it */
    int64_t created_wall_us;
    int64_t connected_us; /* when the first session was up; 0 */
    bool boot_counted;   /* the outcome of its boot is in the metrics */
    int64_t ready_us;    /* when it came into service; 0 */
    int64_t idle_us;     /* since when it is empty */
    int64_t busy_wall_us; /* when it last had something; 0 = never */
    char last_uuid[28];

    /* the cloud's word */
    int64_t seen_us;     /* start of the last list that had it */
    int64_t absent;      /* lists in a row that missed it */
    int64_t absent_us;   /* when the last miss was counted */
    bool listed;         /* some list, or its create, told of it */
    bool instance_rec;   /* INSTANCE record written */
    bool destroy_in_flight, destroyed; /* asked; accepted */
    struct holdoff destroy_hold;
    struct deadline destroy_timer;
    int64_t destroy_us;  /* when destroy was last accepted */
    bool tags_in_flight;
    enum dispatch_behavior tags_behavior; /* as last written */
    struct holdoff tags_hold;
    struct deadline tags_timer;

    /* session */
    enum worker_link link;
    struct exec_session *session;
    char *offered;       /* host key of this session */
    unsigned session_no; /* sessions so far */
    unsigned asked_no;   /* the session that the question about its key that
                          * is in flight belongs to; 0 = none is */
    bool no_verify;      /* the driver said that it cannot tell */
    bool connecting;     /* the connect operation is in flight */
    bool dead;           /* gone, kept only until `refs` is 0 */
    unsigned refs;       /* operations in flight whose arg is w */
    int channels;        /* commands in flight on the session */
    struct holdoff link_hold;
    struct deadline link_timer;
    int64_t link_lost_us; /* since when it is down; 0 = up */
    struct err link_err; /* the last failure */

    /* boot: three conditions for service */
    bool probed, deployed, synced;
    bool must_send;      /* the check found no whole runner there */
    bool boot_in_flight; /* a boot command is in flight */
    unsigned boot_step;
    struct holdoff boot_hold;
    struct deadline boot_timer;  /* next try */
    struct deadline boot_limit;  /* TimeoutBooting */
    char boot_id[128];           /* from hello */

    /* supervision */
    struct op *watch;    /* the stream, or NULL */
    int64_t watch_us;    /* when it began */
    bool watch_hello;    /* it has said hello */
    bool no_watch;       /* its runner has none: poll --list */
    bool watch_stopped;  /* cancelled: its end is still to come */
    unsigned watch_refused; /* streams that ended without a hello */
    int64_t event_us;    /* when something happened that is worth a look */
    struct holdoff watch_hold;
    struct deadline watch_timer;
    bool list_in_flight, list_wanted;
    int64_t list_us;     /* when the list in flight began */
    int64_t exit_us;     /* when the stream last told of an exit */
    int64_t looked_us;   /* start of the last look that told all */
    int64_t good_us;     /* last sign of life */
    int64_t warned_us;   /* when its silence was last warned of */
    struct deadline list_timer;
    struct deadline silence;
    struct deadline idle_timer;
    bool broken;

    /* runs and room */
    VEC(struct run *) runs;
    struct need free;
    unsigned start_failures;     /* in a row */
    struct holdoff start_hold;
};

struct worker *worker_create(struct backend *b, const char *id);
void worker_free(struct worker *w);
/* A cloud has told of it for the first time in this process: from now on it is
 * judged. Never before: one that could not even be looked for is not silent. */
void worker_listed(struct worker *w);
/* Feed the state machine; carries out what follows. why: for people. */
void worker_event(struct worker *w, enum worker_event ev, const char *why);
/* Recompute room and emptiness after its runs changed. */
void worker_runs_changed(struct worker *w);
/* Takes containers now / later. */
bool worker_ready(const struct worker *w);
bool worker_usable(const struct worker *w);
/* When one of the two will change by time alone; 0 = never. */
int64_t worker_changes_us(const struct worker *w);
/* Ended for want of a quota, idle time, drain: nothing on it? */
bool worker_empty(const struct worker *w);
void worker_set_behavior(struct worker *w, enum dispatch_behavior b,
                         const char *why);
void worker_log(struct worker *w, int level, const char *msg,
                const char *reason);
/* An operation whose arg is w begins, ends. Ends may free w: true then. */
void worker_ref(struct worker *w);
bool worker_unref(struct worker *w);
/* Everything in service or on its way: a sign of life. */
void worker_alive(struct worker *w);
const char *worker_user(const struct worker *w);
/* What went wrong on the way to it, kept as link_err: told at once when a
 * person must act (a refused login, a runner that cannot be deployed), else
 * for debugging; each text once. */
void worker_trouble(struct worker *w, const struct err *why);
/* Whom commands are written for: "root" where sudo is neither needed nor
 * there. */
const char *worker_command_user(const struct worker *w);

/* session.c */
void session_want(struct worker *w);  /* connect if that is due */
void session_close(struct worker *w, const char *why);
bool session_up(const struct worker *w);

/* boot.c */
void boot_go(struct worker *w);       /* next step towards service */
void boot_reset(struct worker *w);    /* the session is new */

/* watch.c */
void watch_go(struct worker *w);      /* open the stream, or poll */
void watch_stop(struct worker *w);
/* A look begun after now is wanted. */
void watch_look(struct worker *w);
void watch_rebooted(struct worker *w);

/* silence.c: mind its silence from now on. */
void silence_mind(struct worker *w);

/* pool.c, destroy.c, tags.c */
void pool_remove(struct worker *w);   /* GONE */
void pool_destroy_instance(struct worker *w);
void pool_fix_tags(struct worker *w);

#endif
