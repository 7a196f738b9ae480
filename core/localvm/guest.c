/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest.c: from a clone of cdc-local-vm to the first process of a VM.
 *
 *   keep nothing of the caller's (descriptors, signals, environment)
 *   -> read 'c': we are in our groups; unshare the cgroup namespace; say so
 *   -> read 'g': our identity is durable; from now on we live on our own
 *   -> enter the new root, write the files, give up capabilities
 *   -> guest_init()
 *
 * If the caller dies before 'g', the pipe ends and so does this process: no
 * VM runs that the state directory does not know. Up to there the phase is
 * NEW. After 'g' a failure is told through the status and ends the process;
 * its namespaces take everything along.
 *
 * The pipe's end is closed first thing in the child together with the
 * caller's lock: a killed caller must not be kept alive by us.
 */

#include "core/localvm/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/isolate/caps.h"
#include "core/isolate/ns.h"
#include "core/isolate/sysfile.h"
#include "core/localvm/keygen.h"

static const int dropped[] = {CAP_SYS_MODULE, CAP_SYS_TIME, CAP_SYS_BOOT,
                              CAP_SYS_RAWIO};

static _Noreturn void give_up(const struct guest *g, const struct err *err)
{
    dprintf(STDERR_FILENO, "vm: %s\n", err->text);
    status_tell(g->status, STATUS_FAILED, err);
    _exit(1);
}

/* Nothing of the caller's but the two pipes and the log. */
static void detach(const struct guest *g)
{
    int keep[] = {g->from_parent, g->to_parent};
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    char path[STATE_PATH_SIZE];
    int signum, null, log;

    if (keep[0] > keep[1]) {
        keep[0] = g->to_parent;
        keep[1] = g->from_parent;
    }
    ns_close_fds(3, keep, 2);
    for (signum = 1; signum < NSIG; signum++)
        sigaction(signum, &dfl, NULL);
    setsid();
    umask(022);
    vm_path(g->vm, "log", path);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(null, 0);
    dup2(log >= 0 ? log : null, 1);
    dup2(log >= 0 ? log : null, 2);
    prctl(PR_SET_NAME, "cdc-vm-init", 0, 0, 0);
    clearenv();
    setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    setenv("LANG", "C.UTF-8", 1);
}

/* The caller's next word; it died or gave up: end without a trace. */
static void expect(const struct guest *g, char word)
{
    char c;
    ssize_t n;

    do
        n = read(g->from_parent, &c, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1 || c != word)
        _exit(0);
}

static void follow_parent(const struct guest *g)
{
    expect(g, 'c');
    if (!g->run->degraded)
        unshare(CLONE_NEWCGROUP); /* without it /proc shows longer paths */
    if (write(g->to_parent, "c", 1) != 1)
        _exit(0);
    expect(g, 'g');
    status_tell(g->status, STATUS_BOOTING, NULL);
    close(g->from_parent);
    close(g->to_parent);
    ns_close_fds(3, NULL, 0);
}

static int make_dirs(struct err *err)
{
    static const struct {
        const char *path;
        mode_t mode;
    } dirs[] = {
        {"/run/vm", 0700}, {"/run/crunch", 0755}, {"/run/sshd", 0755},
        {"/run/lock", 01777}, {"/run/user", 0755},
    };
    size_t i;

    for (i = 0; i < MEM_COUNT(dirs); i++)
        if ((mkdir(dirs[i].path, dirs[i].mode) < 0 && errno != EEXIST) ||
            chmod(dirs[i].path, dirs[i].mode) < 0)
            return err_set_errno(err, errno, "make %s", dirs[i].path);
    return 0;
}

/* An image has a shadow of its own, most often with root locked, and perhaps
 * no sshd. */
static int adapt_image(struct err *err)
{
    if (access("/usr/sbin/sshd", X_OK) < 0 || access("/bin/sh", X_OK) < 0)
        return err_set(err, ERR_CONFIG, "the image has no /usr/sbin/sshd or "
                       "no /bin/sh");
    return guest_put("/etc", "shadow", 0640, "root:*:20000:0:99999:7:::\n",
                     err);
}

/* The host's root is out of reach afterwards, so read the key before. */
static int enter(const struct guest *g, struct err *err)
{
    char path[STATE_PATH_SIZE];
    char key[KEYGEN_PRIVATE_MAX];
    struct err remark = {0};
    int rc;

    vm_path(g->vm, "host_key", path);
    if (sysfile_read(path, key, sizeof key) <= 0)
        return err_set_errno(err, errno, "read %s", path);
    if (ns_set_hostname(g->vm->name, err) < 0 ||
        guest_enter_root(g, &remark, err) < 0 || make_dirs(err) < 0)
        return -1;
    rc = guest_put("/run/vm", "host_key", 0600, key, err);
    explicit_bzero(key, sizeof key);
    if (rc < 0 || (strcmp(g->vm->spec.image, "host") != 0 &&
                   adapt_image(err) < 0))
        return -1;
    if (remark.class != ERR_NONE)
        status_tell(g->status, STATUS_BOOTING, &remark);
    return guest_write_files(g, "/run/vm", err);
}

static _Noreturn void run_plain(const struct guest *g)
{
    char run_dir[STATE_PATH_SIZE];
    struct err err;

    vm_path(g->vm, "run", run_dir);
    /* Found by this mark when the supervisor is gone (killtree.h). */
    setenv("CDC_VM_ID", g->vm->id, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (guest_write_files(g, run_dir, &err) < 0)
        give_up(g, &err);
    guest_init(g, run_dir);
}

void guest_main(const struct guest *g)
{
    struct err err;

    detach(g);
    follow_parent(g);
    if (g->run->degraded)
        run_plain(g);
    if (enter(g, &err) < 0 ||
        caps_drop(dropped, MEM_COUNT(dropped), &err) < 0)
        give_up(g, &err);
    setenv("HOME", "/root", 1);
    guest_init(g, "/run/vm");
}
