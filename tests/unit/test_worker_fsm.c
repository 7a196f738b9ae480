/* SPDX-License-Identifier: Apache-2.0 */

/* The state table of instances, row by row. */

#include "tests/unit/unit.h"

#include "core/base/mem.h"
#include "core/dispatch/worker_fsm.h"

static enum worker_state next(enum worker_state s, enum worker_event ev,
                              bool hold, bool busy)
{
    struct worker_view v = {.state = s, .hold = hold, .busy = busy};

    return worker_fsm_next(&v, ev);
}

static void comes_into_service(void **state)
{
    (void) state;
    for (int s = WORKER_UNKNOWN; s <= WORKER_BOOTING; s++) {
        assert_int_equal(next(s, WORKER_EV_IN_SERVICE, false, false),
                         WORKER_IDLE);
        assert_int_equal(next(s, WORKER_EV_IN_SERVICE, true, true),
                         WORKER_RUNNING);
        assert_int_equal(next(s, WORKER_EV_BUSY, false, true), s);
    }
    assert_int_equal(next(WORKER_RUNNING, WORKER_EV_IN_SERVICE, false, true),
                     WORKER_RUNNING);
    assert_int_equal(next(WORKER_IDLE, WORKER_EV_BUSY, false, true),
                     WORKER_RUNNING);
    assert_int_equal(next(WORKER_RUNNING, WORKER_EV_EMPTY, false, false),
                     WORKER_IDLE);
}

/* A failing boot probe or a quota never ends something that works. */
static void busy_instances_survive(void **state)
{
    (void) state;
    assert_int_equal(next(WORKER_UNKNOWN, WORKER_EV_BOOT_TIMEOUT, false, true),
                     WORKER_UNKNOWN);
    assert_int_equal(next(WORKER_UNKNOWN, WORKER_EV_BOOT_TIMEOUT, false,
                          false), WORKER_SHUTDOWN);
    assert_int_equal(next(WORKER_RUNNING, WORKER_EV_UNNEEDED, false, true),
                     WORKER_RUNNING);
    assert_int_equal(next(WORKER_RUNNING, WORKER_EV_IDLE_TIMEOUT, false, true),
                     WORKER_RUNNING);
    assert_int_equal(next(WORKER_IDLE, WORKER_EV_UNNEEDED, false, true),
                     WORKER_IDLE);
    assert_int_equal(next(WORKER_IDLE, WORKER_EV_UNNEEDED, false, false),
                     WORKER_SHUTDOWN);
}

static void hold_suppresses_what_is_automatic(void **state)
{
    static const enum worker_event automatic[] = {
        WORKER_EV_IDLE_TIMEOUT, WORKER_EV_BOOT_TIMEOUT, WORKER_EV_SILENT,
        WORKER_EV_UNNEEDED};
    static const enum worker_event ordered[] = {
        WORKER_EV_DRAINED, WORKER_EV_FAILED, WORKER_EV_KILL};

    (void) state;
    for (int s = WORKER_UNKNOWN; s <= WORKER_RUNNING; s++) {
        for (size_t i = 0; i < MEM_COUNT(automatic); i++)
            assert_int_equal(next(s, automatic[i], true, false), s);
        for (size_t i = 0; i < MEM_COUNT(ordered); i++)
            assert_int_equal(next(s, ordered[i], true, true),
                             WORKER_SHUTDOWN);
    }
}

static void silence_ends_all_but_booting(void **state)
{
    (void) state;
    for (int s = WORKER_UNKNOWN; s <= WORKER_RUNNING; s++)
        assert_int_equal(next(s, WORKER_EV_SILENT, false, true),
                         s == WORKER_BOOTING ? s : WORKER_SHUTDOWN);
}

static void only_absence_ends_shutdown(void **state)
{
    (void) state;
    for (int ev = 0; ev < WORKER_EVENT_COUNT; ev++) {
        assert_int_equal(next(WORKER_SHUTDOWN, ev, false, false),
                         ev == WORKER_EV_ABSENT ? WORKER_GONE
                                                : WORKER_SHUTDOWN);
        assert_int_equal(next(WORKER_GONE, ev, false, false), WORKER_GONE);
    }
    for (int s = WORKER_UNKNOWN; s <= WORKER_SHUTDOWN; s++)
        assert_int_equal(next(s, WORKER_EV_ABSENT, true, true), WORKER_GONE);
}

static void labels(void **state)
{
    (void) state;
    assert_string_equal(worker_state_label(WORKER_SHUTDOWN), "shutdown");
    assert_string_equal(worker_state_label(WORKER_STATE_COUNT), "?");
    assert_string_equal(worker_event_label(WORKER_EV_SILENT), "SILENT");
    assert_string_equal(worker_event_label(WORKER_EVENT_COUNT), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_into_service),
        cmocka_unit_test(busy_instances_survive),
        cmocka_unit_test(hold_suppresses_what_is_automatic),
        cmocka_unit_test(silence_ends_all_but_booting),
        cmocka_unit_test(only_absence_ends_shutdown),
        cmocka_unit_test(labels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
