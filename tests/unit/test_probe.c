/* SPDX-License-Identifier: Apache-2.0 */

/* What instances say: good, strange, and somebody else's. */

#include "tests/unit/unit.h"

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/dispatch/probe.h"

#define A "zzzzz-dz642-00000000000000a"
#define B "zzzzz-dz642-00000000000000b"

static int list(const char *text, struct probe_list *l)
{
    return probe_parse_list(text, strlen(text), "zzzzz", l, NULL);
}

static void lists(void **state)
{
    struct probe_list l;

    (void) state;
    assert_int_equal(list(A "\n" B " stale\n", &l), 0);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.v[0].uuid, A);
    assert_false(l.v[0].stale);
    assert_string_equal(l.v[1].uuid, B);
    assert_true(l.v[1].stale);
    assert_false(l.broken);
    probe_list_fini(&l);
    assert_int_equal(list("", &l), 0);
    assert_int_equal(l.n, 0);
    probe_list_fini(&l);
    assert_int_equal(list("broken\n\n" A, &l), 0); /* no last newline */
    assert_true(l.broken);
    assert_int_equal(l.n, 1);
    probe_list_fini(&l);
}

/* Nothing but whole lines of our cluster is a presence. */
static void strange_lines_are_left_out(void **state)
{
    static const char text[] =
        "Welcome to this machine\n"
        "xxxxx-dz642-00000000000000a\n"
        A "x\n"
        A " gone\n"
        A "  stale\n"
        "zzzzz-4zz18-00000000000000a\n"
        "zzzzz-dz642-00000000000000A\n"
        " " A "\n"
        "broken!\n"
        A "\r\n";
    struct probe_list l;

    (void) state;
    assert_int_equal(list(text, &l), 0);
    assert_int_equal(l.n, 1);
    assert_false(l.broken);
    probe_list_fini(&l);
}

static void too_many_are_refused(void **state)
{
    struct probe_list l = {0};
    struct err err;
    struct buf b;

    (void) state;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < PROBE_RUNS_MAX; i++)
        buf_puts(&b, A "\n");
    assert_int_equal(probe_parse_list(b.data, b.len, "zzzzz", &l, &err), 0);
    assert_int_equal(l.n, PROBE_RUNS_MAX);
    probe_list_fini(&l);
    buf_puts(&b, A "\n");
    assert_int_equal(probe_parse_list(b.data, b.len, "zzzzz", &l, &err), -1);
    assert_int_equal(err.class, ERR_TOO_LARGE);
    assert_int_equal(l.n, 0);
    buf_fini(&b);
}

static int event(const char *line, struct probe_event *e)
{
    return probe_parse_event(line, strlen(line), "zzzzz", e, NULL);
}

static void events(void **state)
{
    struct probe_event e;

    (void) state;
    assert_int_equal(event("{\"event\":\"hello\",\"v\":1,\"boot\":\"b/7\"}",
                           &e), 0);
    assert_int_equal(e.kind, PROBE_HELLO);
    assert_string_equal(e.boot, "b/7");
    assert_int_equal(event("{\"event\":\"run\",\"uuid\":\"" A "\","
                           "\"attempt\":3,\"pid\":12}", &e), 0);
    assert_int_equal(e.kind, PROBE_RUN);
    assert_string_equal(e.uuid, A);
    assert_int_equal(e.attempt, 3);
    assert_int_equal(event("{\"event\":\"exit\",\"uuid\":\"" A "\"}", &e), 0);
    assert_int_equal(e.kind, PROBE_EXIT);
    assert_int_equal(e.attempt, 0);
    assert_int_equal(event("{\"event\":\"sync\"}", &e), 0);
    assert_int_equal(e.kind, PROBE_SYNC);
    assert_int_equal(event("{\"event\":\"beat\",\"x\":[1]}", &e), 0);
    assert_int_equal(e.kind, PROBE_BEAT);
    assert_int_equal(event("{\"event\":\"tomorrow\",\"uuid\":7}", &e), 0);
    assert_int_equal(e.kind, PROBE_OTHER);
    assert_int_equal(event("{\"event\":\"exit\",\"uuid\":"
                           "\"xxxxx-dz642-00000000000000a\"}", &e), 0);
    assert_int_equal(e.kind, PROBE_OTHER); /* another cluster's */
}

static void bad_events_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "hello", "[]", "{}", "{\"event\":1}", "{\"event\":\"run\"}",
        "{\"event\":\"exit\",\"uuid\":\"" A "x\"}",
        "{\"event\":\"exit\",\"uuid\":\"" A "\",\"attempt\":\"1\"}",
        "{\"event\":\"exit\",\"uuid\":\"" A "\"",
        "{\"event\":\"sync\"} {\"event\":\"sync\"}",
        "{\"event\":\"hello\",\"boot\":7}",
    };
    struct probe_event e = {.kind = PROBE_BEAT};

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(bad); i++)
        assert_int_equal(event(bad[i], &e), -1);
    assert_int_equal(e.kind, PROBE_BEAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(strange_lines_are_left_out),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(events),
        cmocka_unit_test(bad_events_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
