/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/logger: both formats, context, escaping, hidden secrets. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/jsn.h"
#include "core/base/logger.h"
#include "core/base/mem.h"

static char last[1 << 16];
static int lines;

static void keep(void *arg, const char *line)
{
    (void) arg;
    lines++;
    snprintf(last, sizeof last, "%s", line);
}

static struct logger *text_logger(void)
{
    lines = 0;
    last[0] = '\0';
    return logger_create_sink(keep, NULL, LOG_TEXT, LOG_INFO);
}

/* Behind the time. */
static const char *body(void)
{
    assert_true(strlen(last) > 31);
    assert_int_equal(last[29], 'Z');
    return last + 31;
}

static void test_levels(void **state)
{
    (void) state;
    struct logger *lg = text_logger();
    assert_false(logger_enabled(lg, LOG_DEBUG));
    assert_true(logger_enabled(lg, LOG_ERROR));
    assert_false(logger_enabled(NULL, LOG_ERROR));
    log_event(lg, LOG_DEBUG, "not shown", NULL);
    assert_int_equal(lines, 0);
    log_event(NULL, LOG_ERROR, "nowhere", "key", "value", NULL);
    log_printf(NULL, LOG_ERROR, "nowhere");
    log_failure(NULL, LOG_ERROR, NULL, "nowhere", NULL);
    assert_int_equal(log_level_of("debug"), LOG_DEBUG);
    assert_int_equal(log_level_of("warn"), LOG_WARN);
    assert_int_equal(log_level_of("warning"), LOG_WARN);
    assert_int_equal(log_level_of("loud"), -1);
    logger_destroy(lg);
    logger_destroy(NULL);
}

static void test_text(void **state)
{
    (void) state;
    struct logger *lg = text_logger();
    log_event(lg, LOG_INFO, "container locked", "UUID", "zzzzz", "Gone",
              (const char *) NULL, "Reason", "two words", "Empty", "", NULL);
    assert_string_equal(body(), "INFO container locked UUID=zzzzz "
                                "Reason=\"two words\" Empty=\"\"");
    log_event(lg, LOG_WARN, "line\nbreak", "v", "a\x1b[1m\"q\"\\", NULL);
    assert_string_equal(body(),
                        "WARN line\\nbreak v=\"a\\x1b[1m\\\"q\\\"\\\\\"");
    log_printf(lg, LOG_ERROR, "%d of %s", 3, "five");
    assert_string_equal(body(), "ERROR 3 of five");
    logger_destroy(lg);
}

static void test_context(void **state)
{
    (void) state;
    struct logger *lg = text_logger();
    struct logger *child = logger_child(lg, "ClusterID", "zzzzz");
    struct logger *grandchild = logger_child(child, "Instance", "i-1");
    log_event(grandchild, LOG_INFO, "m", "State", "idle", NULL);
    assert_string_equal(body(), "INFO m ClusterID=zzzzz Instance=i-1 "
                                "State=idle");
    logger_destroy(grandchild);
    logger_destroy(child);
    logger_destroy(lg);
    struct logger *silent = logger_child(NULL, "k", "v");
    assert_false(logger_enabled(silent, LOG_ERROR));
    logger_destroy(silent);
}

static void test_failure(void **state)
{
    (void) state;
    struct logger *lg = text_logger();
    struct err err;
    err_set_errno(&err, 2, "open /x");
    log_failure(lg, LOG_ERROR, &err, "cannot start", "Path", "/x", NULL);
    assert_string_equal(body(),
                        "ERROR cannot start Path=/x "
                        "error=\"open /x: No such file or directory\" "
                        "ErrorClass=not-found ErrorCode=ENOENT");
    logger_destroy(lg);
}

static void test_json(void **state)
{
    (void) state;
    struct logger *lg = logger_create_sink(keep, NULL, LOG_JSON, LOG_DEBUG);
    struct logger *child = logger_child(lg, "ClusterID", "zzzzz");
    struct err err;
    const char *s = NULL;
    int64_t pid = 0;
    log_event(child, LOG_WARN, "a \"b\"\n\xff", "k", "caf\xC3\xA9", NULL);
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(last, strlen(last), &err);
    assert_non_null(j);
    assert_ok(jsn_str(j, "level", &s, &err), &err);
    assert_string_equal(s, "warning");
    assert_ok(jsn_str(j, "msg", &s, &err), &err);
    assert_string_equal(s, "a \"b\"\n\xEF\xBF\xBD");
    assert_ok(jsn_str(j, "k", &s, &err), &err);
    assert_string_equal(s, "caf\xC3\xA9");
    assert_ok(jsn_str(j, "ClusterID", &s, &err), &err);
    assert_ok(jsn_str(j, "time", &s, &err), &err);
    assert_ok(jsn_i64(j, "PID", &pid, &err), &err);
    assert_int_equal(pid, getpid());
    logger_destroy(child);
    logger_destroy(lg);
}

static void test_secrets(void **state)
{
    (void) state;
    struct logger *lg = text_logger();
    char long_value[4000];
    logger_hide(lg, "hunter2hunter2");
    logger_hide(lg, "quo\"ted=secret");
    logger_hide(lg, "short"); /* ignored: too likely to be a plain word */
    logger_hide(lg, NULL);
    logger_hide(NULL, "whatever-it-is");
    log_event(lg, LOG_INFO, "token hunter2hunter2!", "a",
              "xhunter2hunter2y-hunter2hunter2", "b", "quo\"ted=secret", "c",
              "short", NULL);
    assert_string_equal(body(), "INFO token [secret]! a=x[secret]y-[secret] "
                                "b=[secret] c=short");
    /* A secret at the place where a value is cut leaves no part behind. */
    for (size_t lead = 2030; lead < 2060; lead++) {
        memset(long_value, 'x', sizeof long_value);
        memcpy(long_value + lead, "hunter2hunter2", 14);
        long_value[sizeof long_value - 1] = '\0';
        log_event(lg, LOG_INFO, "m", "v", long_value, NULL);
        assert_null(strstr(last, "hunt"));
    }
    struct logger *child = logger_child(lg, "ctx", "hunter2hunter2");
    log_printf(child, LOG_INFO, "hunter2hunter2");
    assert_string_equal(body(), "INFO [secret] ctx=[secret]");
    logger_destroy(child);
    logger_destroy(lg);
}

static void test_cut(void **state)
{
    (void) state;
    struct logger *lg = text_logger();
    char value[5000];
    for (size_t i = 0; i + 2 < sizeof value; i += 2)
        memcpy(value + i, "\xC3\xA9", 3);
    log_event(lg, LOG_INFO, "m", "v", value, NULL);
    const char *v = strstr(last, " v=");
    assert_non_null(v);
    assert_true(strlen(v + 3) <= 2048);
    assert_true(strlen(v + 3) > 2040);
    assert_string_equal(v + strlen(v) - 5, "\xC3\xA9...");
    assert_null(strstr(v, "\\x")); /* no character was cut in two */
    logger_destroy(lg);
}

enum { THREADS = 4, PER_THREAD = 200 };

static void *writer(void *arg)
{
    for (int i = 0; i < PER_THREAD; i++)
        log_event(arg, LOG_INFO, "0123456789012345678901234567890123456789",
                  "k", "value", NULL);
    return NULL;
}

/* Lines of several threads never mix. */
static void test_threads(void **state)
{
    (void) state;
    char path[] = "/tmp/test_logger.XXXXXX";
    CLEANUP(mem_close) int fd = mkostemp(path, O_CLOEXEC | O_APPEND);
    assert_true(fd >= 0);
    unlink(path);
    struct logger *lg = logger_create(fd, LOG_TEXT, LOG_INFO);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, writer, lg), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    logger_destroy(lg);
    FILE *f = fdopen(dup(fd), "r");
    char line[512];
    int n = 0;
    assert_non_null(f);
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        assert_string_equal(line + 31,
                            "INFO 0123456789012345678901234567890123456789 "
                            "k=value\n");
        n++;
    }
    fclose(f);
    assert_int_equal(n, THREADS * PER_THREAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),  cmocka_unit_test(test_text),
        cmocka_unit_test(test_context), cmocka_unit_test(test_failure),
        cmocka_unit_test(test_json),    cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
