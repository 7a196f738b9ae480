/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container's folder.
 *
 *   *.txt   the log files
 *   root/   where the payload's root is put together (root.c); stays empty
 *   tmp/    the payload's /tmp, unless the job mounts one
 *   m.N     the folder or file of mount N; its stdin too
 *
 * A `tmp` mount is a folder here, so it uses this machine's disk and is not
 * counted as memory. With device_type "ram", or where this folder lies on a
 * tmpfs anyway and the capacity is stated, it is a tmpfs of its own with that
 * size: then the limit is enforced. On disk a capacity beyond what is free is
 * refused and the rest is trust, as with Arvados' own runner.
 *
 * The mounts are made here, before the fork, and handed on as descriptors: the
 * output folder stays within our reach whatever becomes of the payload's mount
 * namespace. Nobody but root can enter the folder while the payload runs.
 */
#include "core/runner/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/fdio.h"
#include "core/base/mem.h"
#include "core/isolate/mnt.h"
#include "core/runner/job.h"
#include "core/runner/logs.h"
#include "core/runner/node.h"
#include "core/runner/tree.h"

#define PREFIX "crunch-run."

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static int make_dir(int dir_fd, const char *name, mode_t mode,
                    struct err *err)
{
    int fd;

    if (mkdirat(dir_fd, name, 0700) < 0)
        return err_set_errno(err, errno, "make folder %s", name);
    fd = openat(dir_fd, name, DIR_FLAGS);
    if (fd < 0 || fchmod(fd, mode) < 0) {
        err_set_errno(err, errno, "open folder %s", name);
        mem_close(&fd);
        return -1;
    }
    return fd;
}

void stage_clean(const struct node *node, const char *uuid)
{
    CLEANUP(mem_free) char *name = mem_printf(PREFIX "%s", uuid);
    CLEANUP(mem_close) int scratch = open(node->scratch_dir,
                                          DIR_FLAGS & ~O_NOFOLLOW);

    if (scratch >= 0)
        tree_remove(scratch, name, NULL);
}

/* As few as possible: each costs a journal entry on a disk. */
static int make_content(struct stage *s, struct err *err)
{
    int root = make_dir(s->dir_fd, "root", 0755, err);
    int tmp = root < 0 ? -1 : make_dir(s->dir_fd, "tmp", 01777, err);

    mem_close(&root);
    mem_close(&tmp);
    if (tmp < 0)
        return -1;
    s->logs = logs_create(s->dir_fd, err);
    return s->logs ? 0 : -1;
}

int stage_create(const struct node *node, const char *uuid, struct stage *ret,
                 struct err *err)
{
    struct stage s = {
        .dir_fd = -1,
        .output_fd = -1,
        .std_fd = {-1, -1, -1},
        .uid = node->plain ? geteuid() : node->uid,
        .gid = node->plain ? getegid() : node->gid,
    };
    CLEANUP(mem_close) int scratch = -1;

    s.dir = mem_printf("%s/" PREFIX "%s", node->scratch_dir, uuid);
    scratch = open(node->scratch_dir, DIR_FLAGS & ~O_NOFOLLOW);
    if (scratch < 0) {
        err_set_errno(err, errno, "%s", node->scratch_dir);
        goto error;
    }
    if (tree_remove(scratch, strrchr(s.dir, '/') + 1, err) < 0)
        goto error;
    s.dir_fd = make_dir(scratch, strrchr(s.dir, '/') + 1, 0700, err);
    if (s.dir_fd < 0 || make_content(&s, err) < 0)
        goto error;
    *ret = s;
    return 0;

error:
    stage_destroy(&s);
    return -1;
}

void stage_destroy(struct stage *s)
{
    for (size_t i = 0; i < s->n_mounts; i++) {
        if (s->mounts[i].fd != s->output_fd)
            mem_close(&s->mounts[i].fd);
        free(s->mounts[i].path);
    }
    free(s->mounts);
    for (size_t i = 0; s->links && s->links[i]; i++) {
        unlink(s->links[i]);
        free(s->links[i]);
    }
    free(s->links);
    for (int i = 0; i < 3; i++)
        mem_close(&s->std_fd[i]);
    mem_close(&s->output_fd);
    logs_destroy(s->logs);
    if (s->dir_fd >= 0) {
        close(s->dir_fd);
        tree_remove(AT_FDCWD, s->dir, NULL);
    }
    free(s->dir);
    *s = (struct stage){.dir_fd = -1, .output_fd = -1,
                        .std_fd = {-1, -1, -1}};
}

/* --- folders ---------------------------------------------------------------- */

static int on_disk(struct stage *s, const struct job_mount *m, size_t i,
                   struct err *err)
{
    char name[32];
    int fd;

    snprintf(name, sizeof name, "m.%zu", i);
    fd = make_dir(s->dir_fd, name, 02777, err);
    if (fd >= 0 && fchown(fd, s->uid, s->gid) < 0 && geteuid() == 0) {
        err_set_errno(err, errno, "%s", m->target);
        close(fd);
        return -1;
    }
    if (fd >= 0)
        fchmod(fd, 02777); /* chown clears the set-group bit */
    return fd;
}

static int in_memory(struct stage *s, const struct job_mount *m,
                     struct err *err)
{
    int fd = mnt_open_tmpfs(01777, m->capacity, MNT_NOSUID | MNT_NODEV, err);

    if (fd >= 0 && fchown(fd, s->uid, s->gid) == 0)
        fchmod(fd, 02777);
    return fd;
}

static int make_tmp(struct stage *s, const struct job_mount *m, size_t i,
                    bool plain, struct err *err)
{
    struct stage_mount *sm = &s->mounts[s->n_mounts];
    struct statfs st = {0};
    bool tmpfs;

    if (fstatfs(s->dir_fd, &st) < 0)
        return err_set_errno(err, errno, "statfs %s", s->dir);
    tmpfs = (unsigned long) st.f_type == TMPFS_MAGIC;
    sm->detached = !plain && (m->ram || (tmpfs && m->capacity > 0));
    if (!m->ram && m->capacity > 0 &&
        (int64_t) st.f_bavail < m->capacity / (int64_t) st.f_bsize)
        return err_set(err, ERR_CAPACITY,
                       "%lld bytes are wanted, %lld are free",
                       (long long) m->capacity,
                       (long long) st.f_bavail * st.f_bsize);
    sm->fd = sm->detached ? in_memory(s, m, err) : on_disk(s, m, i, err);
    if (sm->fd < 0)
        return -1;
    if (!sm->detached)
        sm->path = mem_printf("%s/m.%zu", s->dir, i);
    sm->target = m->target;
    s->n_mounts++;
    return 0;
}

/* --- files ------------------------------------------------------------------ */

/* A new file with the mount's content, open for reading; -1. */
static int write_content(int dir_fd, const char *name, mode_t mode,
                         const struct job_mount *m, struct err *err)
{
    CLEANUP(mem_close) int fd = openat(dir_fd, name,
                                       O_WRONLY | O_CREAT | O_EXCL |
                                           O_CLOEXEC, 0600);
    int reader;

    if (fd < 0 || fdio_write_all(fd, m->content, m->content_len) < 0 ||
        fchmod(fd, mode) < 0)
        return err_set_errno(err, errno, "cannot make the file");
    reader = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (reader < 0)
        return err_set_errno(err, errno, "cannot open the file");
    return reader;
}

/* Below the output folder: a copy that is the payload's own. */
static int copy_to_output(struct stage *s, const struct job *job,
                          const struct job_mount *m, struct err *err)
{
    const char *path = m->target + strlen(job->output_path) + 1;
    CLEANUP(mem_close) int fd = -1;

    if (tree_make_parents(s->output_fd, path, s->uid, s->gid, err) < 0)
        return -1;
    fd = write_content(s->output_fd, path, 0644, m, err);
    if (fd < 0)
        return -1;
    if (fchown(fd, s->uid, s->gid) < 0 && geteuid() == 0)
        return err_set_errno(err, errno, "%s", m->target);
    return 0;
}

static int make_literal(struct stage *s, const struct job *job,
                        const struct job_mount *m, size_t i, struct err *err)
{
    struct stage_mount *sm = &s->mounts[s->n_mounts];
    char name[32];
    int fd;

    if (job_path_within(m->target, job->output_path))
        return copy_to_output(s, job, m, err);
    snprintf(name, sizeof name, "m.%zu", i);
    fd = write_content(s->dir_fd, name, 0444, m, err);
    if (fd < 0)
        return -1;
    if (strcmp(m->target, "stdin") == 0) {
        s->std_fd[0] = fd;
        return 0;
    }
    *sm = (struct stage_mount){
        .target = m->target,
        .fd = fd,
        .path = mem_printf("%s/%s", s->dir, name),
        .file = true,
    };
    s->n_mounts++;
    return 0;
}

/* stdout or stderr as a file of the output; both may be the same. */
static int make_redirect(struct stage *s, const struct job_mount *m,
                         struct err *err)
{
    int *slot = &s->std_fd[strcmp(m->target, "stdout") == 0 ? 1 : 2];

    if (tree_make_parents(s->output_fd, m->path, s->uid, s->gid, err) < 0)
        return -1;
    *slot = openat(s->output_fd, m->path,
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                   0644);
    if (*slot < 0)
        return err_set_errno(err, errno, "%.200s", m->path);
    if (fchown(*slot, s->uid, s->gid) < 0 && geteuid() == 0)
        return err_set_errno(err, errno, "%s", m->path);
    return 0;
}

static int fill_std(struct stage *s, struct err *err)
{
    if (s->std_fd[0] < 0)
        s->std_fd[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->std_fd[0] < 0)
        return err_set_errno(err, errno, "/dev/null");
    for (int i = 1; i < 3; i++) {
        if (s->std_fd[i] < 0)
            s->std_fd[i] = logs_open(s->logs,
                                     i == 1 ? LOGS_STDOUT : LOGS_STDERR, err);
        if (s->std_fd[i] < 0)
            return -1;
    }
    return 0;
}

static int fill_one(struct stage *s, const struct job *job, size_t i,
                    struct err *err)
{
    const struct job_mount *m = &job->mounts[i];

    switch (m->kind) {
    case JOB_FILE:
        return make_redirect(s, m, err);
    case JOB_JSON:
    case JOB_TEXT:
        return make_literal(s, job, m, i, err);
    default:
        return 0; /* folders are there already */
    }
}

/* Is the output folder a tmpfs that only this container fills? */
static bool output_is_own(const struct stage *s)
{
    for (size_t i = 0; i < s->n_mounts; i++) {
        if (s->mounts[i].fd == s->output_fd)
            return s->mounts[i].detached;
    }
    return false;
}

/*
 * Whose fault is it? Everything here is made in fresh folders of our own:
 * names that are too long, a file where another mount needs a folder, twice
 * the same file, and more content than the output folder may hold come from
 * the container, and would fail on every other machine too.
 */
static int judge_failure(const struct stage *s, const struct job_mount *m,
                         struct err *err)
{
    if (!err)
        return -1;
    switch (err->class) {
    case ERR_CONFLICT:
    case ERR_INVALID:
    case ERR_TOO_LARGE:
        err->class = ERR_UNSUPPORTED;
        break;
    case ERR_TRANSIENT:
        if (strcmp(err->code, "ENOSPC") == 0 && output_is_own(s))
            err->class = ERR_UNSUPPORTED;
        break;
    default:
        break;
    }
    return err_prefix(err, "mounts: %.200s", m->target);
}

static int by_target(const void *a, const void *b)
{
    const struct stage_mount *x = a, *y = b;

    return strcmp(x->target, y->target);
}

int stage_fill(struct stage *s, const struct job *job, bool plain,
               struct err *err)
{
    s->mounts = mem_calloc(job->n_mounts + 1, sizeof *s->mounts);
    for (size_t i = 0; i < job->n_mounts; i++) {
        const struct job_mount *m = &job->mounts[i];

        if (m->kind != JOB_TMP)
            continue;
        if (make_tmp(s, m, i, plain, err) < 0)
            return judge_failure(s, m, err);
        if (strcmp(m->target, job->output_path) == 0)
            s->output_fd = s->mounts[s->n_mounts - 1].fd;
    }
    for (size_t i = 0; i < job->n_mounts; i++) {
        if (fill_one(s, job, i, err) < 0)
            return judge_failure(s, &job->mounts[i], err);
    }
    qsort(s->mounts, s->n_mounts, sizeof *s->mounts, by_target);
    return fill_std(s, err);
}
