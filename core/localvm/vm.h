/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_VM_H
#define CORE_LOCALVM_VM_H

/*
 * One VM as the state directory knows it.
 *
 *     ID/vm.json     what was asked for, id, host key: the intent, never
 *                    changed
 *     ID/host_key    the private key of its sshd
 *     ID/tags.json   its tags now
 *     ID/run.json    its first process, address, limits in force: written
 *                    before that process is let go
 *     ID/status      how far it is (status.h)
 *     ID/dying       it is to be destroyed, whatever else is true
 *     ID/log         what its first process, init command and sshd said
 *     ID/disk/ ID/root/   its files; where its root is put together
 *
 * Whoever changes any of it holds the VM's lock, vm_lock().
 */

#include <sys/types.h>

#include "core/base/err.h"
#include "core/isolate/cgroup.h"
#include "core/isolate/procid.h"
#include "core/localvm/state.h"
#include "core/localvm/status.h"
#include "core/localvm/wire.h"

enum { VM_USER_SIZE = 64 };

/* What is known once it was started. */
struct vm_run {
    struct procid proc; /* pid 1 of the VM; degraded: its supervisor */
    char address[16];
    int port;
    char user[VM_USER_SIZE];
    bool degraded;
    char reason[256];
    uint32_t limits;    /* CGROUP_LIMIT_* in force */
};

struct vm {
    char id[WIRE_ID_SIZE];
    char dir[STATE_PATH_SIZE];
    struct wire_spec spec; /* tags: those of now */
    char *name;
    char *host_key;        /* public: "ssh-ed25519 AAAA..." */
    int64_t created_ms;
    bool started;
    struct vm_run run;     /* valid when started */
    bool dying;
};

/* Hold the lock of (token, member). wait as in state_lock(). */
int vm_lock(const struct state *s, const char *token, int64_t member,
            bool wait, int *ret_fd, struct err *err);

/* Write the intent: a new VM with a fresh id and key. Durable on return. Takes
 * spec over in any case. */
int vm_create(const struct state *s, struct wire_spec *spec, struct vm *ret,
              struct err *err);

/* ERR_NOT_FOUND: no such VM. */
int vm_load(const struct state *s, const char *id, struct vm *ret,
            struct err *err);
int vm_find(const struct state *s, const char *token, int64_t member,
            struct vm *ret, struct err *err);
void vm_fini(struct vm *vm);

int vm_save_run(struct vm *vm, const struct vm_run *run, struct err *err);
int vm_save_tags(struct vm *vm, struct err *err);
int vm_mark_dying(struct vm *vm, struct err *err);
/* Forget it: remove all files. note: and remember its token as ended. */
int vm_remove(const struct state *s, struct vm *vm, bool note,
              struct err *err);

/* "DIR/ID/name" */
void vm_path(const struct vm *vm, const char *name,
             char out[STATE_PATH_SIZE]);
void vm_status(const struct vm *vm, struct status *ret);
/* Seconds since the intent was written. */
int64_t vm_age_s(const struct vm *vm);

/* Its instance record, as wire.h describes it, under a key. */
void vm_write(struct jsn_w *w, const char *key, const struct vm *vm,
              enum wire_state state, const struct err *why);

#endif
