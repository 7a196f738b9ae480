/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long an instance may say nothing.
 *
 * Silence is judged by the clock, not by a probe that returns: a machine that
 * takes commands and never answers must not hold its containers for ever.
 * After a bearable time without a sign of life a look is made; beyond
 * StaleLockTimeout people are told; TimeoutProbe after the last sign the
 * instance is given up. Any line of the stream, any answered command is a
 * sign; nothing has to be armed again for it, the deadline looks at the time
 * of the last one when it fires.
 *
 * One that no cloud has told of yet (after a restart) is not judged: there was
 * no way to hear it. Nor is one that boots: TimeoutBooting is for that.
 *
 * Loop thread only.
 */

#include "core/base/logger.h"
#include "core/dispatch/worker.h"
#include "core/model/dispatch_cfg.h"

enum { BEAT_US = 15000000 /* of the runner's stream */ };

static void on_silence(void *arg);

static int64_t silence_limit(const struct worker *w)
{
    int64_t us = w->d->cfg->timeout_probe_ms * 1000;
    int64_t boot = w->d->cfg->timeout_booting_ms * 1000;

    /* One that we found may still be booting. */
    return w->state == WORKER_UNKNOWN && boot > us ? boot : us;
}

/* How long to be content with silence: a third of the limit, but no less than
 * a beat and a half if the limit leaves room for that. */
static int64_t silence_bearable(const struct worker *w)
{
    int64_t third = silence_limit(w) / 3;
    int64_t usual = w->no_watch ? w->d->cfg->probe_ms * 1000
                                : BEAT_US + BEAT_US / 2;

    return third < usual ? third : usual;
}

static void arm_silence(struct worker *w)
{
    int64_t now = core_now(w->d);
    int64_t at = w->good_us + silence_bearable(w);
    int64_t last = w->good_us + silence_limit(w);

    at = at < last ? at : last;
    if (at <= now)
        at = now + silence_bearable(w);
    deadline_set(w->d->deadlines, &w->silence, at, on_silence, w);
}

static void on_silence(void *arg)
{
    struct worker *w = arg;
    int64_t quiet = core_now(w->d) - w->good_us;

    if (w->dead || w->state >= WORKER_SHUTDOWN)
        return;
    if (!w->listed) {
        /* The journal knows of it, but no cloud told us yet where it is: the
         * silence is not its own. */
        worker_alive(w);
        arm_silence(w);
        return;
    }
    if (quiet >= silence_limit(w) && w->state != WORKER_BOOTING) {
        worker_event(w, WORKER_EV_SILENT, "no sign of life");
        if (w->state >= WORKER_SHUTDOWN)
            return;
        /* On hold: look again at the same pace. */
        deadline_set(w->d->deadlines, &w->silence,
                     core_now(w->d) + silence_limit(w), on_silence, w);
        return;
    }
    if (quiet >= w->d->cfg->stale_lock_ms * 1000 && !worker_empty(w) &&
        w->warned_us < w->good_us) {
        w->warned_us = core_now(w->d);
        worker_log(w, LOG_WARN, "no sign of life from an instance with "
                                "containers", w->link_err.text);
    }
    if (quiet >= silence_bearable(w) && session_up(w))
        watch_look(w);
    arm_silence(w);
}

void silence_mind(struct worker *w)
{
    if (!deadline_armed(&w->silence))
        arm_silence(w);
}
