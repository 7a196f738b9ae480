/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_files.c: the files that a VM's sshd and its crunch-run find.
 *
 *   <run>/host_key          copied from the state directory
 *   <run>/authorized_keys   the dispatcher's public key
 *   <run>/sshd_config       absolute paths only, one address, keys only
 *   <run>/init_command      what sh runs before the first login
 *   node.json               core/runner/node.h: /run/crunch, or (degraded)
 *                           beside <run>, named by CDC_NODE_JSON
 *
 * <run> is /run/vm inside a full VM, DIR/ID/run in a degraded one. Everything
 * in it is private to the one user that logs in.
 *
 * Choices in sshd_config that were paid for: UsePAM no (the VM has no PAM
 * sessions worth their time; needs a shadow entry "*"), MaxSessions 64 (the
 * default of 10 is fewer than containers that fit on one VM), SetEnv PATH (a
 * login without PAM has almost none), and a PidFile, which sshd writes after
 * it listens: that is how pid 1 learns that logins work.
 *
 * Runs in the child, after it has entered its root.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/isolate/sysfile.h"
#include "core/localvm/guest.h"
#include "core/localvm/keygen.h"

enum { CONFIG_MAX = 16 << 10, NODE_MAX = 64 << 10 };

#define PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define CGROUP_TOP "/sys/fs/cgroup"

int guest_put(const char *dir, const char *name, mode_t mode,
              const char *text, struct err *err)
{
    char path[STATE_PATH_SIZE + 64];
    CLEANUP(mem_close) int fd = -1;
    size_t len = strlen(text);

    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
              mode);
    if (fd < 0 || fchmod(fd, mode) < 0 ||
        write(fd, text, len) != (ssize_t) len)
        return err_set_errno(err, errno, "write %s", path);
    return 0;
}

/* --- sshd_config --------------------------------------------------------- */

/* A path as one word; where `percent` has a meaning, it is doubled. */
static void put_path(struct buf *b, const char *key, const char *dir,
                     const char *name, bool percent)
{
    buf_printf(b, "%s \"", key);
    for (; *dir; dir++) {
        if (*dir == '%' && percent)
            buf_putc(b, '%');
        buf_putc(b, *dir);
    }
    buf_printf(b, "/%s\"\n", name);
}

void guest_sshd_config(const struct guest *g, const char *run_dir,
                       struct buf *out)
{
    const struct vm_run *r = g->run;

    buf_printf(out, "ListenAddress %s:%d\n", r->address, r->port);
    put_path(out, "HostKey", run_dir, "host_key", false);
    put_path(out, "AuthorizedKeysFile", run_dir, "authorized_keys", true);
    put_path(out, "PidFile", run_dir, "sshd.pid", false);
    buf_printf(out, "AllowUsers %s\n", r->user);
    buf_puts(out, "PermitRootLogin prohibit-password\n"
                  "PubkeyAuthentication yes\n"
                  "PasswordAuthentication no\n"
                  "KbdInteractiveAuthentication no\n"
                  "UsePAM no\n"
                  "UseDNS no\n"
                  "PrintMotd no\n"
                  "PrintLastLog no\n"
                  "X11Forwarding no\n"
                  "AllowTcpForwarding no\n"
                  "AllowAgentForwarding no\n"
                  "AllowStreamLocalForwarding no\n"
                  "PermitTunnel no\n"
                  "PermitUserEnvironment no\n"
                  "MaxSessions 64\n"
                  "MaxStartups 100:30:200\n"
                  "LoginGraceTime 60\n"
                  "LogLevel ERROR\n");
    if (!r->degraded) {
        buf_puts(out, "SetEnv PATH=" PATH "\n");
        return;
    }
    buf_puts(out, "StrictModes no\n");
    buf_printf(out, "SetEnv PATH=" PATH " CDC_VM_ID=%s "
               "\"CDC_NODE_JSON=%s/node.json\"\n", g->vm->id, g->vm->dir);
}

/* --- node.json ----------------------------------------------------------- */

static void write_dir(struct jsn_w *w, const char *key, const char *dir)
{
    char procs[CGROUP_DIR_SIZE + 16];

    snprintf(procs, sizeof procs, "%s/cgroup.procs", dir);
    if (*dir && access(procs, F_OK) == 0)
        jsn_w_str(w, key, dir);
}

/* As seen from where crunch-run is: bound below /sys/fs/cgroup, or the
 * host's own paths. */
static void write_groups(struct jsn_w *w, const struct guest *g)
{
    const struct cgroup *in = &g->groups->inner;
    char shown[64];
    int t;

    jsn_w_obj(w, "cgroup");
    jsn_w_i64(w, "version", g->groups->version);
    if (g->groups->version == 2)
        write_dir(w, "unified",
                  g->run->degraded ? in->dir[CGROUP_UNIFIED] : CGROUP_TOP);
    for (t = 0; t < CGROUP_SYSTEMD && g->groups->version == 1; t++) {
        const char *name = cgroup_tree_name((enum cgroup_tree) t);
        if (in->v2 & 1U << t)
            continue;
        snprintf(shown, sizeof shown, CGROUP_TOP "/%s", name);
        write_dir(w, name, g->run->degraded ? in->dir[t] : shown);
    }
    jsn_w_end_obj(w);
}

static void write_shared(struct jsn_w *w, const struct wire_spec *s)
{
    size_t i;

    jsn_w_arr(w, "shared_dirs");
    for (i = 0; i < s->n_shared; i++) {
        jsn_w_obj(w, NULL);
        jsn_w_str(w, "path", s->shared[i]);
        jsn_w_str(w, "source", s->shared[i]);
        jsn_w_bool(w, "writable", true);
        jsn_w_end_obj(w);
    }
    jsn_w_end_arr(w);
}

void guest_node_json(const struct guest *g, struct buf *out)
{
    const struct wire_spec *s = &g->vm->spec;
    bool plain = g->run->degraded;
    CLEANUP(mem_free) char *tmp = mem_printf("%s/tmp", g->vm->dir);
    CLEANUP(mem_free) char *lock = mem_printf("%s/lock", g->vm->dir);
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_i64(&w, "v", 1);
    jsn_w_str(&w, "id", g->vm->id);
    jsn_w_str(&w, "instance", g->vm->id);
    jsn_w_str(&w, "isolation", plain ? "plain" : "full");
    jsn_w_bool(&w, "plain", plain);
    write_groups(&w, g);
    if (!plain || *s->images_dir)
        jsn_w_str(&w, "image_dir",
                  plain ? s->images_dir : "/var/lib/crunch-run/images");
    jsn_w_str(&w, "scratch_dir", plain ? tmp : "/tmp");
    jsn_w_str(&w, "lock_dir", plain ? lock : "/var/lock");
    write_shared(&w, s);
    jsn_w_end_obj(&w);
    buf_putc(out, '\n');
}

/* --- all of them --------------------------------------------------------- */

static int put_texts(const struct guest *g, const char *run_dir,
                     const char *node_dir, struct err *err)
{
    CLEANUP(mem_free) char *keys = mem_printf("%s\n", g->vm->spec.public_key);
    CLEANUP(buf_fini) struct buf config;
    CLEANUP(buf_fini) struct buf node;

    buf_init(&config, CONFIG_MAX);
    buf_init(&node, NODE_MAX);
    guest_sshd_config(g, run_dir, &config);
    guest_node_json(g, &node);
    if (config.over || node.over)
        return err_set(err, ERR_TOO_LARGE, "settings of the VM are too long");
    if (guest_put(run_dir, "authorized_keys", 0600, keys, err) < 0 ||
        guest_put(run_dir, "sshd_config", 0600, config.data, err) < 0 ||
        guest_put(run_dir, "init_command", 0600, g->vm->spec.init_command,
                  err) < 0)
        return -1;
    return guest_put(node_dir, "node.json", 0600, node.data, err);
}

int guest_write_files(const struct guest *g, const char *run_dir,
                      struct err *err)
{
    if (!g->run->degraded)
        return put_texts(g, run_dir, "/run/crunch", err);
    return put_texts(g, run_dir, g->vm->dir, err);
}
