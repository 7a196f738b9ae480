/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c: probe, create, list, tag and destroy.
 *
 * What a VM is doing is judged from three things together: its files, its
 * first process (by identity), and the phase that this process told.
 *
 *     files           process   phase      state
 *     intent only     -         -          pending; removed when it is old
 *     run.json        dead      NEW        the same: its caller was killed
 *     run.json        alive     NEW        pending: its caller is at work, or
 *                                          dead (then it ends by itself)
 *     run.json        alive     BOOTING    pending
 *     run.json        alive     RUNNING    running
 *     run.json        dead      FAILED     failed, until it is destroyed
 *     run.json        dead      otherwise  gone: told once, then removed
 *     dying           any       any        stopping; finished by who sees it
 *
 * Every change is made under the VM's lock and after reading it again. list
 * takes locks without waiting: what somebody else works on is left alone.
 *
 * One thread; one command per process.
 */

#include "core/localvm/command.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/fault.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/localvm/groups.h"
#include "core/localvm/launch.h"
#include "core/localvm/mode.h"
#include "core/localvm/vm.h"

enum { ORPHAN_AGE_S = 60, WAIT_STEP_US = 2000 };

/* --- judging ------------------------------------------------------------- */

enum judgement {
    J_HALF,    /* nothing runs yet */
    J_NEW,     /* its first process waits for its caller */
    J_PENDING, J_RUNNING, J_FAILED, J_GONE, J_DYING
};

static enum judgement judge(struct vm *vm, struct err *why)
{
    struct status st;
    bool alive = vm->started && procid_alive(&vm->run.proc);

    /* After the look at the process: what it told last counts. */
    vm_status(vm, &st);
    if (st.phase != STATUS_FAILED && !vm->run.reason[0])
        text_copy(vm->run.reason, st.text, sizeof vm->run.reason);
    if (vm->dying)
        return J_DYING;
    if (!vm->started || st.phase == STATUS_NEW)
        return alive ? J_NEW : J_HALF;
    if (st.phase == STATUS_FAILED) {
        err_set(why, (enum err_class) st.class, "%s", st.text);
        return J_FAILED;
    }
    if (!alive)
        return J_GONE;
    return st.phase == STATUS_RUNNING ? J_RUNNING : J_PENDING;
}

static enum wire_state state_of(enum judgement j)
{
    static const enum wire_state states[] = {
        [J_HALF] = WIRE_PENDING, [J_NEW] = WIRE_PENDING,
        [J_PENDING] = WIRE_PENDING, [J_RUNNING] = WIRE_RUNNING,
        [J_FAILED] = WIRE_FAILED, [J_GONE] = WIRE_GONE,
        [J_DYING] = WIRE_STOPPING,
    };

    return states[j];
}

/* Take it all away; holds the lock. note: its token shall stay ended. */
static int finish_off(const struct state *s, struct vm *vm, bool note,
                      struct err *err)
{
    if (vm_mark_dying(vm, err) < 0)
        return -1;
    fault_hit(FAULT_LOCALVM_DYING);
    if (launch_end(vm, err) < 0)
        return -1;
    return vm_remove(s, vm, note, err);
}

/* --- probe --------------------------------------------------------------- */

static uint32_t probe_limits(const struct cgroup *root)
{
    struct cgroup_limits any = {.memory = 64 << 20, .cpu_milli = 1000,
                                .pids = 64};
    CLEANUP(mem_free) char *name = mem_printf("cdc-probe-%d",
                                              (int) getpid());
    struct cgroup cg;
    uint32_t limits;

    if (cgroup_create(root, name, &cg, NULL, NULL) < 0)
        return 0;
    limits = cgroup_set_limits(&cg, &any, NULL);
    cgroup_remove(&cg, 1000, NULL);
    return limits;
}

int command_probe(const struct state *s, const struct jsn *in,
                  struct buf *out, struct err *err)
{
    struct cgroup root;
    struct mode mode;
    struct jsn_w w;
    char user[64];

    (void) s;
    (void) in;
    mode_find(&mode);
    if (mode_user(&mode, user, sizeof user, err) < 0)
        return -1;
    cgroup_find(&root);
    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_bool(&w, "degraded", mode.degraded);
    jsn_w_str(&w, "reason", mode.reason);
    jsn_w_obj(&w, "cgroup");
    jsn_w_i64(&w, "version", cgroup_version(&root));
    wire_write_limits(&w, "limits", probe_limits(&root));
    jsn_w_end_obj(&w);
    jsn_w_end_obj(&w);
    return 0;
}

/* --- create -------------------------------------------------------------- */

struct single {
    const struct state *state;
    const char *but;
};

static int counts(void *arg, const char *id)
{
    const struct single *one = arg;
    struct vm vm;
    bool other;

    if (vm_load(one->state, id, &vm, NULL) < 0)
        return 0;
    other = strcmp(vm.id, one->but) != 0 && vm.started &&
            procid_alive(&vm.run.proc);
    vm_fini(&vm);
    return other;
}

/* Degraded: there may be one only. Holds the lock "single". */
static int check_single(const struct state *s, const struct vm *vm,
                        const struct mode *mode, struct err *err)
{
    struct single one = {s, vm->id};
    int rc = mode->degraded ? state_each(s, counts, &one, err) : 0;

    if (rc > 0)
        return err_set(err, ERR_QUOTA, "one local VM is all there can be "
                       "here: %.200s", mode->reason);
    return rc;
}

/* Nothing of it runs. On failure nothing of it is left, and its token stays
 * usable. */
static int start(const struct state *s, struct vm *vm, struct err *err)
{
    CLEANUP(mem_close) int single = -1;
    struct mode mode;

    mode_find(&mode);
    if (mode.degraded && state_lock(s, "single", true, &single, err) < 0)
        return -1;
    if (mode.degraded)
        fprintf(stderr, "degraded: one VM of plain processes, no isolation: "
                "%s\n", mode.reason);
    if (check_single(s, vm, &mode, err) == 0 &&
        launch_check(&vm->spec, &mode, err) == 0 &&
        launch_start(vm, &mode, err) == 0)
        return 0;
    finish_off(s, vm, false, NULL);
    return -1;
}

/* The VM is there already, in whatever state. With the lock held, a first
 * process that waits for its caller has lost it. */
static int resume(const struct state *s, struct vm *vm, struct err *err)
{
    enum judgement j = judge(vm, NULL);

    if (j != J_HALF && j != J_NEW)
        return 0;
    if (launch_end(vm, err) < 0)
        return -1;
    return start(s, vm, err);
}

/* A token whose VM has ended: what was is told as gone. */
static void invent_ended(struct wire_spec *spec, const char *id,
                         struct vm *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->spec = *spec;
    memset(spec, 0, sizeof *spec);
    text_copy(ret->id, id, sizeof ret->id);
    ret->name = mem_printf("%s-%02d", ret->spec.token,
                           (int) ret->spec.member);
    ret->host_key = mem_strdup("");
    ret->dying = true;
}

/* Under the lock: the VM of this token, going or gone. Takes spec over. */
static int obtain(const struct state *s, struct wire_spec *spec,
                  struct vm *ret, struct err *err)
{
    char ended[WIRE_ID_SIZE];
    struct err e;
    int rc;

    if (vm_find(s, spec->token, spec->member, ret, &e) == 0) {
        ret->spec.wait_ms = spec->wait_ms;
        rc = resume(s, ret, err);
    } else if (e.class != ERR_NOT_FOUND) {
        *err = e;
        return -1;
    } else if (state_ended(s, spec->token, spec->member, ended)) {
        invent_ended(spec, ended, ret);
        return 0;
    } else {
        if (vm_create(s, spec, ret, err) < 0)
            return -1;
        fault_hit(FAULT_LOCALVM_INTENT);
        rc = start(s, ret, err);
    }
    if (rc < 0)
        vm_fini(ret);
    return rc;
}

/* Wait for the first process to get somewhere. */
static enum judgement settle(struct vm *vm, struct err *why)
{
    int64_t end = clock_mono_us() + vm->spec.wait_ms * 1000;
    struct timespec step = {0, WAIT_STEP_US * 1000};
    enum judgement j = judge(vm, why);

    while ((j == J_PENDING || j == J_NEW) && clock_mono_us() < end) {
        nanosleep(&step, NULL);
        j = judge(vm, why);
    }
    return j;
}

static int reply(struct buf *out, struct vm *vm, enum wire_state state)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    vm_write(&w, "instance", vm, state, NULL);
    jsn_w_end_obj(&w);
    return 0;
}

/* It failed at once: the caller is told, and nothing stays. */
static int fail(const struct state *s, struct vm *vm, const struct err *why,
                struct err *err)
{
    CLEANUP(mem_close) int lock = -1;

    if (vm_lock(s, vm->spec.token, vm->spec.member, true, &lock, NULL) == 0)
        finish_off(s, vm, false, NULL);
    *err = *why;
    return -1;
}

int command_create(const struct state *s, const struct jsn *in,
                   struct buf *out, struct err *err)
{
    CLEANUP(wire_spec_fini) struct wire_spec spec = {0};
    CLEANUP(mem_close) int lock = -1;
    CLEANUP(vm_fini) struct vm vm = {0};
    struct err why = {0};
    enum judgement j;

    if (wire_read_spec(in, &spec, err) < 0 ||
        vm_lock(s, spec.token, spec.member, true, &lock, err) < 0 ||
        obtain(s, &spec, &vm, err) < 0)
        return -1;
    close(lock); /* whoever wants to destroy it need not wait for its boot */
    lock = -1;
    j = settle(&vm, &why);
    if (j == J_FAILED)
        return fail(s, &vm, &why, err);
    return reply(out, &vm, j == J_DYING ? WIRE_GONE : state_of(j));
}

/* --- list ---------------------------------------------------------------- */

struct listing {
    const struct state *state;
    const char *set_id;      /* "" = any */
    struct wire_tags filter;
    struct jsn_w *w;
    struct err *err;
};

/* Clean up after what nobody works on any more: j was seen without the lock,
 * so look again with it. True when it is gone for good. */
static bool tidy(const struct state *s, struct vm *vm, enum judgement j)
{
    CLEANUP(mem_close) int lock = -1;
    CLEANUP(vm_fini) struct vm now = {0};

    if (vm_lock(s, vm->spec.token, vm->spec.member, false, &lock, NULL) < 0 ||
        vm_load(s, vm->id, &now, NULL) < 0 || judge(&now, NULL) != j)
        return false;
    return finish_off(s, &now, j != J_HALF, NULL) == 0;
}

static void list_one(struct listing *l, struct vm *vm)
{
    struct err why = {0};
    enum judgement j = judge(vm, &why);
    enum wire_state state = state_of(j);

    if (j == J_HALF && vm_age_s(vm) > ORPHAN_AGE_S && tidy(l->state, vm, j))
        return;
    if ((j == J_GONE || j == J_DYING) && tidy(l->state, vm, j))
        state = WIRE_GONE;
    vm_write(l->w, NULL, vm, state, &why);
}

static int list_id(void *arg, const char *id)
{
    struct listing *l = arg;
    struct vm vm;
    struct err e;

    if (vm_load(l->state, id, &vm, &e) < 0) {
        if (e.class == ERR_NOT_FOUND) /* destroyed since */
            return 0;
        *l->err = e;
        return -1;
    }
    if ((!*l->set_id || strcmp(l->set_id, vm.spec.set_id) == 0) &&
        wire_tags_match(&vm.spec.tags, &l->filter))
        list_one(l, &vm);
    vm_fini(&vm);
    return 0;
}

int command_list(const struct state *s, const struct jsn *in,
                 struct buf *out, struct err *err)
{
    struct listing l = {.state = s, .set_id = "", .err = err};
    struct mode mode;
    struct jsn_w w;
    int rc;

    if (jsn_opt_str(in, "set_id", &l.set_id, err) < 0 ||
        wire_read_tags(in, "filter", &l.filter, err) < 0)
        return -1;
    state_sweep(s);
    mode_find(&mode);
    jsn_w_init(&w, out);
    l.w = &w;
    jsn_w_obj(&w, NULL);
    jsn_w_bool(&w, "degraded", mode.degraded);
    jsn_w_arr(&w, "instances");
    rc = state_each(s, list_id, &l, err);
    jsn_w_end_arr(&w);
    jsn_w_end_obj(&w);
    wire_tags_fini(&l.filter);
    return rc;
}

/* --- tag, destroy -------------------------------------------------------- */

/* The VM with its lock held. Its token is known only from its files, so they
 * are read before and after. */
static int take(const struct state *s, const char *id, struct vm *ret,
                int *ret_lock, struct err *err)
{
    CLEANUP(vm_fini) struct vm seen = {0};
    int lock;

    if (vm_load(s, id, &seen, err) < 0 ||
        vm_lock(s, seen.spec.token, seen.spec.member, true, &lock, err) < 0)
        return -1;
    if (vm_load(s, id, ret, err) < 0) {
        close(lock);
        return -1;
    }
    *ret_lock = lock;
    return 0;
}

int command_tag(const struct state *s, const struct jsn *in, struct buf *out,
                struct err *err)
{
    CLEANUP(vm_fini) struct vm vm = {0};
    CLEANUP(mem_close) int lock = -1;
    struct wire_tags tags;
    const char *id;

    if (jsn_str(in, "id", &id, err) < 0 ||
        wire_read_tags(in, "tags", &tags, err) < 0)
        return -1;
    if (take(s, id, &vm, &lock, err) < 0) {
        wire_tags_fini(&tags);
        return -1;
    }
    wire_tags_fini(&vm.spec.tags);
    vm.spec.tags = tags;
    if (vm_save_tags(&vm, err) < 0)
        return -1;
    return buf_puts(out, "{}");
}

int command_destroy(const struct state *s, const struct jsn *in,
                    struct buf *out, struct err *err)
{
    CLEANUP(vm_fini) struct vm vm = {0};
    CLEANUP(mem_close) int lock = -1;
    struct err e;
    const char *id;

    if (jsn_str(in, "id", &id, err) < 0)
        return -1;
    if (take(s, id, &vm, &lock, &e) < 0 && e.class != ERR_NOT_FOUND) {
        *err = e;
        return -1;
    }
    if (lock >= 0 && finish_off(s, &vm, true, err) < 0)
        return -1;
    if (lock < 0)
        state_sweep(s); /* an earlier destroy may have been killed */
    return buf_puts(out, "{}");
}
