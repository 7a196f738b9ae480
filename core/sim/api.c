/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server of the world: containers and their rules.
 *
 * Everything in this file happens at the moment of a commit; requests, delays
 * and lost messages are the business of api_port.c and vm.c. A container goes
 * Queued -> Locked -> Running -> final (ctr_states.h). What differs from
 * Arvados are the attempts: a token per start, revoked by the next or on
 * demand, compared at every write of a runner.
 *
 * A cancelled container whose request still wants it is replaced by a new
 * one, up to max_tries, unless the writer of the final state said noRetry. A
 * user's cancel is final as soon as nobody holds the container.
 */

#include "core/sim/api_impl.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/map.h"
#include "core/base/text.h"
#include "core/sim/check.h"

/* --- small parts ----------------------------------------------------- */

/* `wanted` and `open` are counted anew by difference. */
static bool ctr_wanted(const struct sim_ctr *c)
{
    return c->final_us == 0 && c->rec.priority > 0;
}

static void set_priority(struct sim_api *a, struct sim_ctr *c, int64_t priority)
{
    bool before = ctr_wanted(c);

    if (c->rec.priority == 0 || priority == 0)
        c->zero_us = sim_heard_us(a->w);
    if (c->rec.priority == 0)
        c->shown_gen = 0; /* it comes anew */
    c->rec.priority = priority;
    a->wanted += (size_t) ctr_wanted(c);
    a->wanted -= (size_t) before;
    if (a->wanted == 0)
        a->unwanted_since_us = sim_heard_us(a->w);
}

static struct sim_ctr *ctr_new(struct sim_api *a, const struct sim_job *job,
                               int tries)
{
    struct sim_ctr *c = MEM_NEW(struct sim_ctr);
    struct ctr *rec = &c->rec;

    c->job = *job;
    c->tries = tries;
    c->submitted_us = a->w->now_us;
    c->zero_us = -1;
    snprintf(rec->uuid, sizeof rec->uuid, "zzzzz-dz642-%015zu", a->ctrs.n + 1);
    rec->state = CTR_QUEUED;
    rec->created_us = a->w->now_us + a->w->wall_base_us;
    rec->vcpus = job->vcpus > 0 ? job->vcpus : 1;
    rec->ram = job->ram > 0 ? job->ram : INT64_C(1) << 30;
    rec->tmp_capacity = job->scratch;
    rec->mounts_known = true;
    rec->preemptible = job->preemptible;
    text_copy(rec->image, "host", sizeof rec->image);
    if (job->invalid)
        text_copy(rec->invalid, job->invalid, sizeof rec->invalid);
    VEC_PUSH(&a->ctrs, c);
    map_set(a->by_uuid, rec->uuid, c);
    a->open++;
    set_priority(a, c, job->priority > 0 ? job->priority : 500);
    c->zero_us = -1;
    sim_trace(a->w,
              "ctr %s queued, priority %" PRId64 ", %" PRId64 " VCPUs, try %d",
              rec->uuid, rec->priority, rec->vcpus, tries);
    sim_api_changed(a, c);
    return c;
}

/* A container has reached a final state. */
static void finalise(struct sim_api *a, struct sim_ctr *c)
{
    bool wanted = ctr_wanted(c);

    c->final_us = a->w->now_us + 1;
    c->rec.locked_by[0] = '\0';
    c->revoked = true;
    a->open--;
    if (wanted)
        a->wanted--;
    if (c->rec.state == CTR_CANCELLED && wanted && !c->no_retry &&
        c->tries < a->max_tries)
        c->retry = ctr_new(a, &c->job, c->tries + 1);
    if (a->wanted == 0)
        a->unwanted_since_us = sim_heard_us(a->w);
    sim_point(a->w, SIM_POINT_FINAL);
}

static void set_state(struct sim_api *a, struct sim_ctr *c, enum ctr_state to,
                      const char *by)
{
    enum ctr_state from = c->rec.state;

    sim_trace(a->w, "ctr %s %s -> %s by %s", c->rec.uuid, ctr_state_name(from),
              ctr_state_name(to), by);
    c->rec.state = to;
    if (to == CTR_QUEUED)
        c->rec.locked_by[0] = '\0';
    sim_api_changed(a, c);
    if (to == CTR_QUEUED && c->user_gone)
        set_state(a, c, CTR_CANCELLED, "user's cancel");
    else if (ctr_state_final(to) && c->final_us == 0)
        finalise(a, c);
}

static int refuse(struct err *err, enum err_class class, const char *what,
                  const struct sim_ctr *c)
{
    return err_set(err, class, "%s: container is %s, priority %" PRId64, what,
                   ctr_state_name(c->rec.state), c->rec.priority);
}

/* --- the dispatcher -------------------------------------------------- */

int sim_api_lock(struct sim_api *a, struct sim_ctr *c, struct err *err)
{
    if (c->rec.state != CTR_QUEUED || c->rec.priority <= 0)
        return refuse(err, ERR_CONFLICT, "lock", c);
    c->rec.lock_count++;
    c->locked_started = false;
    a->locks++;
    text_copy(c->rec.locked_by, a->token_uuid, sizeof c->rec.locked_by);
    set_state(a, c, CTR_LOCKED, "lock");
    sim_point(a->w, SIM_POINT_LOCK_DONE);
    return 0;
}

static int check_owner(const struct sim_api *a, const struct sim_ctr *c,
                       const char *what, struct err *err)
{
    if (strcmp(c->rec.locked_by, a->token_uuid) != 0)
        return refuse(err, ERR_AUTH, what, c);
    return 0;
}

int sim_api_unlock(struct sim_api *a, struct sim_ctr *c, struct err *err)
{
    if (c->rec.state != CTR_LOCKED)
        return refuse(err, ERR_CONFLICT, "unlock", c);
    if (check_owner(a, c, "unlock", err) != 0)
        return -1;
    check_release(a->w, c, "unlock");
    check_unlock_cost(a->w, c);
    a->unlocks++;
    if (c->rec.lock_count >= a->max_dispatch_attempts) {
        text_copy(c->error, "dispatch attempt limit exceeded", sizeof c->error);
        set_state(a, c, CTR_CANCELLED, "unlock (attempt limit)");
    } else {
        set_state(a, c, CTR_QUEUED, "unlock");
    }
    sim_point(a->w, SIM_POINT_UNLOCK_DONE);
    return 0;
}

int sim_api_attempt(struct sim_api *a, struct sim_ctr *c, struct err *err)
{
    if (c->rec.state != CTR_LOCKED)
        return refuse(err, ERR_CONFLICT, "attempt", c);
    if (check_owner(a, c, "attempt", err) != 0)
        return -1;
    c->rec.attempt++;
    c->revoked = false;
    snprintf(c->token, sizeof c->token, "v2/zzzzz-gj3su-%015u/a%" PRId64,
             ++a->next_token, c->rec.attempt);
    map_set(a->by_token, c->token, c);
    sim_trace(a->w, "ctr %s attempt %" PRId64, c->rec.uuid, c->rec.attempt);
    sim_api_changed(a, c);
    sim_point(a->w, SIM_POINT_ATTEMPT_DONE);
    return 0;
}

int sim_api_revoke(struct sim_api *a, struct sim_ctr *c, struct err *err)
{
    if (c->final_us == 0 && check_owner(a, c, "revoke", err) != 0)
        return -1;
    if (!c->revoked)
        sim_trace(a->w, "ctr %s attempt %" PRId64 " revoked", c->rec.uuid,
                  c->rec.attempt);
    c->revoked = true;
    sim_point(a->w, SIM_POINT_REVOKE_DONE);
    return 0;
}

int sim_api_update(struct sim_api *a, struct sim_ctr *c,
                   const struct api_update_req *req, struct err *err)
{
    bool final = c->final_us != 0;

    if (req->error || req->no_retry) {
        if (check_owner(a, c, "update", err) != 0)
            return final ? refuse(err, ERR_CONFLICT, "update", c) : -1;
        if (req->error)
            text_copy(c->error, req->error, sizeof c->error);
        c->no_retry = c->no_retry || req->no_retry;
        sim_trace(a->w, "ctr %s runtime_status.error: %s", c->rec.uuid,
                  c->error);
    }
    if (!req->set_cancelled)
        return 0;
    if (c->rec.state == CTR_COMPLETE ||
        !ctr_move_allowed(c->rec.state, CTR_CANCELLED))
        return refuse(err, ERR_CONFLICT, "update", c);
    check_release(a->w, c, "cancel");
    check_cancel_cause(a->w, c);
    a->cancels++;
    set_state(a, c, CTR_CANCELLED, "dispatcher");
    sim_point(a->w, SIM_POINT_CANCEL_DONE);
    return 0;
}

/* --- runners --------------------------------------------------------- */

struct sim_ctr *sim_api_token(const struct sim_api *a, const char *token,
                              int64_t *ret_attempt)
{
    const char *number = strrchr(token, '/');
    struct sim_ctr *c = map_get(a->by_token, token);

    if (c && text_parse_i64(number + 2, ret_attempt, NULL) != 0)
        return NULL;
    return c;
}

/* The container for which this token still counts, or NULL. */
static struct sim_ctr *token_valid(const struct sim_api *a, const char *token)
{
    struct sim_ctr *c = map_get(a->by_token, token);

    if (!c || c->revoked || strcmp(c->token, token) != 0)
        return NULL;
    return c;
}

enum sim_verdict sim_api_running(struct sim_api *a, const char *token)
{
    struct sim_ctr *c = token_valid(a, token);

    if (a->w->now_us < a->down_until_us)
        return SIM_UNREACHABLE;
    if (!c)
        return SIM_REFUSED;
    if (c->rec.state == CTR_RUNNING && strcmp(c->runner_token, token) == 0)
        return SIM_ACCEPTED; /* asked again after a lost reply */
    if (c->rec.state != CTR_LOCKED)
        return SIM_REFUSED;
    text_copy(c->runner_token, token, sizeof c->runner_token);
    set_state(a, c, CTR_RUNNING, "runner");
    return SIM_ACCEPTED;
}

enum sim_verdict sim_api_beat(struct sim_api *a, const char *token)
{
    if (a->w->now_us < a->down_until_us)
        return SIM_UNREACHABLE;
    return token_valid(a, token) ? SIM_ACCEPTED : SIM_REFUSED;
}

enum sim_verdict sim_api_final(struct sim_api *a, const char *token,
                               enum ctr_state state, int32_t exit_code)
{
    struct sim_ctr *c = token_valid(a, token);

    if (a->w->now_us < a->down_until_us)
        return SIM_UNREACHABLE;
    if (!c || !ctr_move_allowed(c->rec.state, state))
        return SIM_REFUSED;
    if (state == CTR_COMPLETE) {
        c->rec.has_exit_code = true;
        c->rec.exit_code = exit_code;
    }
    check_final(a->w, c, state);
    set_state(a, c, state, "runner");
    return SIM_ACCEPTED;
}

/* --- users ----------------------------------------------------------- */

struct sim_ctr *sim_api_submit(struct sim_api *a, const struct sim_job *job)
{
    return ctr_new(a, job, 1);
}

struct sim_ctr *sim_api_find(const struct sim_api *a, const char *uuid)
{
    return map_get(a->by_uuid, uuid);
}

struct sim_ctr *sim_api_last(struct sim_ctr *c)
{
    while (c->retry)
        c = c->retry;
    return c;
}

void sim_api_user_cancel(struct sim_api *a, struct sim_ctr *c)
{
    if (c->final_us != 0)
        return;
    sim_fault_note(a->w, SIM_FAULT_USER_CANCEL);
    sim_trace(a->w, "ctr %s cancelled by its user", c->rec.uuid);
    c->user_gone = true;
    set_priority(a, c, 0);
    if (c->rec.state == CTR_QUEUED)
        set_state(a, c, CTR_CANCELLED, "user");
    else
        sim_api_changed(a, c);
}

struct hold {
    struct sim_api *a;
    struct sim_ctr *c;
    int64_t priority;
};

static void hold_end(void *arg)
{
    struct hold *h = arg;

    h->c->hold_until_us = 0;
    if (h->c->final_us == 0 && !h->c->user_gone) {
        sim_trace(h->a->w, "ctr %s no longer on hold", h->c->rec.uuid);
        set_priority(h->a, h->c, h->priority);
        sim_api_changed(h->a, h->c);
    }
    free(h);
}

void sim_api_user_hold(struct sim_api *a, struct sim_ctr *c, int64_t for_us)
{
    struct hold *h;

    if (c->final_us != 0 || c->hold_until_us != 0 || c->rec.priority == 0)
        return;
    h = MEM_NEW(struct hold);
    h->a = a;
    h->c = c;
    h->priority = c->rec.priority;
    sim_fault_note(a->w, SIM_FAULT_USER_HOLD);
    sim_trace(a->w, "ctr %s put on hold by its user", c->rec.uuid);
    c->hold_until_us = a->w->now_us + for_us;
    set_priority(a, c, 0);
    sim_api_changed(a, c);
    sim_at_owned(a->w, for_us, hold_end, h);
}

/* --- life ------------------------------------------------------------ */

struct sim_api *sim_api_create(struct sim *w)
{
    struct sim_api *a = MEM_NEW(struct sim_api);

    a->w = w;
    a->token_uuid = "zzzzz-gj3su-00000dispatcher";
    a->features = API_ATTEMPTS | API_FEED;
    a->max_dispatch_attempts = 10;
    a->max_tries = 3;
    a->latency_lo_us = 2 * SIM_MS;
    a->latency_hi_us = 30 * SIM_MS;
    a->epoch = 1;
    a->by_uuid = map_create(NULL);
    a->by_token = map_create(NULL);
    sim_rng_init(&a->rng, w->seed, "api");
    sim_api_port_init(a);
    return a;
}

void sim_api_destroy(struct sim_api *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->ctrs.n; i++) {
        VEC_FINI(&a->ctrs.v[i]->starts);
        free(a->ctrs.v[i]);
    }
    VEC_FINI(&a->ctrs);
    VEC_FINI(&a->changes);
    VEC_FINI(&a->waiting);
    map_destroy(a->by_uuid);
    map_destroy(a->by_token);
    free(a);
}
