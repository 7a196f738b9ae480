/* SPDX-License-Identifier: Apache-2.0 */
/* core/isolate ns, mnt, caps, and killtree over a pid namespace: each in a
 * child of its own. Needs the right to make namespaces (exit 77 otherwise). */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/isolate/caps.h"
#include "core/isolate/killtree.h"
#include "core/isolate/mnt.h"
#include "core/isolate/ns.h"
#include "core/isolate/procid.h"
#include "core/isolate/sysfile.h"

static void end(int signum)
{
    (void) signum;
    _exit(99);
}

/* A pid 1 ignores signals that it has no handler for. */
static void set_alarm(void)
{
    signal(SIGALRM, end);
    alarm(30);
}

/* Run fn in new namespaces; its result is the number of the line that went
 * wrong, 0 = all is well. */
static void in_child(uint64_t flags, int (*fn)(void))
{
    struct err err;
    int status;
    pid_t pid = ns_fork(flags, -1, NULL, &err);

    if (pid < 0)
        fail_msg("%s", err.text);
    if (pid == 0) {
        int line;
        set_alarm();
        line = fn();
        if (line)
            dprintf(2, "child: line %d, errno %d\n", line, errno);
        _exit(line ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static struct err e;

#define NEED(expr)                                                            \
    do {                                                                      \
        if (!(expr)) {                                                        \
            dprintf(2, "child: %s: %s\n", #expr, e.text);                     \
            return __LINE__;                                                  \
        }                                                                     \
    } while (0)

static int build_and_enter(void)
{
    char path[MNT_FD_PATH_SIZE];
    int root, fd;

    NEED(mnt_private(&e) == 0);
    NEED(mnt_tmpfs("/tmp", 0755, 1 << 20, MNT_NODEV, &e) == 0);
    root = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* What a hostile image could hold. */
    NEED(symlinkat("/etc", root, "up") == 0);
    NEED(symlinkat("../../../../usr", root, "far") == 0);
    NEED(symlinkat("/nowhere", root, "dangling") == 0);
    fd = mnt_point(root, "up/x", S_IFREG, 0644, &e);
    NEED(fd < 0); /* there is no etc inside, and the link is not replaced */
    fd = mnt_point(root, "/a/b//c/", S_IFDIR, 0750, &e);
    NEED(fd >= 0);
    fd = mnt_point(root, "etc", S_IFDIR, 0755, &e);
    NEED(fd >= 0);
    fd = mnt_point(root, "up/x", S_IFREG, 0644, &e);
    NEED(fd >= 0 && access("/tmp/etc/x", F_OK) == 0);
    NEED(access("/etc/x", F_OK) < 0);
    NEED(mnt_point(root, "dangling", S_IFDIR, 0755, &e) < 0);
    NEED(mnt_point(root, "missing", 0, 0, &e) < 0);
    NEED(mnt_point(root, "../../..", 0, 0, &e) >= 0);

    fd = mnt_point(root, "usr", S_IFDIR, 0755, &e);
    NEED(mnt_bind("/usr", mnt_fd_path(fd, path), MNT_RO | MNT_REC, &e) == 0);
    NEED(access("/tmp/usr/bin/env", X_OK) == 0);
    fd = mnt_point(root, "far", 0, 0, &e);
    NEED(fd >= 0);
    fd = mnt_point(root, "dev", S_IFDIR, 0755, &e);
    NEED(mnt_dev(mnt_fd_path(fd, path), &e) == 0);
    fd = mnt_point(root, "proc", S_IFDIR, 0755, &e);
    NEED(mnt_proc(mnt_fd_path(fd, path), &e) == 0);
    fd = mnt_point(root, "sys", S_IFDIR, 0755, &e);
    NEED(mnt_sys(mnt_fd_path(fd, path), &e) == 0);
    NEED(mnt_pivot("/tmp", &e) == 0);

    NEED(access("/a/b/c", F_OK) == 0 && access("/tmp", F_OK) < 0);
    NEED(open("/usr/written", O_CREAT | O_WRONLY, 0644) < 0 &&
         errno == EROFS);
    NEED(open("/proc/sys/kernel/hostname", O_WRONLY) < 0 && errno == EROFS);
    fd = open("/dev/null", O_WRONLY);
    NEED(fd >= 0 && write(fd, "x", 1) == 1);
    NEED(open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0);
    NEED(access("/dev/kmsg", F_OK) < 0);
    NEED(access("/proc/1/comm", R_OK) == 0 && getpid() == 1);
    return 0;
}

static void test_root(void **state)
{
    (void) state;
    in_child(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC,
             build_and_enter);
    assert_true(access("/etc/x", F_OK) < 0);
}

static int overlays(void)
{
    NEED(mnt_private(&e) == 0);
    NEED(mnt_tmpfs("/tmp", 0755, 0, 0, &e) == 0);
    NEED(mkdir("/tmp/l:o,w\\er", 0755) == 0 && mkdir("/tmp/u,p", 0755) == 0 &&
         mkdir("/tmp/w:k", 0755) == 0 && mkdir("/tmp/m", 0755) == 0);
    NEED(mkdir("/tmp/l:o,w\\er/below", 0755) == 0);
    NEED(mnt_overlay("/tmp/l:o,w\\er", "/tmp/u,p", "/tmp/w:k", "/tmp/m", 0,
                     &e) == 0);
    NEED(access("/tmp/m/below", F_OK) == 0);
    NEED(mkdir("/tmp/m/new", 0755) == 0);
    NEED(access("/tmp/u,p/new", F_OK) == 0);
    NEED(access("/tmp/l:o,w\\er/new", F_OK) < 0);
    NEED(mnt_on_overlay("/tmp/m") && !mnt_on_overlay("/tmp"));
    /* No upper layer can be on an overlay. */
    NEED(mkdir("/tmp/m/u", 0755) == 0 && mkdir("/tmp/m/w", 0755) == 0 &&
         mkdir("/tmp/m2", 0755) == 0);
    NEED(mnt_overlay("/usr", "/tmp/m/u", "/tmp/m/w", "/tmp/m2", 0, &e) < 0);
    NEED(e.class == ERR_UNSUPPORTED);
    return 0;
}

static void test_overlay(void **state)
{
    (void) state;
    in_child(CLONE_NEWNS, overlays);
}

static int lose_caps(void)
{
    static const int caps[] = {CAP_SYS_TIME, CAP_MKNOD, 63};
    char text[8192];

    NEED(caps_drop(caps, MEM_COUNT(caps), &e) == 0);
    NEED(mknod("/tmp/cdc-test-node", S_IFCHR | 0600, 0x103) < 0 &&
         errno == EPERM);
    NEED(caps_become(65534, 65534, &e) == 0);
    NEED(getuid() == 65534 && getegid() == 65534 && setuid(0) < 0);
    NEED(sysfile_read("/proc/self/status", text, sizeof text) > 0);
    NEED(strstr(text, "CapPrm:\t0000000000000000"));
    NEED(strstr(text, "CapBnd:\t0000000000000000"));
    NEED(strstr(text, "NoNewPrivs:\t1"));
    /* Again, as whom we are now. */
    NEED(caps_become(65534, 65534, &e) == 0);
    NEED(caps_become(0, 0, &e) < 0);
    return 0;
}

static void test_caps(void **state)
{
    (void) state;
    in_child(0, lose_caps);
}

/* Closes all but the listed ones. */
static int close_fds(void)
{
    int a = dup2(0, 100), b = dup2(0, 102), c = dup2(0, 105);
    int keep[] = {100, 105};

    ns_close_fds(3, keep, 2);
    NEED(fcntl(a, F_GETFD) >= 0 && fcntl(b, F_GETFD) < 0 &&
         fcntl(c, F_GETFD) >= 0 && fcntl(0, F_GETFD) >= 0);
    ns_close_fds(3, NULL, 0);
    NEED(fcntl(a, F_GETFD) < 0 && fcntl(c, F_GETFD) < 0);
    return 0;
}

static void test_fds(void **state)
{
    (void) state;
    in_child(0, close_fds);
}

/* Five children each, `depth` generations deep, each in its own session. */
static _Noreturn void breed(int depth)
{
    int i;

    for (i = 0; i < 5 && depth > 0; i++)
        if (fork() == 0) {
            setsid();
            depth--;
            i = -1;
        }
    for (;;)
        pause();
}

static void test_kill_a_namespace(void **state)
{
    struct killtree k = KILLTREE_INIT;
    struct procid id;
    struct err err;
    pid_t pid;
    int i;

    (void) state;
    pid = ns_fork(CLONE_NEWPID, -1, &k.pidfd, &err);
    if (pid < 0)
        fail_msg("%s", err.text);
    if (pid == 0) {
        set_alarm();
        signal(SIGTERM, SIG_IGN);
        breed(3); /* 156 processes */
    }
    assert_int_equal(fcntl(k.pidfd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    for (i = 0; i < 1000 && procid_get(pid, &id, &err) < 0; i++)
        usleep(1000);
    usleep(20000);
    k.pidfd_is_init = true;
    assert_ok(killtree_run(&k, 5000, &err), &err);
    assert_int_equal(k.used, KILLTREE_PIDNS);
    close(k.pidfd);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(procid_alive(&id));
}

static void test_probe(void **state)
{
    struct err err;

    (void) state;
    assert_ok(ns_probe(CLONE_NEWPID | CLONE_NEWNS, &err), &err);
    assert_ok(ns_probe(0, &err), &err);
    if (fork() == 0) {
        alarm(10);
        int bad = caps_become(65534, 65534, &err) < 0 ||
                  ns_probe(CLONE_NEWNS, &err) == 0 ||
                  ns_probe(0, &err) < 0;
        _exit(bad);
    }
    int status;
    wait(&status);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_overlay),
        cmocka_unit_test(test_caps),
        cmocka_unit_test(test_fds),
        cmocka_unit_test(test_kill_a_namespace),
        cmocka_unit_test(test_probe),
    };
    struct err err;

    if (geteuid() != 0 ||
        ns_probe(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS, &err) < 0) {
        printf("skipped: namespaces cannot be made here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
