/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `--watch`: tell of starts and ends as they happen.
 *
 * One entry per lock file that somebody holds, with the file open and a
 * descriptor of the supervisor. What wakes us: inotify on the lock folder (a
 * file was made, written, or closed by its last holder), the supervisors'
 * descriptors, standard input, a timer. Whatever the cause, the answer is the
 * same for each entry that it may concern: look at the lock. Free means the
 * whole tree is dead (`exit`); held with a dead supervisor means `stale`.
 * Nothing is concluded from an event itself. A supervisor leaves its file, so
 * that the end of one that lived between two looks is told as well; it goes
 * when its end has been told.
 *
 * The kernel reports the last close a moment before it drops the lock, so a
 * look that came too early is repeated after 1, 2, 4, ... ms. Inotify instances
 * are few per user; without one the folder is read several times a second, and
 * ends are still seen at once.
 *
 * Lines are at most a few hundred bytes and written whole. The end of standard
 * input, or of the reader, ends the program.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/fdio.h"
#include "core/base/jsn.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/vec.h"
#include "core/runner/host.h"
#include "core/runner/lockfile.h"
#include "core/runner/node.h"

enum {
    WATCH_VERSION = 1,
    BEAT_MS = 15000,
    SCAN_MS = 200,      /* without inotify */
    RECHECK_MS = 1,     /* first look after a close event, doubled */
    RECHECK_MAX_MS = 256,
    LINE_MAX_BYTES = 1024,
};

struct entry {
    struct lock_info info;
    int fd;          /* the lock file, for looking at its lock */
    int pidfd;       /* the supervisor; -1 once it is gone */
    bool told;       /* run or start was written */
    bool stale;      /* stale was written */
    int recheck_ms;  /* 0 = none due */
};

struct watch {
    const struct node *node;
    struct map *entries; /* uuid -> struct entry */
    int inotify;         /* -1 = scan */
    bool synced;
    bool broken;
    bool gone;           /* nobody reads any more */
    int64_t beat_us;     /* when the next beat is due */
};

static void drop_fd(int *fd)
{
    mem_close(fd);
    *fd = -1;
}

static void entry_free(void *p)
{
    struct entry *e = p;

    mem_close(&e->fd);
    drop_fd(&e->pidfd);
    free(e);
}

static void emit(struct watch *w, struct buf *line)
{
    buf_putc(line, '\n');
    if (!w->gone && fdio_write_all(STDOUT_FILENO, line->data, line->len) < 0)
        w->gone = true;
}

/* {"event": name, "uuid": ..., "attempt": ..., "pid": ...}; the members of
 * the entry are left out without one, the pid where it says nothing. */
static void tell(struct watch *w, const char *event, const struct entry *e,
                 bool with_pid)
{
    CLEANUP(buf_fini) struct buf line;
    struct jsn_w j;

    buf_init(&line, LINE_MAX_BYTES);
    jsn_w_init(&j, &line);
    jsn_w_obj(&j, NULL);
    jsn_w_str(&j, "event", event);
    if (e) {
        jsn_w_str(&j, "uuid", e->info.uuid);
        jsn_w_i64(&j, "attempt", e->info.attempt);
    }
    if (e && with_pid)
        jsn_w_i64(&j, "pid", e->info.pid);
    jsn_w_end_obj(&j);
    emit(w, &line);
}

/* A boot of this machine: the kernel's boot id and the start time of process
 * 1, which tells apart the lives of a VM that is a process tree. */
static void tell_hello(struct watch *w)
{
    CLEANUP(buf_fini) struct buf line;
    CLEANUP(mem_close) int fd = open("/proc/sys/kernel/random/boot_id",
                                     O_RDONLY | O_CLOEXEC);
    char id[40] = "", boot[80];
    ssize_t n = fd < 0 ? -1 : read(fd, id, sizeof id - 1);
    struct jsn_w j;

    id[n > 0 ? strcspn(id, "\n") : 0] = '\0';
    snprintf(boot, sizeof boot, "%s/%llu", id,
             (unsigned long long) lock_start_time(1));
    buf_init(&line, LINE_MAX_BYTES);
    jsn_w_init(&j, &line);
    jsn_w_obj(&j, NULL);
    jsn_w_str(&j, "event", "hello");
    jsn_w_i64(&j, "v", WATCH_VERSION);
    jsn_w_str(&j, "boot", boot);
    jsn_w_end_obj(&j);
    emit(w, &line);
}

static void tell_life(struct watch *w, struct entry *e, bool readable)
{
    if (!e->told && (readable || !w->synced)) {
        tell(w, w->synced ? "start" : "run", e, true);
        e->told = true;
    }
    /* In the first list a stale container is a live one; then it is named. */
    if (e->told && readable && !e->stale && e->pidfd < 0 && w->synced) {
        tell(w, "stale", e, false);
        e->stale = true;
    }
}

/* What the file says about its container; false: nothing (yet). */
static bool read_info(const struct entry *e, struct lock_info *ret)
{
    return lock_read(e->fd, ret, NULL) == 0 &&
           strcmp(ret->uuid, e->info.uuid) == 0;
}

static void notice(struct watch *w, const char *uuid, bool closed);

/* Nobody holds the lock. The same container may live again already, in
 * another file of the same name. A life that was over before we looked at all
 * is told from what it left in the file. If the file could not be collected,
 * it waits for the next event. */
static void ended(struct watch *w, struct entry *e)
{
    char uuid[TEXT_UUID_SIZE];
    bool another;

    text_copy(uuid, e->info.uuid, sizeof uuid);
    if (e->told || (w->synced && read_info(e, &e->info)))
        tell(w, "exit", e, false);
    host_collect(w->node, uuid, e->fd);
    another = !lock_is_named(w->node->lock_dir, uuid, e->fd);
    map_delete(w->entries, uuid);
    if (another)
        notice(w, uuid, false);
}

/* One life ended and the next began in the same file since we looked. */
static void tell_between(struct watch *w, struct entry *e,
                         const struct lock_info *info)
{
    if (!e->told || e->info.pid <= 0 ||
        (info->pid == e->info.pid && info->start_time == e->info.start_time))
        return;
    tell(w, "exit", e, false);
    e->told = e->stale = false;
}

/* Look at one lock and say what is new. The entry may be gone afterwards. */
static void look(struct watch *w, struct entry *e)
{
    struct lock_info info;
    bool readable;

    if (!lock_is_held(w->node->lock_dir, e->fd)) {
        ended(w, e);
        return;
    }
    readable = read_info(e, &info);
    if (readable)
        tell_between(w, e, &info);
    if (readable && info.pid != e->info.pid) {
        drop_fd(&e->pidfd);
        e->pidfd = lock_pidfd(&info);
    }
    if (readable)
        e->info = info;
    tell_life(w, e, readable);
}

/* A file of that name may be new, changed, or closed. */
static void notice(struct watch *w, const char *uuid, bool closed)
{
    struct entry *e = map_get(w->entries, uuid);
    struct stat ours, named;
    int fd;

    if (lock_open(w->node->lock_dir, uuid, &fd, NULL) < 0)
        fd = -1;
    /* Another file under the same name: the old one's life is over. */
    if (e && fd >= 0 && fstat(fd, &named) == 0 && fstat(e->fd, &ours) == 0 &&
        named.st_ino != ours.st_ino) {
        look(w, e);
        e = map_get(w->entries, uuid);
    }
    if (!e && fd >= 0) {
        e = MEM_NEW(struct entry);
        e->fd = fd;
        e->pidfd = -1;
        text_copy(e->info.uuid, uuid, sizeof e->info.uuid);
        map_set(w->entries, uuid, e);
        fd = -1;
    }
    mem_close(&fd);
    if (!e)
        return;
    if (closed)
        e->recheck_ms = RECHECK_MS;
    look(w, e);
}

static void check_broken(struct watch *w)
{
    bool broken = lock_broken(w->node->lock_dir);

    if (broken && !w->broken)
        tell(w, "broken", NULL, false);
    w->broken = broken;
}

static void scan(struct watch *w)
{
    DIR *d = opendir(w->node->lock_dir);
    char uuid[TEXT_UUID_SIZE];
    struct dirent *de;

    while (d && (de = readdir(d))) {
        if (lock_name_uuid(de->d_name, uuid))
            notice(w, uuid, false);
    }
    if (d)
        closedir(d);
}

typedef VEC(char *) names;

static names all_names(const struct watch *w)
{
    const char *key = NULL;
    names keys = {0};

    while (map_next(w->entries, &key))
        VEC_PUSH(&keys, mem_strdup(key));
    return keys;
}

static void look_at_all(struct watch *w)
{
    names keys = all_names(w);

    for (size_t i = 0; i < keys.n; i++) {
        struct entry *e = map_get(w->entries, keys.v[i]);

        if (e)
            look(w, e);
        free(keys.v[i]);
    }
    VEC_FINI(&keys);
}

static void read_inotify(struct watch *w)
{
    char events[4096]
        __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(w->inotify, events, sizeof events);
    ssize_t at = 0;

    while (n > 0 && at < n) {
        const struct inotify_event *ev =
            (const struct inotify_event *) (void *) (events + at);
        char uuid[TEXT_UUID_SIZE];

        if (ev->mask & IN_Q_OVERFLOW) {
            scan(w);
            look_at_all(w);
        } else if (ev->len && lock_name_uuid(ev->name, uuid)) {
            notice(w, uuid, ev->mask & IN_CLOSE_WRITE);
        }
        at += (ssize_t) (sizeof *ev + ev->len);
    }
    check_broken(w);
}

/* Repeat the looks that came too early; the time until the next, or -1. */
static int recheck(struct watch *w)
{
    names keys = all_names(w);
    int next = -1;

    for (size_t i = 0; i < keys.n; i++) {
        struct entry *e = map_get(w->entries, keys.v[i]);

        if (e && e->recheck_ms)
            look(w, e);
        e = map_get(w->entries, keys.v[i]);
        if (e && e->recheck_ms) {
            e->recheck_ms *= 2;
            if (e->recheck_ms > RECHECK_MAX_MS)
                e->recheck_ms = 0;
            else if (next < 0 || e->recheck_ms < next)
                next = e->recheck_ms;
        }
        free(keys.v[i]);
    }
    VEC_FINI(&keys);
    return next;
}

static int wait_ms(struct watch *w, int until_recheck)
{
    int64_t left = (w->beat_us - clock_mono_us() + 999) / 1000;
    int ms = left < 0 ? 0 : (int) left;

    if (w->inotify < 0 && ms > SCAN_MS)
        ms = SCAN_MS;
    if (until_recheck >= 0 && ms > until_recheck)
        ms = until_recheck;
    return ms;
}

typedef VEC(struct pollfd) pollfds;

static void add_fd(pollfds *fds, int fd)
{
    VEC_PUSH(fds, (struct pollfd){.fd = fd, .events = POLLIN});
}

/* Standard input, the reader, inotify, then one descriptor per supervisor. */
static void fill(struct watch *w, pollfds *fds)
{
    const char *key = NULL;
    struct entry *e;

    VEC_CLEAR(fds);
    add_fd(fds, STDIN_FILENO);
    VEC_PUSH(fds, (struct pollfd){.fd = STDOUT_FILENO});
    add_fd(fds, w->inotify);
    while ((e = map_next(w->entries, &key))) {
        if (e->pidfd >= 0)
            add_fd(fds, e->pidfd);
    }
}

static void supervisors_ended(struct watch *w)
{
    const char *key = NULL;
    struct entry *e;

    while ((e = map_next(w->entries, &key))) {
        struct pollfd pf = {.fd = e->pidfd, .events = POLLIN};

        if (e->pidfd >= 0 && poll(&pf, 1, 0) == 1) {
            drop_fd(&e->pidfd);
            e->recheck_ms = RECHECK_MS;
        }
    }
    look_at_all(w);
}

static bool input_ended(const struct pollfd *in)
{
    char drop[256];

    return in->revents && read(in->fd, drop, sizeof drop) <= 0;
}

static void turn(struct watch *w, pollfds *fds)
{
    int n;

    fill(w, fds);
    n = poll(fds->v, fds->n, wait_ms(w, recheck(w)));
    if (n < 0 && errno != EINTR)
        w->gone = true;
    if (n > 0 && (input_ended(&fds->v[0]) || fds->v[1].revents))
        w->gone = true;
    if (n > 0 && fds->v[2].revents)
        read_inotify(w);
    for (size_t i = 3; n > 0 && i < fds->n; i++) {
        if (fds->v[i].revents) {
            supervisors_ended(w);
            break;
        }
    }
    if (w->inotify < 0) {
        scan(w);
        check_broken(w);
    }
    if (clock_mono_us() >= w->beat_us) {
        look_at_all(w);
        tell(w, "beat", NULL, false);
        w->beat_us = clock_mono_us() + BEAT_MS * INT64_C(1000);
    }
}

int host_watch(const struct node *node)
{
    struct watch w = {.node = node, .entries = map_create(entry_free)};
    pollfds fds = {0};

    /* Watch first, list then: what happens in between is seen twice. */
    w.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w.inotify >= 0 &&
        inotify_add_watch(w.inotify, node->lock_dir,
                          IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE |
                              IN_MOVED_TO | IN_DELETE) < 0)
        drop_fd(&w.inotify);
    w.beat_us = clock_mono_us() + BEAT_MS * INT64_C(1000);
    tell_hello(&w);
    scan(&w);
    tell(&w, "sync", NULL, false);
    w.synced = true;
    look_at_all(&w);
    check_broken(&w);
    while (!w.gone)
        turn(&w, &fds);
    VEC_FINI(&fds);
    map_destroy(w.entries);
    drop_fd(&w.inotify);
    return 0;
}
