/* SPDX-License-Identifier: Apache-2.0 */

/* The table of who is ended, released, cancelled, and the release rule. */

#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/base/mem.h"
#include "core/dispatch/reconcile.h"
#include "core/model/ctr.h"

static const char *label(enum reconcile_verdict v)
{
    static const char *const labels[] = {
#define X(name) #name,
        RECONCILE_VERDICTS(X)
#undef X
    };

    return labels[v];
}

#define Q CTR_QUEUED
#define L CTR_LOCKED
#define R CTR_RUNNING
#define C CTR_COMPLETE

/* Columns are flags of the view, written as letters:
 *   o ours, w wanted, a alive, l lost, e exited, g gone, f fresh,
 *   t attempt open, T token ready, k all known, m missing, i impossible,
 *   n not admitted, b burnt, d overdue */
static const struct {
    enum ctr_state state;
    const char *flags;
    enum reconcile_verdict want;
} rows[] = {
    {Q, "wf", RECONCILE_NOTHING},
    {Q, "f", RECONCILE_DROP},
    {Q, "wfn", RECONCILE_READ_MOUNTS},
    {Q, "wfi", RECONCILE_LOCK},
    {Q, "wfa", RECONCILE_KILL},
    {Q, "fl", RECONCILE_FORGET_LOST},
    {Q, "wfm", RECONCILE_DROP},

    {L, "owf", RECONCILE_PREPARE},
    {L, "owfT", RECONCILE_NOTHING},
    {L, "owft", RECONCILE_PREPARE},  /* a new attempt revokes the old one */
    {L, "owa", RECONCILE_NOTHING},
    {L, "oat", RECONCILE_KILL},
    {L, "oft", RECONCILE_REVOKE},    /* priority 0: first revoke, */
    {L, "of", RECONCILE_UNLOCK},     /* then unlock */
    {L, "owe", RECONCILE_READ},
    {L, "owef", RECONCILE_UNLOCK},
    {L, "owlft", RECONCILE_REVOKE},
    {L, "owl", RECONCILE_READ},      /* revoked, but the record is older */
    {L, "owlf", RECONCILE_FORGET_LOST},
    {L, "owg", RECONCILE_READ},
    {L, "owgf", RECONCILE_PREPARE},  /* the lock is kept */
    {L, "owbft", RECONCILE_REVOKE},
    {L, "owbf", RECONCILE_UNLOCK},
    {L, "owfi", RECONCILE_CANCEL_IMPOSSIBLE},
    {L, "owfia", RECONCILE_NOTHING}, /* it runs: somebody changed the types */
    {L, "owfn", RECONCILE_READ_MOUNTS},
    {L, "owan", RECONCILE_READ_MOUNTS},
    {L, "oan", RECONCILE_KILL},
    {L, "wf", RECONCILE_DROP},       /* somebody else's */
    {L, "wfa", RECONCILE_KILL},
    {L, "owfm", RECONCILE_DROP},

    {R, "owa", RECONCILE_NOTHING},
    {R, "oa", RECONCILE_KILL},
    {R, "owan", RECONCILE_READ_MOUNTS}, /* after a restart */
    {R, "owe", RECONCILE_READ},
    {R, "owef", RECONCILE_CANCEL_LOST}, /* an exit needs no revoke */
    {R, "owl", RECONCILE_READ},
    {R, "owlft", RECONCILE_REVOKE},
    {R, "owlf", RECONCILE_LOOK},     /* until the runs end on evidence */
    {R, "owgft", RECONCILE_REVOKE},
    {R, "owgf", RECONCILE_CANCEL_LOST},
    {R, "owft", RECONCILE_NOTHING},  /* somebody has not been looked at */
    {R, "owftk", RECONCILE_REVOKE},
    {R, "owfk", RECONCILE_CANCEL_LOST},
    {R, "owk", RECONCILE_READ},
    {R, "wfk", RECONCILE_DROP},
    {R, "owfma", RECONCILE_KILL},

    {C, "owf", RECONCILE_DROP},
    {C, "owfa", RECONCILE_NOTHING},
    {C, "owfad", RECONCILE_KILL},
    {C, "owfl", RECONCILE_FORGET_LOST},
    {CTR_CANCELLED, "f", RECONCILE_DROP},
    {CTR_CANCELLED, "fa", RECONCILE_NOTHING},
};

static struct reconcile_view view(enum ctr_state s, const char *flags)
{
    return (struct reconcile_view) {
        .state = s,
        .ours = strchr(flags, 'o'),
        .wanted = strchr(flags, 'w'),
        .alive = strchr(flags, 'a') != NULL,
        .lost = strchr(flags, 'l') != NULL,
        .exited = strchr(flags, 'e'),
        .gone = strchr(flags, 'g'),
        .fresh = strchr(flags, 'f'),
        .attempt_open = strchr(flags, 't'),
        .has_token = strchr(flags, 'T'),
        .all_known = strchr(flags, 'k'),
        .missing = strchr(flags, 'm'),
        .impossible = strchr(flags, 'i'),
        .admitted = !strchr(flags, 'n'),
        .burnt = strchr(flags, 'b'),
        .overdue = strchr(flags, 'd'),
    };
}

static void the_table(void **state)
{
    (void) state;
    for (size_t i = 0; i < MEM_COUNT(rows); i++) {
        struct reconcile_view v = view(rows[i].state, rows[i].flags);
        enum reconcile_verdict got = reconcile_decide(&v);

        if (got != rows[i].want)
            fail_msg("%s %s: %s instead of %s", ctr_state_name(v.state),
                     rows[i].flags, label(got), label(rows[i].want));
    }
}

/* Over every combination: what may never be done, whatever else is true. */
static void never(void **state)
{
    static const char all[] = "owalegftTkminbd";
    char flags[sizeof all];

    (void) state;
    for (unsigned bits = 0; bits < 1u << (sizeof all - 1); bits++) {
        size_t n = 0;

        for (size_t i = 0; i < sizeof all - 1; i++)
            if (bits & 1u << i)
                flags[n++] = all[i];
        flags[n] = '\0';
        for (int s = 0; s < CTR_STATE_COUNT; s++) {
            struct reconcile_view v = view(s, flags);
            enum reconcile_verdict got = reconcile_decide(&v);
            bool releases = got == RECONCILE_UNLOCK ||
                            got == RECONCILE_CANCEL_LOST ||
                            got == RECONCILE_CANCEL_IMPOSSIBLE;

            /* nothing is released while a process may live, */
            assert_false(releases && (v.alive > 0 || v.lost > 0));
            /* nor what is not ours, */
            assert_false(releases && !v.ours);
            /* nor on an old record (an impossible one cannot change), */
            assert_false(releases && !v.fresh && s == CTR_RUNNING);
            /* nor, Running, without an exit or a revoke; */
            assert_false(got == RECONCILE_CANCEL_LOST && !v.exited &&
                         v.attempt_open);
            /* an attempt is made only of what has no process; */
            assert_false(got == RECONCILE_PREPARE &&
                         (v.alive > 0 || v.lost > 0 || s != CTR_LOCKED));
            /* nothing healthy that is wanted and ours is killed; */
            assert_false(got == RECONCILE_KILL && v.ours && v.wanted &&
                         !v.missing && (s == CTR_LOCKED || s == CTR_RUNNING));
            /* and nothing is dropped while it has a process. */
            assert_false(got == RECONCILE_DROP &&
                         (v.alive > 0 || v.lost > 0));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table),
        cmocka_unit_test(never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
