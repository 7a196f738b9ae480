/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who has to be ended, released, cancelled: the table.
 *
 * The rows are the states of the API record, the columns what is known of
 * processes: alive, lost (out of sight), exited, none. Two rules carry it:
 *
 * Nothing is concluded from a record that is older than the fact it is
 * compared with (`fresh`): a process that ended may have written its result
 * a moment ago.
 *
 * The release rule. Locked: once the attempt is revoked and a record read
 * after that still says Locked, no payload can start any more; the lock is
 * kept and used again. Running: an exit that was seen; or, the attempt
 * revoked, a look begun after that on every instance it may be on (or the
 * instance confirmed gone) shows it absent. Runs end only on such evidence,
 * so here it is enough that none is left.
 *
 * Pure. reconcile.c fills the view and carries the verdict out.
 */

#include "core/dispatch/reconcile.h"

typedef enum reconcile_verdict verdict;

static verdict not_ours(const struct reconcile_view *v)
{
    if (v->alive > 0)
        return RECONCILE_KILL;
    return v->lost > 0 ? RECONCILE_FORGET_LOST : RECONCILE_DROP;
}

/* The runner writes the final state a moment before it ends. */
static verdict final(const struct reconcile_view *v)
{
    if (v->alive > 0)
        return v->overdue ? RECONCILE_KILL : RECONCILE_NOTHING;
    return not_ours(v);
}

static verdict queued(const struct reconcile_view *v)
{
    if (v->alive > 0 || v->lost > 0)
        return not_ours(v);
    if (!v->wanted)
        return RECONCILE_DROP;
    if (!v->admitted)
        return RECONCILE_READ_MOUNTS;
    return v->impossible ? RECONCILE_LOCK : RECONCILE_NOTHING;
}

/* It has a process. After a restart it is known from its instance, and from
 * lists, which leave the mounts out; what it needs is not known without. */
static verdict alive(const struct reconcile_view *v)
{
    if (!v->wanted)
        return RECONCILE_KILL;
    return v->admitted ? RECONCILE_NOTHING : RECONCILE_READ_MOUNTS;
}

static verdict locked(const struct reconcile_view *v)
{
    if (v->alive > 0)
        return alive(v);
    if (v->lost > 0) {
        if (v->attempt_open)
            return RECONCILE_REVOKE;
        return v->fresh ? RECONCILE_FORGET_LOST : RECONCILE_READ;
    }
    if (!v->fresh && (v->exited || v->gone || v->burnt))
        return RECONCILE_READ;
    if (v->exited)
        return RECONCILE_UNLOCK;
    if (v->burnt)
        return v->attempt_open ? RECONCILE_REVOKE : RECONCILE_UNLOCK;
    if (!v->admitted)
        return RECONCILE_READ_MOUNTS;
    if (v->impossible)
        return RECONCILE_CANCEL_IMPOSSIBLE;
    if (!v->wanted)
        return v->attempt_open ? RECONCILE_REVOKE : RECONCILE_UNLOCK;
    return v->has_token ? RECONCILE_NOTHING : RECONCILE_PREPARE;
}

static verdict running(const struct reconcile_view *v)
{
    if (v->alive > 0)
        return alive(v);
    if (!v->fresh)
        return RECONCILE_READ;
    if (v->lost > 0)
        return v->attempt_open ? RECONCILE_REVOKE : RECONCILE_LOOK;
    if (v->exited)
        return RECONCILE_CANCEL_LOST;
    if (!v->gone && !v->all_known)
        return RECONCILE_NOTHING;
    return v->attempt_open ? RECONCILE_REVOKE : RECONCILE_CANCEL_LOST;
}

enum reconcile_verdict reconcile_decide(const struct reconcile_view *v)
{
    if (v->missing)
        return not_ours(v);
    if (v->state == CTR_QUEUED)
        return queued(v);
    if (v->state == CTR_LOCKED || v->state == CTR_RUNNING) {
        if (!v->ours)
            return not_ours(v);
        return v->state == CTR_LOCKED ? locked(v) : running(v);
    }
    return final(v);
}
