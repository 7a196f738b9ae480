/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After the death of the payload.
 *
 * The tree is dead and its output folder at rest. Judge what happened, collect
 * the output, send the rest of the logs, write the final state: in this order,
 * because the final write publishes what was sent before it. A container is
 * Complete only if its command ended by itself and its output is safe.
 *
 * Every call is repeated for ten minutes. Signals no longer matter: there is
 * nothing left to stop. A refused token ends it at once.
 */
#include "core/runner/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/runner/api.h"
#include "core/runner/settings.h"
#include "core/runner/logs.h"
#include "core/runner/output.h"

enum { FINAL_MAX = 16 * 1024 };

/* --- judging ------------------------------------------------------------------ */

static void judge_memory(struct run *r, const struct cgroup_usage *u)
{
    bool main_killed = r->exited && WIFSIGNALED(r->status) &&
                       WTERMSIG(r->status) == SIGKILL;

    if (u->oom_kills <= 0)
        return;
    report_warning(&r->report,
                   "the memory limit of %lld bytes was reached: %s",
                   (long long) r->job.ram,
                   main_killed ? "the main program was killed"
                               : "a process of the container was killed");
    snprintf(r->report.warning_detail, sizeof r->report.warning_detail,
             "%lld processes were killed at the memory limit",
             (long long) u->oom_kills);
    logs_printf(r->stage.logs, "%s", r->report.warning);
}

static void judge_end(struct run *r)
{
    struct report *rep = &r->report;

    if (r->stop == RUN_SIGNAL)
        report_error(rep, "cancelled: the runner was told to stop");
    if (r->stop == RUN_MAX_RUN_TIME) {
        report_error(rep, "max_run_time of %lld s exceeded",
                     (long long) r->job.max_run_time_s);
        rep->no_retry = true;
    }
    if (r->exited) {
        rep->has_exit_code = true;
        rep->exit_code = report_exit_code(r->status);
        logs_printf(r->stage.logs, "command ended with exit code %d%s",
                    rep->exit_code,
                    WIFSIGNALED(r->status) ? " (killed by a signal)" : "");
    }
    rep->complete = r->exited && r->stop == RUN_NOT_STOPPED && !r->killed;
    if (!rep->complete)
        report_error(rep, "the command did not end by itself");
}

static void log_usage(struct run *r, const struct cgroup_usage *u,
                      double seconds)
{
    const struct rusage *ru = &r->payload.usage;
    int64_t peak = u->memory_peak >= 0 ? u->memory_peak
                                       : ru->ru_maxrss * INT64_C(1024);

    logs_printf(r->stage.logs,
                "Maximum container memory rss usage was %.0f%%, %lld/%lld "
                "bytes",
                r->job.ram > 0 ? 100.0 * (double) peak / (double) r->job.ram
                               : 0.0,
                (long long) peak, (long long) r->job.ram);
    logs_printf(r->stage.logs,
                "Container used %.3f s of CPU time (%.3f user, %.3f system) "
                "in %.3f s, with %lld VCPUs",
                (double) (ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) +
                    (double) (ru->ru_utime.tv_usec + ru->ru_stime.tv_usec) /
                        1e6,
                (double) ru->ru_utime.tv_sec +
                    (double) ru->ru_utime.tv_usec / 1e6,
                (double) ru->ru_stime.tv_sec +
                    (double) ru->ru_stime.tv_usec / 1e6,
                seconds, (long long) r->job.vcpus);
}

/* --- output -------------------------------------------------------------------- */

static int put_file(void *arg, const char *path, int fd, int64_t size,
                    struct err *err)
{
    struct run *r = arg;
    int64_t at = 0;

    do {
        int64_t n = size - at;

        if (n > API_PIECE_MAX)
            n = API_PIECE_MAX;
        if (api_put_file(r->api, "output", path, fd, at, (size_t) n, err) < 0)
            return -1;
        at += n;
    } while (at < size);
    return 0;
}

static void note(void *arg, const char *text)
{
    struct run *r = arg;

    logs_printf(r->stage.logs, "%s", text);
}

/* Paths below the output folder that the job wants left out. */
static const char **excluded(const struct job *job)
{
    const char **list = mem_calloc(job->n_mounts + 1, sizeof *list);
    size_t n = 0, prefix = strlen(job->output_path) + 1;

    for (size_t i = 0; i < job->n_mounts; i++) {
        const struct job_mount *m = &job->mounts[i];

        if (!m->exclude || strcmp(m->target, job->output_path) == 0)
            continue;
        if (m->kind == JOB_FILE)
            list[n++] = m->path;
        else if (job_path_within(m->target, job->output_path))
            list[n++] = m->target + prefix;
    }
    return list;
}

static int save_output(struct run *r, struct err *err)
{
    CLEANUP(mem_free) const char **exclude = excluded(&r->job);
    struct output o = {
        .root_fd = r->stage.output_fd,
        .globs = r->job.globs,
        .exclude = exclude,
        .put = put_file,
        .note = note,
        .arg = r,
    };

    if (output_collect(&o, err) < 0)
        return -1;
    logs_printf(r->stage.logs, "output: %zu files, %lld bytes, %zu left out",
                o.files, (long long) o.bytes, o.skipped);
    return 0;
}

/* Lost output makes the result worthless: then it is not Complete. What the
 * server, or the walk, refuses to store would be refused the next time too:
 * running the command again only costs. */
static int try_output(struct run *r)
{
    struct err err = {0};

    if (!r->running || r->stage.output_fd < 0 || save_output(r, &err) == 0)
        return 0;
    logs_printf(r->stage.logs, "output cannot be saved: %s", err.text);
    if (err.class == ERR_AUTH)
        return -1;
    r->report.complete = false;
    r->report.no_retry |= err.class == ERR_INVALID ||
                          err.class == ERR_TOO_LARGE;
    report_error(&r->report, "output cannot be saved: %s", err.text);
    return 0;
}

/* --- the last words -------------------------------------------------------------- */

static int write_final(struct run *r)
{
    CLEANUP(buf_fini) struct buf text;
    struct err err = {0};

    buf_init(&text, FINAL_MAX);
    report_print(&r->report, &text);
    if (api_update(r->api, text.data, NULL, &err) == 0)
        return 0;
    logs_printf(NULL, "%s: the final state was not written: %s",
                r->job.uuid, err.text);
    return -1;
}

static void measure(struct run *r)
{
    double seconds = (double) (clock_mono_us() - r->begun_us) / 1e6;
    struct cgroup_usage u;

    cgroup_stat(&r->limits.cg, &u);
    judge_memory(r, &u);
    log_usage(r, &u, seconds);
    r->report.cost = settings_cost(r->settings, seconds, r->job.vcpus,
                                 r->job.ram);
}

int finish_run(struct run *r)
{
    struct err err = {0};

    api_set_wake(r->api, -1);
    api_set_patience(r->api,
                     clock_mono_us() + RUN_PATIENCE_MS * INT64_C(1000));
    if (r->running) {
        judge_end(r);
        measure(r);
    }
    if (try_output(r) < 0)
        return -1;
    logs_printf(r->stage.logs, "%s%s%s",
                r->report.complete ? "Complete" : "Cancelled",
                r->report.error[0] ? ": " : "", r->report.error);
    if (logs_send(r->stage.logs, r->api, INT64_MAX, &err) < 0) {
        logs_printf(NULL, "%s: the log was not saved: %s", r->job.uuid,
                    err.text);
        if (err.class == ERR_AUTH)
            return -1;
        report_warning(&r->report, "the log is not complete");
    }
    return write_final(r);
}
