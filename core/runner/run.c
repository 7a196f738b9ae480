/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the lock to the start.
 *
 *   read      GET the record; it must be Locked; GET the secret mounts
 *   stage     folder, files, cgroup, environment
 *   spawn     init makes the root and tells that it stands
 *   announce  PUT state Running; only its acknowledgement allows the start
 *   go        supervise(), then finish_run()
 *
 * How a run ends before the start depends on whose fault it is. The
 * container's (a mount that cannot be had): Cancelled with the reason, for
 * good. This machine's: nothing is written, so that the dispatcher, which sees
 * the exit and a container still Locked, starts it elsewhere without counting
 * an attempt; the machine is marked broken. The server's refusal, or a signal:
 * nothing is written either. Three round trips precede the start, four with
 * API access. Everything that can fail or take time is done before the last:
 * what is called Running does run.
 *
 * Single-threaded; the lock is held by the caller.
 */
#include "config.h"

#include "core/runner/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/runner/api.h"
#include "core/runner/cli.h"
#include "core/runner/env.h"
#include "core/runner/lockfile.h"
#include "core/runner/logs.h"
#include "core/runner/node.h"
#include "core/runner/nodeinfo.h"
#include "core/runner/plain.h"
#include "core/runner/settings.h"

enum {
    READY_MS = 60 * 1000,
    DIE_MS = 10, /* a payload that takes longer to die needs processor time */
};

/* What to do when a step of the preparation fails. */
enum verdict {
    GO_ON,
    CANCEL,   /* the container's fault: report.error is set */
    WALK_OFF, /* nothing is written */
    BROKEN,   /* the same, and this machine is marked */
};

static enum verdict blame_container(struct run *r, const struct err *err,
                                    bool for_good)
{
    report_error(&r->report, "%s", err->text);
    r->report.no_retry |= for_good;
    logs_printf(r->stage.logs, "refused: %s", err->text);
    return CANCEL;
}

/* Where nothing is written, the container's log is not either: tell the
 * machine's. */
static enum verdict walk_off(struct run *r, const char *what,
                             const struct err *err)
{
    logs_printf(NULL, "%s: %s: %s", r->cli->uuid, what, err->text);
    return WALK_OFF;
}

static enum verdict blame_machine(struct run *r, const struct err *err)
{
    logs_printf(NULL, "%s: this machine cannot run it: %s", r->cli->uuid,
                err->text);
    return BROKEN;
}

/* --- read ------------------------------------------------------------------- */

/* The lock file tells the attempt; who did not send it leaves it to us. */
static void complete_lock(struct run *r)
{
    struct lock_info info = {
        .pid = getpid(),
        .attempt = r->job.attempt,
        .start_time = lock_start_time(getpid()),
    };

    text_copy(info.uuid, r->cli->uuid, sizeof info.uuid);
    if (r->settings->attempt == 0 && r->job.attempt > 0)
        lock_write(r->lock_fd, &info, NULL);
}

static enum verdict read_record(struct run *r)
{
    CLEANUP(buf_wipe) struct buf text;
    struct err err = {0};
    int parsed;

    buf_init(&text, API_RECORD_MAX);
    if (api_get(r->api, &text, &err) < 0)
        return walk_off(r, "cannot read the container", &err);
    parsed = job_parse(text.data, text.len, &r->job, &err);
    if (parsed < 0 && err.class != ERR_UNSUPPORTED)
        return walk_off(r, "not a container's record", &err);
    if (strcmp(r->job.uuid, r->cli->uuid) != 0 ||
        strcmp(r->job.state, "Locked") != 0) {
        err_set(&err, ERR_CONFLICT, "%s is %s, not Locked", r->job.uuid,
                r->job.state);
        return walk_off(r, "nothing to do", &err);
    }
    complete_lock(r);
    return parsed < 0 ? blame_container(r, &err, true) : GO_ON;
}

/* No record shows them, so they have to be asked for each time. */
static enum verdict read_secrets(struct run *r)
{
    CLEANUP(buf_wipe) struct buf text;
    struct err err = {0};

    buf_init(&text, API_RECORD_MAX);
    if (api_get_secrets(r->api, &text, &err) < 0)
        return err.class == ERR_NOT_FOUND /* a server without them */
                   ? GO_ON
                   : walk_off(r, "cannot read the secret mounts", &err);
    if (job_add_secrets(text.data, text.len, &r->job, &err) == 0)
        return GO_ON;
    if (err.class != ERR_UNSUPPORTED)
        return walk_off(r, "not the secret mounts", &err);
    return blame_container(r, &err, true);
}

/* --- stage ------------------------------------------------------------------ */

/* The folder of the image; NULL and err when there is none. */
static char *find_image(struct run *r, struct err *err)
{
    CLEANUP(mem_free) char *dir = NULL;
    struct stat st;

    if (strcmp(r->job.image, JOB_IMAGE_HOST) == 0)
        return mem_strdup("/");
    if (r->node->plain) {
        err_set(err, ERR_UNSUPPORTED,
                "container_image: only \"host\" on a machine without "
                "isolation");
        return NULL;
    }
    dir = mem_printf("%s/%s", r->node->image_dir, r->job.image);
    if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
        err_set(err, ERR_NOT_FOUND, "container_image: \"%s\" is not on this "
                                    "machine", r->job.image);
        return NULL;
    }
    return mem_strdup(dir);
}

static int check_shared(const struct run *r, struct err *err)
{
    for (size_t i = 0; i < r->job.n_mounts; i++) {
        const char *target = r->job.mounts[i].target;

        for (size_t k = 0; k < r->node->n_shared; k++) {
            const char *shared = r->node->shared[k].path;

            if (job_path_within(target, shared) ||
                job_path_within(shared, target))
                return err_set(err, ERR_UNSUPPORTED,
                               "mounts: %s: the shared folder %s is there",
                               target, shared);
        }
    }
    return 0;
}

static enum verdict fill_stage(struct run *r)
{
    struct err err = {0};

    if (check_shared(r, &err) < 0)
        return blame_container(r, &err, true);
    if (stage_fill(&r->stage, &r->job, r->node->plain, &err) < 0)
        return err.class == ERR_CAPACITY || err.class == ERR_UNSUPPORTED
                   ? blame_container(r, &err, err.class == ERR_UNSUPPORTED)
                   : blame_machine(r, &err);
    if (r->node->plain &&
        plain_expose(&r->stage, &r->job, &r->plain_cwd, &err) < 0)
        return blame_container(r, &err, true);
    if (limits_create(r->node, &r->job, r->cli->memory_limit, &r->limits,
                      &err) < 0)
        return blame_machine(r, &err);
    return GO_ON;
}

static enum verdict build_env(struct run *r)
{
    CLEANUP(buf_wipe) struct buf auth;
    struct err err = {0};

    buf_init(&auth, API_RECORD_MAX);
    if (r->job.api && api_get_auth(r->api, &auth, &err) < 0)
        return walk_off(r, "no token for the payload", &err);
    r->env = env_build(&r->job, r->settings, r->job.api ? auth.data : NULL,
                       auth.len, &err);
    if (!r->env)
        return walk_off(r, "no token for the payload", &err);
    return GO_ON;
}

/* --- spawn, announce ---------------------------------------------------------- */

static void forget(void *arg)
{
    struct run *r = arg;

    api_forget(r->api);
    secret_free(r->settings->token);
    r->settings->token = NULL;
}

static enum verdict spawn(struct run *r)
{
    struct err err = {0};
    CLEANUP(mem_free) char *image = find_image(r, &err);
    struct payload_spec spec = {
        .node = r->node,
        .job = &r->job,
        .stage = &r->stage,
        .image = image,
        .cwd = r->plain_cwd ? r->plain_cwd : r->job.cwd,
        .env = r->env,
        .group_fd = r->limits.v2_fd,
        .group_fds = r->limits.fds,
        .n_group_fds = r->limits.n_fds,
        .network = r->job.api || r->cli->always_network,
        .lock_fd = r->lock_fd,
        .forget = forget,
        .arg = r,
    };

    if (!image)
        return blame_container(r, &err, err.class == ERR_UNSUPPORTED);
    if (payload_spawn(&spec, &r->payload, &err) < 0)
        return blame_machine(r, &err);
    return GO_ON;
}

static enum verdict await_ready(struct run *r)
{
    struct payload_msg m = {.text = "its first process died"};
    struct err err = {0};

    switch (payload_read(&r->payload, READY_MS, &m)) {
    case PAYLOAD_READY:
        return GO_ON;
    case PAYLOAD_FAILED:
        err_set(&err, (enum err_class) m.value, "%s", m.text);
        break;
    default:
        err_set(&err, ERR_TIMEOUT, "%s", m.text);
    }
    return err.class == ERR_UNSUPPORTED ? blame_container(r, &err, true)
                                        : blame_machine(r, &err);
}

static enum verdict announce(struct run *r)
{
    struct err err = {0};

    if (api_update(r->api, "{\"state\":\"Running\"}", NULL, &err) < 0)
        return walk_off(r, "not allowed to start", &err);
    r->running = true;
    return GO_ON;
}

/* --- the whole ---------------------------------------------------------------- */

static enum verdict introduce(struct run *r)
{
    char limits[64];

    logs_printf(r->stage.logs, "crunch-run %s started on %s for %s",
                PACKAGE_VERSION,
                r->node->instance ? r->node->instance : "this machine",
                r->cli->uuid);
    logs_printf(r->stage.logs, "image %s; isolation: %s; limits in force:%s",
                r->job.image,
                r->node->plain ? "plain (none: same user, same files)"
                               : "namespaces",
                limits_print(&r->limits, limits, sizeof limits));
    nodeinfo_write(r->stage.logs, r->node->scratch_dir);
    return GO_ON;
}

static enum verdict prepare(struct run *r)
{
    static enum verdict (*const steps[])(struct run *) = {
        read_record, read_secrets, fill_stage,  build_env,
        spawn,       introduce,    await_ready, announce,
    };
    enum verdict v = GO_ON;

    for (size_t i = 0; i < MEM_COUNT(steps) && v == GO_ON; i++)
        v = steps[i](r);
    return v;
}

static int open_events(struct run *r, struct err *err)
{
    struct epoll_event ev = {.events = EPOLLIN};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    r->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    r->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    r->ep = epoll_create1(EPOLL_CLOEXEC);
    ev.data.fd = r->sigfd;
    if (r->sigfd < 0 || r->timerfd < 0 || r->ep < 0 ||
        epoll_ctl(r->ep, EPOLL_CTL_ADD, r->sigfd, &ev) < 0)
        return err_set_errno(err, errno, "event descriptors");
    return 0;
}

static void fini(struct run *r)
{
    api_destroy(r->api);
    limits_destroy(&r->limits);
    stage_destroy(&r->stage);
    env_free(r->env);
    job_fini(&r->job);
    free(r->plain_cwd);
    mem_close(&r->sigfd);
    mem_close(&r->timerfd);
    mem_close(&r->ep);
}

/* 0 = the supervision ended as it should. */
static int conclude(struct run *r, enum verdict v)
{
    struct err err = {0};

    if (v == GO_ON)
        supervise(r);
    payload_kill(&r->payload);
    if (!payload_reap(&r->payload, DIE_MS))
        limits_unthrottle(&r->limits);
    if (payload_finish(&r->payload, r->cli->uuid, &err) < 0) {
        /* It may still run: write nothing, leave the lock in its hands. */
        logs_printf(NULL, "%s: %s", r->cli->uuid, err.text);
        lock_mark_broken(r->node->lock_dir, NULL);
        return -1;
    }
    if (v == BROKEN)
        lock_mark_broken(r->node->lock_dir, NULL);
    if (v == WALK_OFF || v == BROKEN || r->revoked)
        return -1;
    return finish_run(r);
}

int run_container(const struct cli *cli, const struct node *node,
                  struct settings *settings, int lock_fd)
{
    struct run r = {
        .cli = cli, .node = node, .settings = settings, .lock_fd = lock_fd,
        .sigfd = -1, .timerfd = -1, .ep = -1,
        .begun_us = clock_mono_us(),
        .limits = {.v2_fd = -1},
        .stage = {.dir_fd = -1, .output_fd = -1, .std_fd = {-1, -1, -1}},
    };
    struct err err = {0};
    int result = -1;

    if (open_events(&r, &err) < 0 ||
        stage_create(node, cli->uuid, &r.stage, &err) < 0) {
        logs_printf(NULL, "%s", err.text);
        lock_mark_broken(node->lock_dir, NULL);
    } else {
        r.api = api_create(&settings->url, cli->uuid, settings->token);
        api_set_wake(r.api, r.ep);
        api_set_patience(r.api, r.begun_us + RUN_PATIENCE_MS * INT64_C(1000));
        result = conclude(&r, prepare(&r));
    }
    fini(&r);
    /* The lock file stays, for a watcher that has not come to look at it:
     * its content is how the end is told. Whoever finds it free removes it. */
    return result == 0 ? 0 : 1;
}
