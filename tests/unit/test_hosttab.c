/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The host table as a driver sees it: handles live as long as their call,
 * fail() keeps what it is told, sleeping ends in time, JSON views never
 * crash, and programs are run to whatever end they come to.
 */

#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cdc/driver.h>

#include "core/base/clock.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/plugin/call.h"
#include "core/plugin/hosttab.h"
#include "core/plugin/trust.h"

#undef fail /* cmocka's; the host table has one too */

static const struct cdc_host *h;
static const struct call_origin origin = {NULL, "drv", "backend"};

static struct call *begin(enum call_kind kind, int ms, struct cdc_op **op)
{
    struct call *c = call_create(&origin, kind,
                                 clock_mono_us() + ms * INT64_C(1000), NULL);

    assert_non_null(c);
    *op = call_begin(c);
    assert_non_null(*op);
    return c;
}

static void end(struct call *c)
{
    if (c->handle)
        call_end(c, 0);
    call_unref(c);
}

/* --- handles ----------------------------------------------------------------- */

static void test_handles(void **state)
{
    struct cdc_instance i = {.size = sizeof i, .id = "i", .price = 1};
    struct cdc_op *op, *other;
    struct call *c = begin(CALL_LIST, 5000, &op), *d;

    (void)state;
    assert_int_equal(h->cancelled(op), 0);
    assert_in_range(h->deadline_ms(op), 1, 5000);
    assert_int_equal(h->emit_instance(op, &i), 0);
    call_end(c, 0);
    assert_int_equal(c->instances.n, 1);
    /* dead: nothing arrives, nothing crashes */
    assert_int_equal(h->emit_instance(op, &i), -1);
    assert_int_equal(h->cancelled(op), 1);
    assert_int_equal(h->deadline_ms(op), 0);
    assert_int_equal(h->sleep_ms(op, 5000), -1);
    assert_int_equal(h->fail(op, 1, 0, 0, NULL, NULL, "late"), -1);
    assert_null(h->json_parse(op, "1", 1));
    h->log(op, CDC_LOG_INFO, "late %d", 1);
    assert_int_equal(c->instances.n, 1);
    assert_int_equal(c->outcome, OP_DONE);
    /* and stays dead while its slot is in use again, many times */
    for (int n = 0; n < 3 * CALLS_MAX; n++) {
        d = begin(CALL_LIST, 5000, &other);
        assert_ptr_not_equal(op, other);
        assert_int_equal(h->emit_instance(op, &i), -1);
        assert_int_equal(d->instances.n, 0);
        end(d);
    }
    assert_int_equal(h->emit_instance(NULL, &i), -1);
    assert_int_equal(h->emit_instance((struct cdc_op *)(uintptr_t)12345, &i),
                     -1);
    end(c);
}

static void test_too_many(void **state)
{
    static struct call *calls[CALLS_MAX];
    struct cdc_op *op;
    struct call *c;

    (void)state;
    for (size_t i = 0; i < 900; i++)
        calls[i] = begin(CALL_LIST, 1000, &op);
    for (size_t i = 0; i < 900; i++)
        end(calls[i]);
    c = begin(CALL_LIST, 1000, &op);
    end(c);
}

static void test_misplaced(void **state)
{
    struct cdc_instance i = {.size = sizeof i, .id = "i", .price = 1};
    struct cdc_op *op;
    struct call *c = begin(CALL_DESTROY, 5000, &op);

    (void)state;
    assert_int_equal(h->emit_instance(op, &i), -1);
    assert_int_equal(h->set_caps(op, 1), -1);
    call_end(c, 0);
    assert_int_equal(c->outcome, OP_UNKNOWN);
    assert_non_null(strstr(c->err.text, "an instance in destroy"));
    call_unref(c);
    c = begin(CALL_DESCRIBE, 5000, &op);
    assert_int_equal(h->emit_fact(op, "mode", "x"), 0);
    assert_int_equal(h->emit_fact(op, "bad", "a\nb"), -1);
    call_end(c, 0);
    assert_string_equal(c->facts.data, "mode: x\n");
    assert_int_equal(c->outcome, OP_REFUSED);
    call_unref(c);
}

static void test_fail(void **state)
{
    char text[2000];
    struct cdc_op *op;
    struct call *c = begin(CALL_CREATE, 5000, &op);

    (void)state;
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    h->fail(op, CDC_CLASS_QUOTA, CDC_SCOPE_TYPE, -5, text, text, "%s", text);
    assert_int_equal(c->err.retry_ms, 0);
    assert_int_equal(strlen(c->err.code), 63);
    h->fail(op, CDC_CLASS_RATE_LIMITED, CDC_SCOPE_ZONE, 9, "Thr", NULL,
            "two\nlines");
    call_end(c, -1);
    assert_int_equal(c->outcome, OP_REFUSED);
    assert_int_equal(c->err.class, ERR_RATE_LIMITED);
    assert_int_equal(c->err.scope, ERR_SCOPE_ZONE);
    assert_int_equal(c->err.retry_ms, 9);
    assert_string_equal(c->err.code, "Thr");
    assert_string_equal(c->err.request_id, "");
    assert_string_equal(c->err.text, "two lines");
    call_unref(c);
}

/* --- time and log ------------------------------------------------------------ */

static void test_sleep(void **state)
{
    int64_t begun = clock_mono_us();
    struct cdc_op *op;
    struct call *c = begin(CALL_LIST, 400, &op);

    (void)state;
    assert_int_equal(h->sleep_ms(op, 10), 0);
    assert_true(clock_mono_us() - begun >= 10000);
    assert_int_equal(h->sleep_ms(op, -3), 0);
    assert_int_equal(h->sleep_ms(op, INT64_MAX), -1); /* the deadline */
    assert_in_range(clock_mono_us() - begun, 399000, 9000000);
    end(c);
    c = begin(CALL_LIST, 60000, &op);
    call_cancel(c);
    begun = clock_mono_us();
    assert_int_equal(h->sleep_ms(op, 60000), -1);
    assert_true(clock_mono_us() - begun < 5000000);
    assert_int_equal(h->cancelled(op), 1);
    end(c);
    assert_in_range(h->now_ms(), INT64_C(1700000000000), INT64_MAX / 2);
    assert_true(h->mono_ms() > 0);
}

static char line[4096];

static void sink(void *arg, const char *text)
{
    (void)arg;
    snprintf(line, sizeof line, "%s", text);
}

static void test_log(void **state)
{
    struct logger *lg = logger_create_sink(sink, NULL, LOG_TEXT, LOG_DEBUG);
    const struct call_origin o = {lg, "drv", "east"};
    struct call *c = call_create(&o, CALL_LIST, INT64_MAX / 2, NULL);
    struct cdc_op *op = call_begin(c);

    (void)state;
    h->log(op, CDC_LOG_WARNING, "page %d", 7);
    assert_non_null(strstr(line, "page 7"));
    assert_non_null(strstr(line, "Backend=east"));
    assert_non_null(strstr(line, "Driver=drv"));
    assert_non_null(strstr(line, "Call=list"));
    line[0] = '\0';
    h->log(NULL, 99, "nowhere");
    assert_string_equal(line, "");
    hosttab_set_log(lg);
    h->log(NULL, 99, "somewhere");
    hosttab_set_log(NULL);
    assert_non_null(strstr(line, "somewhere"));
    end(c);
    logger_destroy(lg);
}

/* --- JSON --------------------------------------------------------------------- */

static void test_json(void **state)
{
    static const char text[] =
        "{\"s\":\"x\",\"i\":7,\"d\":1.5,\"b\":true,\"n\":null,"
        "\"a\":[1,\"two\"],\"o\":{\"k\":3}}";
    const struct cdc_json *j, *a;
    struct cdc_op *op;
    struct call *c = begin(CALL_LIST, 5000, &op);
    int64_t n = -1;
    double f = -1;
    int32_t b = -1;

    (void)state;
    j = h->json_parse(op, text, sizeof text - 1);
    assert_non_null(j);
    assert_int_equal(h->json_type(j), CDC_JSON_OBJECT);
    assert_int_equal(h->json_count(j), 7);
    assert_string_equal(h->json_str(h->json_get(j, "s")), "x");
    assert_int_equal(h->json_i64(h->json_get(j, "i"), &n), 0);
    assert_int_equal(n, 7);
    assert_int_equal(h->json_i64(h->json_get(j, "d"), &n), -1);
    assert_int_equal(n, 7);
    assert_int_equal(h->json_f64(h->json_get(j, "i"), &f), 0);
    assert_true(f == 7.0);
    assert_int_equal(h->json_bool(h->json_get(j, "b"), &b), 0);
    assert_int_equal(b, 1);
    assert_null(h->json_get(j, "n"));
    assert_null(h->json_get(j, "absent"));
    assert_null(h->json_get(j, NULL));
    a = h->json_get(j, "a");
    assert_string_equal(h->json_str(h->json_at(a, 1)), "two");
    assert_null(h->json_at(a, 2));
    assert_null(h->json_str(h->json_at(a, 0)));
    assert_string_equal(h->json_key(j, 5), "a");
    assert_ptr_equal(h->json_at(j, 5), a);
    assert_null(h->json_key(j, 7));
    assert_null(h->json_key(a, 0));
    end(c);
}

/* Every accessor takes null, and every value of another type. */
static void test_json_null(void **state)
{
    int64_t n = 5;
    double f = 5;
    int32_t b = 5;

    (void)state;
    assert_int_equal(h->json_type(NULL), CDC_JSON_NULL);
    assert_int_equal(h->json_count(NULL), 0);
    assert_null(h->json_get(NULL, "x"));
    assert_null(h->json_at(NULL, 0));
    assert_null(h->json_key(NULL, 0));
    assert_null(h->json_str(NULL));
    assert_int_equal(h->json_i64(NULL, &n), -1);
    assert_int_equal(h->json_f64(NULL, &f), -1);
    assert_int_equal(h->json_bool(NULL, &b), -1);
    assert_true(n == 5 && f == 5 && b == 5);
}

static void test_json_malformed(void **state)
{
    struct cdc_op *op;
    struct call *c = begin(CALL_LIST, 5000, &op);

    (void)state;
    assert_null(h->json_parse(op, "{]", 2));
    assert_null(h->json_parse(op, NULL, 2));
    assert_null(h->json_parse(op, "1", UINT64_MAX));
    call_end(c, -1);
    assert_int_equal(c->outcome, OP_REFUSED);
    assert_int_equal(c->err.class, ERR_INTERNAL);
    call_unref(c);
}

/* --- programs ------------------------------------------------------------------- */

struct run {
    struct call *c;
    struct cdc_process_result r;
    int32_t rc;
};

static struct run run_in(int ms, const char *script, const char *input,
                         size_t input_len, uint32_t max)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    const struct cdc_process p = {
        .size = sizeof p, .max_output = max, .argv = argv, .input = input,
        .input_len = input_len,
    };
    struct run run = {.r = {.size = sizeof run.r}};
    struct cdc_op *op;

    run.c = begin(CALL_LIST, ms, &op);
    run.rc = h->run_process(op, &p, &run.r);
    return run;
}

static void test_process(void **state)
{
    struct run run = run_in(20000, "cat; echo err >&2; exit 3", "input", 5, 0);

    (void)state;
    assert_int_equal(run.rc, 0);
    assert_int_equal(run.r.exit_code, 3);
    assert_int_equal(run.r.term_signal, 0);
    assert_string_equal(run.r.out, "input");
    assert_int_equal(run.r.out_len, 5);
    assert_string_equal(run.r.err, "err\n");
    assert_int_equal(run.r.truncated, 0);
    end(run.c);
    run = run_in(20000, "kill -9 $$", NULL, 0, 0);
    assert_int_equal(run.r.exit_code, -1);
    assert_int_equal(run.r.term_signal, SIGKILL);
    end(run.c);
    run = run_in(20000, "env; ls /proc/self/fd | wc -l", NULL, 0, 0);
    assert_non_null(strstr(run.r.out, "PATH=/usr/local/sbin:"));
    assert_null(strstr(run.r.out, "HOME="));
    assert_non_null(strstr(run.r.out, "\n4\n")); /* 0, 1, 2, the folder */
    end(run.c);
}

static void test_process_large(void **state)
{
    enum { LARGE = 300000 };
    char *input = mem_zalloc(LARGE);
    struct run run;

    (void)state;
    memset(input, 'i', LARGE);
    run = run_in(20000, "cat", input, LARGE, 0);
    assert_int_equal(run.r.out_len, LARGE);
    assert_memory_equal(run.r.out, input, LARGE);
    end(run.c);
    run = run_in(20000, "head -c 100000 /dev/zero; echo end >&2", NULL, 0,
                 1000);
    assert_int_equal(run.rc, 0);
    assert_int_equal(run.r.out_len, 1000);
    assert_int_equal(run.r.truncated, 1);
    assert_string_equal(run.r.err, "end\n");
    end(run.c);
    /* a program that does not read what it is sent */
    run = run_in(20000, "exec <&-; echo done", input, LARGE, 0);
    assert_int_equal(run.rc, 0);
    assert_string_equal(run.r.out, "done\n");
    end(run.c);
    free(input);
}

static void test_process_daemon(void **state)
{
    int64_t begun = clock_mono_us();
    struct run run = run_in(20000, "sleep 3 & echo up", NULL, 0, 0);

    (void)state;
    assert_int_equal(run.rc, 0);
    assert_string_equal(run.r.out, "up\n");
    assert_true(clock_mono_us() - begun < 2500000);
    end(run.c);
}

static void test_process_deadline(void **state)
{
    char folder[] = "test_hosttab.XXXXXX";
    CLEANUP(mem_free) char *script = NULL;
    struct run run;

    (void)state;
    assert_non_null(mkdtemp(folder));
    /* The grandchild would make a file later: it is killed with its group. */
    script = mem_printf("(sleep 0.5; touch %s/late) & sleep 60", folder);
    run = run_in(100, script, NULL, 0, 0);
    assert_int_equal(run.rc, -1);
    call_end(run.c, -1);
    assert_int_equal(run.c->err.class, ERR_TRANSIENT); /* list: no effect */
    assert_non_null(strstr(run.c->err.text, "its deadline"));
    call_unref(run.c);
    usleep(700000);
    assert_int_equal(rmdir(folder), 0);
}

static void test_process_refused(void **state)
{
    static const char *const relative[] = {"sh", NULL};
    static const char *const absent[] = {"/bin/no-such-program", NULL};
    struct cdc_process p = {.size = sizeof p, .argv = relative};
    struct cdc_process_result r = {.size = sizeof r};
    struct cdc_op *op;
    struct call *c = begin(CALL_LIST, 5000, &op);

    (void)state;
    assert_int_equal(h->run_process(op, &p, &r), -1);
    assert_int_equal(c->err.class, ERR_INTERNAL);
    p.argv = absent;
    assert_int_equal(h->run_process(op, &p, &r), -1);
    assert_int_equal(c->err.class, ERR_CONFIG);
    p.size = 3;
    assert_int_equal(h->run_process(op, &p, &r), -1);
    assert_int_equal(h->run_process(op, NULL, &r), -1);
    assert_int_equal(h->run_process(op, &p, NULL), -1);
    end(c);
}

static void test_process_trust(void **state)
{
    char path[] = "/tmp/test_hosttab.XXXXXX";
    const char *argv[] = {path, NULL};
    struct cdc_process p = {.size = sizeof p, .argv = argv};
    struct cdc_process_result r = {.size = sizeof r};
    struct cdc_op *op;
    struct call *c = begin(CALL_LIST, 5000, &op);
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
    fchmod(fd, 0777);
    close(fd);
    assert_int_equal(h->run_process(op, &p, &r), -1);
    assert_int_equal(c->err.class, ERR_CONFIG);
    assert_non_null(strstr(c->err.text, "can be written by others"));
    trust_set_build_tree(true);
    assert_int_equal(h->run_process(op, &p, &r), 0);
    trust_set_build_tree(false);
    unlink(path);
    end(c);
}

static void test_table(void **state)
{
    struct cdc_host old;

    (void)state;
    assert_int_equal(h->size, sizeof *h);
    assert_int_equal(h->abi_major, CDC_ABI_MAJOR);
    assert_true(CDC_HOST_HAS(h, run_process));
    old = *h;
    old.size = offsetof(struct cdc_host, run_process);
    assert_false(CDC_HOST_HAS(&old, run_process));
    assert_true(CDC_HOST_HAS(&old, json_parse));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_misplaced),
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_null),
        cmocka_unit_test(test_json_malformed),
        cmocka_unit_test(test_process),
        cmocka_unit_test(test_process_large),
        cmocka_unit_test(test_process_daemon),
        cmocka_unit_test(test_process_deadline),
        cmocka_unit_test(test_process_refused),
        cmocka_unit_test(test_process_trust),
        cmocka_unit_test(test_table),
    };

    signal(SIGPIPE, SIG_IGN);
    h = hosttab_get();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
