/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c: the caller's side of a VM's birth, and its end.
 *
 *      caller                                child (guest.c)
 *      groups made, address chosen
 *      clone ------------------------------> waits
 *      its pid into its groups, 'c' -------> unshares its cgroup namespace
 *      <-------------------------------- 'c'
 *      its pid into sys, identity into
 *      run.json (durable), 'g' ------------> lives on its own
 *
 * Whatever kills the caller before 'g' ends the child as well, by the pipe;
 * what it leaves are files and empty groups that the next create or list
 * finds by the VM's id. After 'g' nothing of the VM depends on the caller: it
 * is in its own session, its own groups, and shares no descriptor.
 *
 * The end goes by the identity in run.json, never by a bare pid. A frozen VM
 * is thawed by killtree. A degraded VM's supervisor is asked first (SIGTERM):
 * only it knows its orphans.
 */

#include "core/localvm/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/fault.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/isolate/killtree.h"
#include "core/isolate/ns.h"
#include "core/isolate/sysfile.h"
#include "core/localvm/addr.h"
#include "core/localvm/groups.h"
#include "core/localvm/guest.h"

enum { KILL_MS = 10000, ASK_MS = 5000, GROUPS_MS = 5000, HELLO_MS = 10000 };

/* --- what must be there -------------------------------------------------- */

static bool is_below(const char *path, const char *dir)
{
    CLEANUP(mem_free) char *p = realpath(path, NULL);
    CLEANUP(mem_free) char *d = realpath(dir, NULL);

    return p && d && strncmp(p, d, strlen(d)) == 0 && p[strlen(d)] == '/';
}

static int check_image(const struct wire_spec *spec, struct err *err)
{
    CLEANUP(mem_free) char *path =
        spec->image[0] == '/'
            ? mem_strdup(spec->image)
            : mem_printf("%s/%s", spec->images_dir, spec->image);
    struct stat st;

    if (strcmp(spec->image, "host") == 0)
        return 0;
    if (!*spec->images_dir)
        return err_set(err, ERR_CONFIG, "image %.80s: no images_dir is set",
                       spec->image);
    if (spec->image[0] != '/' && !text_is_file_name(spec->image, 255))
        return err_set(err, ERR_CONFIG, "image %.80s: not a file name",
                       spec->image);
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode) ||
        !is_below(path, spec->images_dir))
        return err_set(err, ERR_CONFIG, "image %.80s: no such directory "
                       "below %.80s", spec->image, spec->images_dir);
    return 0;
}

static int check_dir(const char *path, const char *what, struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_CONFIG, "%s: %.120s is no directory", what,
                       path);
    return 0;
}

int launch_check(const struct wire_spec *spec, const struct mode *mode,
                 struct err *err)
{
    struct addr_range range;
    size_t i;

    if (mode->degraded && strcmp(spec->image, "host") != 0)
        return err_set(err, ERR_CONFIG, "image %.80s: only \"host\" can be "
                       "used where VMs cannot be made", spec->image);
    if (check_image(spec, err) < 0 ||
        addr_parse_range(spec->address_range, &range, err) < 0 ||
        (*spec->images_dir &&
         check_dir(spec->images_dir, "images_dir", err) < 0))
        return -1;
    for (i = 0; i < spec->n_shared; i++)
        if (check_dir(spec->shared[i], "shared_dirs", err) < 0)
            return -1;
    if (strcmp(spec->image, "host") == 0 && access("/usr/sbin/sshd", X_OK) < 0)
        return err_set(err, ERR_CONFIG, "no /usr/sbin/sshd on this machine "
                       "(Debian: openssh-server)");
    return 0;
}

/* --- start --------------------------------------------------------------- */

/* Files of an earlier attempt have half-made content; begin afresh. */
static int prepare_files(const struct vm *vm, bool degraded, struct err *err)
{
    static const char *const full[] = {"disk", "etc", "root"};
    static const char *const plain[] = {"run", "tmp", "lock"};
    const char *const *names = degraded ? plain : full;
    char path[STATE_PATH_SIZE];
    size_t i;

    for (i = 0; i < MEM_COUNT(full); i++) {
        vm_path(vm, names[i], path);
        if (state_remove_tree(path, err) < 0)
            return -1;
        if (mkdir(path, 0700) < 0)
            return err_set_errno(err, errno, "make %s", path);
    }
    return 0;
}

/* sshd wants to read its key where it is private to the user. */
static int prepare_plain(const struct vm *vm, struct err *err)
{
    char path[STATE_PATH_SIZE], run_dir[STATE_PATH_SIZE];
    char key[2048];
    int rc;

    if (geteuid() == 0)
        mkdir("/run/sshd", 0755); /* sshd as root insists on it */
    vm_path(vm, "host_key", path);
    vm_path(vm, "run", run_dir);
    if (sysfile_read(path, key, sizeof key) <= 0)
        return err_set_errno(err, errno, "read %s", path);
    rc = guest_put(run_dir, "host_key", 0600, key, err);
    explicit_bzero(key, sizeof key);
    return rc;
}

static int choose_run(const struct vm *vm, const struct mode *mode,
                      struct vm_run *run, struct err *err)
{
    struct addr_range range;

    memset(run, 0, sizeof *run);
    if (mode_user(mode, run->user, sizeof run->user, err) < 0)
        return -1;
    run->degraded = mode->degraded;
    text_copy(run->reason, mode->reason, sizeof run->reason);
    if (addr_parse_range(vm->spec.address_range, &range, err) < 0)
        return -1;
    return addr_choose(&range, run->address, &run->port, err);
}

struct birth {
    struct vm *vm;
    struct vm_run run;
    struct groups groups;
    struct err refused;  /* the first limit or controller that was */
    int to_child[2], from_child[2];
    pid_t pid;
};

static int say(const struct birth *b, char word, struct err *err)
{
    if (write(b->to_child[1], &word, 1) != 1)
        return err_set_errno(err, errno, "the first process is gone");
    return 0;
}

static int hear(const struct birth *b, struct err *err)
{
    char c;

    if (!procid_wait(b->from_child[0], HELLO_MS) ||
        read(b->from_child[0], &c, 1) != 1)
        return err_set(err, ERR_INTERNAL, "the first process does not "
                       "answer");
    return 0;
}

/* From here to the last word, a kill of this process ends the child. */
static int bring_up(struct birth *b, struct err *err)
{
    struct vm *vm = b->vm;

    if (groups_enter(&b->groups, b->pid, err) < 0 || say(b, 'c', err) < 0 ||
        hear(b, err) < 0 ||
        groups_settle(&vm->spec, &b->groups, b->pid, &b->refused, err) < 0 ||
        procid_get(b->pid, &b->run.proc, err) < 0)
        return -1;
    fault_hit(FAULT_LOCALVM_CLONED);
    b->run.limits = b->groups.limits;
    if (!b->run.reason[0])
        text_copy(b->run.reason, b->refused.text, sizeof b->run.reason);
    if (vm_save_run(vm, &b->run, err) < 0)
        return -1;
    fault_hit(FAULT_LOCALVM_RECORDED);
    if (say(b, 'g', err) < 0)
        return -1;
    fault_hit(FAULT_LOCALVM_RELEASED);
    return 0;
}

static void close_pair(int fds[2])
{
    mem_close(&fds[0]);
    mem_close(&fds[1]);
    fds[0] = fds[1] = -1;
}

static int give_birth(struct birth *b, struct status *status, struct err *err)
{
    uint64_t flags = b->run.degraded ? 0 : mode_flags();
    int rc;

    if (pipe2(b->to_child, O_CLOEXEC) < 0 ||
        pipe2(b->from_child, O_CLOEXEC) < 0)
        return err_set_errno(err, errno, "pipe");
    b->pid = ns_fork(flags, -1, NULL, err);
    if (b->pid < 0)
        return -1;
    if (b->pid == 0) {
        struct guest g = {
            .vm = b->vm, .run = &b->run, .groups = &b->groups,
            .status = status, .from_parent = b->to_child[0],
            .to_parent = b->from_child[1],
        };
        guest_main(&g);
    }
    close(b->to_child[0]);
    close(b->from_child[1]);
    b->to_child[0] = b->from_child[1] = -1;
    rc = bring_up(b, err);
    if (rc < 0) {
        kill(b->pid, SIGKILL);
        waitpid(b->pid, NULL, 0);
    }
    return rc;
}

int launch_start(struct vm *vm, const struct mode *mode, struct err *err)
{
    struct birth b = {.vm = vm, .to_child = {-1, -1}, .from_child = {-1, -1}};
    struct status *status = NULL;
    char path[STATE_PATH_SIZE];
    int rc;

    vm_path(vm, "status", path);
    if (prepare_files(vm, mode->degraded, err) < 0 ||
        (mode->degraded && prepare_plain(vm, err) < 0) ||
        choose_run(vm, mode, &b.run, err) < 0 ||
        groups_make(&vm->spec, vm->id, &b.groups, &b.refused, err) < 0)
        return -1;
    fault_hit(FAULT_LOCALVM_GROUPED);
    status = status_create(path, err);
    if (!status)
        return -1;
    rc = give_birth(&b, status, err);
    close_pair(b.to_child);
    close_pair(b.from_child);
    status_unmap(status);
    return rc;
}

/* --- end ----------------------------------------------------------------- */

/* Let the supervisor of a degraded VM end what it started. */
static void ask_supervisor(const struct vm *vm, int pidfd,
                           const struct groups *g)
{
    if (pidfd < 0 || !vm->run.degraded)
        return;
    cgroup_freeze(&g->vm, false, 0, NULL);
    pidfd_send_signal(pidfd, SIGTERM, NULL, 0);
    procid_wait(pidfd, ASK_MS);
}

int launch_end(const struct vm *vm, struct err *err)
{
    CLEANUP(mem_close) int pidfd = -1;
    CLEANUP(mem_free) char *mark = mem_printf("CDC_VM_ID=%s", vm->id);
    struct killtree k = KILLTREE_INIT;
    struct groups groups;

    if (groups_name(&vm->spec, vm->id, &groups, err) < 0)
        return -1;
    if (vm->started)
        procid_open(&vm->run.proc, &pidfd, NULL);
    ask_supervisor(vm, pidfd, &groups);
    k.pidfd = pidfd;
    k.pidfd_is_init = !vm->run.degraded;
    k.cg = &groups.vm;
    k.mark = vm->started && vm->run.degraded ? mark : NULL;
    if (killtree_run(&k, KILL_MS, err) < 0)
        return -1;
    fault_hit(FAULT_LOCALVM_KILLED);
    if (groups_remove(&groups, GROUPS_MS, err) < 0)
        return -1;
    fault_hit(FAULT_LOCALVM_UNGROUPED);
    return 0;
}
