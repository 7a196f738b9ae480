/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_SIM_SCRIPT_H
#define TESTS_UNIT_SIM_SCRIPT_H

/*
 * A script in the place of the dispatcher: what the unit tests of the
 * simulated world do with its ports. Calls with `_now` in their name let the
 * world run until the answer is there.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/sim/api.h"
#include "core/sim/cloud.h"
#include "core/sim/net.h"
#include "core/sim/vm.h"
#include "core/sim/world.h"

/* The last answer. */
struct journal_rec;

struct seen {
    struct sim *w;
    int calls;
    uint64_t turn;
    struct op_result r;
    struct api_ctr_result ctr;
    size_t n;        /* items of a list */
    char text[4096]; /* output, stream events, last id, stdin to send */
    char epoch[24];  /* of the feed */
    int64_t cursor;
    bool flag; /* resync, complete */
    struct exec_session *session;
    int broken;
};

/* cmocka fixtures: a world with one cloud, in *state. */
int script_set_up(void **state);
int script_tear_down(void **state);

void run_for(struct sim *w, int64_t us);
struct sim_ctr *submit(struct sim *w, int64_t run_us);

void on_plain(void *arg, const struct op_result *r);
void on_ctr(void *arg, const struct api_ctr_result *r);
void on_page(void *arg, const struct api_list_result *r);
void on_feed(void *arg, const struct api_feed_result *r);
void on_attempt(void *arg, const struct api_attempt_result *r);
void on_created(void *arg, const struct cloud_create_result *r);
void on_exec(void *arg, const struct exec_result *r);
void on_line(void *arg, const char *line, size_t n); /* first 3 letters */

void lock_now(struct sim *w, struct sim_ctr *c, struct seen *s);
void unlock_now(struct sim *w, struct sim_ctr *c, struct seen *s);
void attempt_now(struct sim *w, struct sim_ctr *c, struct seen *s);
void revoke_now(struct sim *w, struct sim_ctr *c, struct seen *s);
void cancel_now(struct sim *w, struct sim_ctr *c, const char *error,
                struct seen *s);
void put_now(struct sim *w, const struct journal_rec *rec);

/* Intent, then the create request. */
void create_now(struct sim *w, const char *token, struct seen *s);
/* The same, and the machine is up. */
struct sim_vm *make_vm(struct sim *w, const char *token);
void destroy_now(struct sim *w, const struct sim_vm *vm, struct seen *s);
/* A list by set id; s->n instances, s->flag when complete. */
void list_now(struct sim *w, struct seen *s);

void log_in(struct sim *w, const struct sim_vm *vm, struct seen *s);
void run_command(struct sim *w, struct seen *s, const char *command,
                 const char *input);
/* Lock (if Queued), attempt, intent, start command. */
void start(struct sim *w, struct sim_ctr *c, const struct sim_vm *vm,
           struct seen *s);

#endif
