/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vm.c: a VM's files: written in the right order, read back strictly.
 *
 * The life of one, as its directory shows it:
 *
 *   .new-ID            files are written; a kill here leaves nothing that
 *                      anybody was told of
 *   ID/vm.json         the intent: the id is taken, nothing runs
 *   ID/run.json        its first process exists but waits; if the caller dies
 *                      now, that process ends by itself and status stays NEW
 *   ID/status          from BOOTING on the VM lives on its own
 *   ID/dying           to be destroyed; nothing undoes this
 *   .dead-ID           files are removed
 *
 * The process identity and the status are two records on purpose: the first
 * is durable and never changes, the second costs no disk write.
 *
 * Called by the commands, from one thread. Never looks at processes; that is
 * left to the callers.
 */

#include "core/localvm/vm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/fault.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/isolate/sysfile.h"
#include "core/localvm/keygen.h"

enum { FILE_MAX = WIRE_INPUT_MAX + 65536, ID_RANDOM = 20 };

int vm_lock(const struct state *s, const char *token, int64_t member,
            bool wait, int *ret_fd, struct err *err)
{
    CLEANUP(mem_free) char *name = mem_printf("%s-%02" PRId64, token, member);

    return state_lock(s, name, wait, ret_fd, err);
}

void vm_path(const struct vm *vm, const char *name, char out[STATE_PATH_SIZE])
{
    snprintf(out, STATE_PATH_SIZE, "%.700s/%.60s", vm->dir, name);
}

/* --- the intent ---------------------------------------------------------- */

static int write_intent(const struct vm *vm, const char *dir, struct err *err)
{
    CLEANUP(buf_fini) struct buf b;
    struct jsn_w w;

    buf_init(&b, FILE_MAX);
    jsn_w_init(&w, &b);
    jsn_w_obj(&w, NULL);
    jsn_w_i64(&w, "v", 1);
    jsn_w_str(&w, "id", vm->id);
    jsn_w_str(&w, "name", vm->name);
    jsn_w_i64(&w, "created_ms", vm->created_ms);
    jsn_w_str(&w, "host_key", vm->host_key);
    wire_write_spec(&w, "spec", &vm->spec);
    jsn_w_end_obj(&w);
    if (b.over)
        return err_set(err, ERR_TOO_LARGE, "the request is too large");
    return state_write(dir, "vm.json", b.data, err);
}

static int make_files(const struct state *s, struct vm *vm, struct err *err)
{
    char dir[STATE_PATH_SIZE];
    CLEANUP(buf_wipe) struct buf key;

    buf_init(&key, KEYGEN_PRIVATE_MAX);
    snprintf(dir, sizeof dir, "%.700s/.new-%s", s->dir, vm->id);
    if (mkdir(dir, 0700) < 0)
        return err_set_errno(err, errno, "make %s", dir);
    if (keygen_ed25519(&key, &vm->host_key, err) < 0 ||
        state_write(dir, "host_key", key.data, err) < 0 ||
        write_intent(vm, dir, err) < 0) {
        state_remove_tree(dir, NULL);
        return -1;
    }
    fault_hit(FAULT_LOCALVM_NEW);
    if (rename(dir, vm->dir) < 0)
        return err_set_errno(err, errno, "rename to %s", vm->dir);
    return state_sync(s->dir, err);
}

static void name_it(const struct state *s, struct vm *vm)
{
    uint8_t dice[ID_RANDOM];
    char word[ID_RANDOM + 1];

    secret_random(dice, sizeof dice);
    text_base32(dice, sizeof dice, word);
    snprintf(vm->id, sizeof vm->id, "lvm-%s", word);
    snprintf(vm->dir, sizeof vm->dir, "%.700s/%s", s->dir, vm->id);
}

int vm_create(const struct state *s, struct wire_spec *spec, struct vm *ret,
              struct err *err)
{
    struct vm vm = {.spec = *spec};

    memset(spec, 0, sizeof *spec);
    name_it(s, &vm);
    vm.name = mem_printf("%s-%02" PRId64, vm.spec.token, vm.spec.member);
    vm.created_ms = clock_wall_us() / 1000;
    if (make_files(s, &vm, err) < 0) {
        vm_fini(&vm);
        return -1;
    }
    *ret = vm;
    return 0;
}

/* --- reading ------------------------------------------------------------- */

static struct jsn *read_json(const struct vm *vm, const char *name,
                             struct err *err)
{
    char path[STATE_PATH_SIZE];
    CLEANUP(mem_free) char *text = NULL;
    struct jsn *j;
    size_t len;

    vm_path(vm, name, path);
    text = sysfile_read_all(path, FILE_MAX, &len);
    if (!text && errno == ENOENT) {
        err_set(err, ERR_NOT_FOUND, "no %s", path);
        return NULL;
    }
    if (!text) {
        err_set_errno(err, errno, "read %s", path);
        return NULL;
    }
    j = jsn_parse(text, len, err);
    if (!j)
        err_prefix(err, "%s", path);
    return j;
}

static int read_intent(struct vm *vm, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = read_json(vm, "vm.json", err);
    const char *id, *name, *key;

    if (!j)
        return -1;
    if (jsn_str(j, "id", &id, err) < 0 || jsn_str(j, "name", &name, err) < 0 ||
        jsn_str(j, "host_key", &key, err) < 0 ||
        jsn_i64(j, "created_ms", &vm->created_ms, err) < 0 ||
        wire_read_spec(jsn_get(j, "spec"), &vm->spec, err) < 0)
        return err_prefix(err, "%s/vm.json", vm->id);
    if (strcmp(id, vm->id) != 0)
        return err_set(err, ERR_INVALID, "%s/vm.json is of %.40s", vm->id, id);
    vm->name = mem_strdup(name);
    vm->host_key = mem_strdup(key);
    return 0;
}

static int read_run(struct vm *vm, struct err *err)
{
    struct err e;
    CLEANUP(jsn_cleanup) struct jsn *j = read_json(vm, "run.json", &e);
    const char *proc, *address, *user, *reason;
    int64_t port;

    if (!j && e.class == ERR_NOT_FOUND)
        return 0;
    if (!j) {
        if (err)
            *err = e;
        return -1;
    }
    if (jsn_str(j, "proc", &proc, err) < 0 ||
        procid_parse(proc, &vm->run.proc, err) < 0 ||
        jsn_str(j, "address", &address, err) < 0 ||
        jsn_i64(j, "port", &port, err) < 0 ||
        jsn_str(j, "user", &user, err) < 0 ||
        jsn_str(j, "reason", &reason, err) < 0 ||
        jsn_bool(j, "degraded", &vm->run.degraded, err) < 0)
        return err_prefix(err, "%s/run.json", vm->id);
    text_copy(vm->run.address, address, sizeof vm->run.address);
    text_copy(vm->run.user, user, sizeof vm->run.user);
    text_copy(vm->run.reason, reason, sizeof vm->run.reason);
    vm->run.port = (int) port;
    vm->run.limits = wire_read_limits(j, "limits");
    vm->started = true;
    return 0;
}

static int read_tags(struct vm *vm, struct err *err)
{
    struct err e;
    CLEANUP(jsn_cleanup) struct jsn *j = read_json(vm, "tags.json", &e);
    struct wire_tags tags;

    if (!j && e.class == ERR_NOT_FOUND)
        return 0;
    if (!j) {
        if (err)
            *err = e;
        return -1;
    }
    if (wire_read_tags(j, "tags", &tags, err) < 0)
        return err_prefix(err, "%s/tags.json", vm->id);
    wire_tags_fini(&vm->spec.tags);
    vm->spec.tags = tags;
    return 0;
}

int vm_load(const struct state *s, const char *id, struct vm *ret,
            struct err *err)
{
    struct vm vm = {0};
    char path[STATE_PATH_SIZE];

    if (!wire_is_id(id))
        return err_set(err, ERR_NOT_FOUND, "no VM %.40s", id);
    text_copy(vm.id, id, sizeof vm.id);
    snprintf(vm.dir, sizeof vm.dir, "%.700s/%s", s->dir, id);
    if (read_intent(&vm, err) < 0 || read_run(&vm, err) < 0 ||
        read_tags(&vm, err) < 0) {
        vm_fini(&vm);
        return -1;
    }
    vm_path(&vm, "dying", path);
    vm.dying = access(path, F_OK) == 0;
    *ret = vm;
    return 0;
}

struct search {
    const struct state *state;
    const char *token;
    int64_t member;
    struct vm vm;
};

/* 1 = found. What cannot be read is not the one; list reports it. */
static int look(void *arg, const char *id)
{
    struct search *f = arg;

    if (vm_load(f->state, id, &f->vm, NULL) < 0)
        return 0;
    if (strcmp(f->vm.spec.token, f->token) == 0 &&
        f->vm.spec.member == f->member)
        return 1;
    vm_fini(&f->vm);
    return 0;
}

int vm_find(const struct state *s, const char *token, int64_t member,
            struct vm *ret, struct err *err)
{
    struct search f = {.state = s, .token = token, .member = member};
    int rc = state_each(s, look, &f, err);

    if (rc < 0)
        return -1;
    if (rc == 0)
        return err_set(err, ERR_NOT_FOUND, "no VM for %s", token);
    *ret = f.vm;
    return 0;
}

void vm_fini(struct vm *vm)
{
    wire_spec_fini(&vm->spec);
    free(vm->name);
    free(vm->host_key);
    vm->name = vm->host_key = NULL;
}

/* --- changing ------------------------------------------------------------ */

int vm_save_run(struct vm *vm, const struct vm_run *run, struct err *err)
{
    char proc[PROCID_TEXT_SIZE];
    CLEANUP(buf_fini) struct buf b;
    struct jsn_w w;

    buf_init(&b, FILE_MAX);
    jsn_w_init(&w, &b);
    jsn_w_obj(&w, NULL);
    jsn_w_str(&w, "proc", procid_print(&run->proc, proc));
    jsn_w_str(&w, "address", run->address);
    jsn_w_i64(&w, "port", run->port);
    jsn_w_str(&w, "user", run->user);
    jsn_w_bool(&w, "degraded", run->degraded);
    jsn_w_str(&w, "reason", run->reason);
    wire_write_limits(&w, "limits", run->limits);
    jsn_w_end_obj(&w);
    if (state_write(vm->dir, "run.json", b.data, err) < 0)
        return -1;
    vm->run = *run;
    vm->started = true;
    return 0;
}

int vm_save_tags(struct vm *vm, struct err *err)
{
    CLEANUP(buf_fini) struct buf b;
    struct jsn_w w;

    buf_init(&b, FILE_MAX);
    jsn_w_init(&w, &b);
    jsn_w_obj(&w, NULL);
    wire_write_tags(&w, "tags", &vm->spec.tags);
    jsn_w_end_obj(&w);
    return state_write(vm->dir, "tags.json", b.data, err);
}

int vm_mark_dying(struct vm *vm, struct err *err)
{
    if (!vm->dying && state_write(vm->dir, "dying", "", err) < 0)
        return -1;
    vm->dying = true;
    return 0;
}

int vm_remove(const struct state *s, struct vm *vm, bool note,
              struct err *err)
{
    char dead[STATE_PATH_SIZE];

    if (note &&
        state_note_ended(s, vm->spec.token, vm->spec.member, vm->id,
                         err) < 0)
        return -1;
    snprintf(dead, sizeof dead, "%.700s/.dead-%s", s->dir, vm->id);
    if (rename(vm->dir, dead) < 0 && errno != ENOENT)
        return err_set_errno(err, errno, "rename %s", vm->dir);
    return state_remove_tree(dead, err);
}

void vm_status(const struct vm *vm, struct status *ret)
{
    char path[STATE_PATH_SIZE];

    vm_path(vm, "status", path);
    status_read(path, ret);
}

int64_t vm_age_s(const struct vm *vm)
{
    char path[STATE_PATH_SIZE];
    struct stat st;

    vm_path(vm, "vm.json", path);
    if (stat(path, &st) < 0)
        return 0;
    return clock_wall_us() / 1000000 - st.st_mtime;
}

/* --- telling ------------------------------------------------------------- */

static void write_started(struct jsn_w *w, const struct vm *vm)
{
    const struct vm_run *r = &vm->run;

    jsn_w_str(w, "address", vm->started ? r->address : "");
    jsn_w_i64(w, "port", vm->started ? r->port : 0);
    jsn_w_str(w, "user", vm->started ? r->user : "");
    jsn_w_bool(w, "degraded", vm->started && r->degraded);
    jsn_w_str(w, "reason", vm->started ? r->reason : "");
    wire_write_limits(w, "limits", vm->started ? r->limits : 0);
}

void vm_write(struct jsn_w *w, const char *key, const struct vm *vm,
              enum wire_state state, const struct err *why)
{
    const struct wire_spec *s = &vm->spec;

    jsn_w_obj(w, key);
    jsn_w_str(w, "id", vm->id);
    jsn_w_str(w, "name", vm->name);
    jsn_w_str(w, "create_token", s->token);
    jsn_w_i64(w, "member", s->member);
    jsn_w_str(w, "set_id", s->set_id);
    jsn_w_str(w, "state", wire_state_label(state));
    if (state == WIRE_FAILED && why)
        wire_write_error(w, "error", why);
    jsn_w_str(w, "type", s->type_name);
    jsn_w_str(w, "provider_type", s->provider_type);
    jsn_w_str(w, "placement", s->placement);
    jsn_w_str(w, "image", s->image);
    write_started(w, vm);
    wire_write_tags(w, "tags", &s->tags);
    jsn_w_i64(w, "created_ms", vm->created_ms);
    jsn_w_f64(w, "price", s->price);
    jsn_w_str(w, "host_key", vm->host_key);
    jsn_w_end_obj(w);
}
