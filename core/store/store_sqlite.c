/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store over SQLite: opening and closing.
 *
 * Opening takes a lock on a file beside the database (a lock on the database
 * itself would be lost as soon as anybody in this process closed it once),
 * opens the writer's connection, which checks the file and brings its schema
 * up to date, then the readers' and the threads. All of that happens on the
 * loop thread, before the program serves anybody.
 *
 * Why synchronous=FULL and one commit for many: in WAL mode FULL is the level
 * at which an answered write survives a loss of power, and it costs one
 * fdatasync a commit. Sharing that among all requests that wait makes it cheap
 * exactly when there are many.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/store/store_sqlite.h"
#include "core/store/store_sqlite_mig.h"

const char *store_durability(const struct store *st)
{
    return st->durability;
}

/* The database must exist before SQLite opens it, so that it, and the files
 * beside it that take over its mode, are nobody else's to read. */
static int make_private(const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_set_errno(err, errno, "cannot open %s", path);
    close(fd);
    return 0;
}

static int take_lock(struct store *st, struct err *err)
{
    CLEANUP(mem_free) char *name = mem_printf("%s-lock", st->path);

    st->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (st->lock_fd < 0)
        return err_set_errno(err, errno, "cannot open %s", name);
    if (flock(st->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return err_set(err, ERR_CONFIG,
                       "%s is in use by another crunch-api-server", st->path);
    return err_set_errno(err, errno, "cannot lock %s", name);
}

static void lane_init(struct store_lane *lane)
{
    lane->first = NULL;
    lane->last = &lane->first;
    pthread_cond_init(&lane->more, NULL);
}

static struct store *create(struct loop *l, const struct store_opts *opts)
{
    struct store *st = MEM_NEW(struct store);

    st->loop = l;
    st->path = mem_strdup(opts->path);
    st->lock_fd = -1;
    st->full = opts->full;
    st->max_queued = opts->max_queued ? opts->max_queued : 1024;
    pthread_mutex_init(&st->lock, NULL);
    lane_init(&st->read);
    lane_init(&st->slow);
    lane_init(&st->write);
    snprintf(st->durability, sizeof st->durability,
             "SQLite %s, WAL, synchronous=%s, group commit",
             sqlite3_libversion(), opts->full ? "FULL" : "NORMAL");
    return st;
}

int store_open(struct loop *l, const struct store_opts *opts,
               struct store **ret, struct err *err)
{
    struct store *st = create(l, opts);
    struct store_tx *tx;

    if (make_private(st->path, err) < 0 || take_lock(st, err) < 0)
        goto error;
    if (!(tx = tx_create(st->path, true, st->full, err)))
        goto error;
    VEC_PUSH(&st->txs, tx);
    if (mig_run(tx->db, st->path, err) < 0 ||
        work_start(st, opts->readers ? opts->readers : 2, err) < 0)
        goto error;
    *ret = st;
    return 0;
error:
    store_close(st);
    return -1;
}

void store_close(struct store *st)
{
    if (!st)
        return;
    work_stop(st);
    if (st->txs.n > 0) /* last connection: the log goes into the file */
        sqlite3_wal_checkpoint_v2(st->txs.v[0]->db, NULL,
                                  SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    for (size_t i = st->txs.n; i-- > 0;)
        tx_destroy(st->txs.v[i]);
    VEC_FINI(&st->txs);
    pthread_cond_destroy(&st->read.more);
    pthread_cond_destroy(&st->slow.more);
    pthread_cond_destroy(&st->write.more);
    pthread_mutex_destroy(&st->lock);
    if (st->lock_fd >= 0)
        close(st->lock_fd);
    free(st->path);
    free(st);
}

void store_watch(struct store *st,
                 void (*changed)(void *arg, int64_t seq, enum store_table t,
                                 const char *key),
                 void *arg)
{
    st->changed = changed;
    st->changed_arg = arg;
}

void store_get_stats(struct store *st, struct store_stats *ret)
{
    pthread_mutex_lock(&st->lock);
    *ret = st->stats;
    ret->waiting = st->queued;
    pthread_mutex_unlock(&st->lock);
}
