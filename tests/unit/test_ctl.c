/* SPDX-License-Identifier: Apache-2.0 */
/* crunchctl's parts that need no server: credentials, tables, requests. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/ctl/cred.h"
#include "core/ctl/ctl.h"
#include "core/ctl/record.h"
#include "core/ctl/spec.h"
#include "core/ctl/table.h"
#include "core/ctl/verbs.h"

static char home[] = "/tmp/cdc-test-ctl-XXXXXX";

/* What main.c has and a test of the parts does not need. */
int ctl_fail(int code, const char *fmt, ...)
{
    (void) fmt;
    return code;
}

const char *ctl_opt(const struct ctl *ctl, const char *name)
{
    return ctl_opt_at(ctl, name, 0);
}

bool ctl_has(const struct ctl *ctl, const char *name)
{
    return ctl_opt(ctl, name) != NULL;
}

const char *ctl_opt_at(const struct ctl *ctl, const char *name, size_t i)
{
    for (size_t j = 0; j < ctl->n_opts; j++)
        if (!strcmp(ctl->opts[j].name, name) && i-- == 0)
            return ctl->opts[j].value;
    return NULL;
}

int ctl_opt_i64(const struct ctl *ctl, const char *name, int64_t def,
                int64_t min, int64_t max, int64_t *ret)
{
    const char *v = ctl_opt(ctl, name);

    (void) min;
    (void) max;
    *ret = v ? atoll(v) : def;
    return 0;
}

int ctl_opt_size(const struct ctl *ctl, const char *name, int64_t def,
                 int64_t *ret)
{
    const char *v = ctl_opt(ctl, name);

    *ret = def;
    return v ? text_parse_size(v, ret, NULL) : 0;
}

int ctl_opt_duration(const struct ctl *ctl, const char *name, int64_t def,
                     int64_t *ret_ms)
{
    const char *v = ctl_opt(ctl, name);

    *ret_ms = def;
    return v ? text_parse_duration(v, ret_ms, NULL) : 0;
}

/* --- credentials ----------------------------------------------------------------- */

static void clear_env(void)
{
    unsetenv("CDC_API_URL");
    unsetenv("ARVADOS_API_HOST");
    unsetenv("ARVADOS_API_TOKEN");
    unsetenv("CDC_DISPATCH_URL");
    unsetenv("CDC_MANAGEMENT_TOKEN");
}

static void write_settings(const char *text, mode_t mode)
{
    char path[200];
    FILE *f;

    snprintf(path, sizeof path, "%s/.config", home);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/.config/arvados", home);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/.config/arvados/settings.conf", home);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    chmod(path, mode);
}

static void refused(const char *want)
{
    struct cred c;
    struct err err;

    assert_int_equal(cred_read(&c, &err), -1);
    assert_int_equal(err.class, ERR_CONFIG);
    if (!strstr(err.text, want))
        fail_msg("\"%s\" lacks \"%s\"", err.text, want);
}

static void test_env(void **state)
{
    struct cred c;

    (void) state;
    clear_env();
    write_settings("CDC_API_URL=http://127.0.0.1:1/\nARVADOS_API_TOKEN=f\n",
                   0600);
    setenv("ARVADOS_API_HOST", "api.example:123", 1);
    refused("not ARVADOS_API_TOKEN"); /* never the file's token for it */
    setenv("ARVADOS_API_TOKEN", "e", 1);
    assert_int_equal(cred_read(&c, NULL), 0);
    assert_string_equal(c.api_url, "https://api.example:123");
    assert_string_equal(c.api_token, "e");
    assert_null(c.dispatch_url);
    cred_fini(&c);
    setenv("CDC_API_URL", "http://10.1.2.3/", 1);
    refused("loopback");
    clear_env();
}

static void test_file(void **state)
{
    struct cred c;

    (void) state;
    clear_env();
    write_settings("# x\nCDC_API_URL=http://127.0.0.1:8/\r\n"
                   "ARVADOS_API_TOKEN=tok\nCDC_DISPATCH_URL="
                   "http://127.0.0.1:9/\nCDC_MANAGEMENT_TOKEN=m", 0600);
    assert_int_equal(cred_read(&c, NULL), 0);
    assert_string_equal(c.api_url, "http://127.0.0.1:8/");
    assert_string_equal(c.api_token, "tok");
    assert_string_equal(c.dispatch_token, "m");
    cred_fini(&c);
    write_settings("CDC_API_URL=http://127.0.0.1:8/\n", 0600);
    refused("not ARVADOS_API_TOKEN");
    write_settings("", 0600);
    refused("no API server");
    write_settings("ARVADOS_API_TOKEN=x\n", 0644);
    refused("settings.conf");
}

/* --- tables ------------------------------------------------------------------------ */

static void test_table(void **state)
{
    struct table *t = table_create("NAME|>N|WHY");
    struct buf b;

    (void) state;
    buf_init(&b, 4096);
    table_cell(t, "a\033[1m");
    table_printf(t, "%d", 7);
    table_cell(t, NULL);
    table_cell(t, "\xc3\xa9");
    table_printf(t, "%d", 1234);
    table_cell(t, "x");
    assert_int_equal(table_rows(t), 2);
    table_print(t, 0, &b);
    assert_null(strchr(b.data, '\033'));
    assert_non_null(strstr(b.data, "   7  -\n"));
    assert_non_null(strstr(b.data, "  1234  x\n"));
    buf_reset(&b);
    table_print(t, 4, &b);
    assert_memory_equal(b.data, "NAME\n", 5);
    buf_fini(&b);
    table_destroy(t);
}

/* --- requests ----------------------------------------------------------------------- */

static struct jsn *spec(struct ctl_opt *opts, size_t n, char **args,
                        size_t n_args, int want)
{
    struct ctl ctl = { .opts = opts, .n_opts = n, .args = args,
                       .n_args = n_args };
    struct buf b;
    struct jsn *j = NULL;

    buf_init(&b, 1 << 20);
    assert_int_equal(spec_write(&ctl, &b), want);
    if (!want) {
        j = jsn_parse(b.data, b.len, NULL);
        assert_non_null(j);
    }
    buf_fini(&b);
    return j;
}

static void test_spec(void **state)
{
    struct ctl_opt opts[] = {
        { "env", "A=b=c" }, { "env", "D=" }, { "tmp", "/work=2MiB" },
        { "text", "/f=hello" }, { "ram", "1GiB" }, { "network", "" },
        { "max-run-time", "1500ms" },
    };
    char cmd[] = "echo", arg[] = "";
    char *args[] = { cmd, arg };
    struct jsn *j = spec(opts, MEM_COUNT(opts), args, 2, 0), *r;
    int64_t n;
    bool b = false;

    (void) state;
    r = jsn_get(j, "container_request");
    assert_string_equal(record_str(jsn_get(r, "environment"), "A"), "b=c");
    assert_string_equal(record_str(jsn_get(r, "environment"), "D"), "");
    assert_int_equal(jsn_count(jsn_get(r, "command")), 2);
    assert_int_equal(jsn_i64(jsn_get(jsn_get(r, "mounts"), "/work"),
                             "capacity", &n, NULL), 0);
    assert_int_equal(n, 2 << 20);
    assert_string_equal(record_str(jsn_get(jsn_get(r, "mounts"), "/f"),
                                   "content"), "hello");
    assert_string_equal(record_str(r, "output_path"), "/out");
    assert_int_equal(jsn_i64(jsn_get(r, "scheduling_parameters"),
                             "max_run_time", &n, NULL), 0);
    assert_int_equal(n, 2); /* rounded up: never 0 = unlimited */
    assert_int_equal(jsn_bool(jsn_get(r, "runtime_constraints"), "API", &b,
                              NULL), 0);
    assert_true(b);
    assert_int_equal(jsn_bool(r, "use_existing", &b, NULL), 0);
    assert_false(b);
    jsn_free(j);
}

static void test_spec_refusals(void **state)
{
    struct ctl_opt bad[] = { { "env", "=x" }, { "tmp", "/a" },
                             { "tmp", "/a=many" },
                             { "file-text", "/a=/nonexistent" } };
    char cmd[] = "true";
    char *args[] = { cmd };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(bad); i++)
        spec(&bad[i], 1, args, 1, CTL_USAGE);
}

static struct record record_of(const char *request, const char *container)
{
    struct record r = { jsn_parse(request, strlen(request), NULL),
                        jsn_parse(container, strlen(container), NULL) };

    assert_non_null(r.container);
    return r;
}

static void test_exit_codes(void **state)
{
    static const struct {
        const char *container;
        int code;
    } cases[] = {
        { "{\"state\":\"Complete\",\"exit_code\":3}", 3 },
        { "{\"state\":\"Complete\",\"exit_code\":137}", 137 },
        { "{\"state\":\"Cancelled\",\"runtime_status\":{\"error\":\"no "
          "instance type\"}}", 126 },
        { "{\"state\":\"Cancelled\",\"started_at\":\"2026-01-01T00:00:00Z\","
          "\"runtime_status\":{\"error\":\"x\"}}", 125 },
        { "{\"state\":\"Cancelled\",\"runtime_status\":{}}", 125 },
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        struct record r = record_of("{\"state\":\"Final\"}",
                                    cases[i].container);

        assert_true(record_final(&r));
        assert_int_equal(record_exit_code(&r), cases[i].code);
        record_fini(&r);
    }
}

/* Every verb has a function and help; every option a help and no twin. */
static void test_verb_table(void **state)
{
    (void) state;
    for (const struct verb *v = verbs; v->name; v++) {
        assert_non_null(v->run);
        assert_true(*v->help);
        for (const struct verb_opt *o = v->opts; o->name; o++) {
            assert_true(*o->help);
            for (const struct verb_opt *p = o + 1; p->name; p++)
                assert_string_not_equal(o->name, p->name);
        }
    }
}

#define X(name, args, opts, help)                                             \
    int verb_##name(struct ctl *ctl)                                          \
    {                                                                         \
        (void) ctl;                                                           \
        return 0;                                                             \
    }
CTL_VERBS(X)
#undef X

static int setup(void **state)
{
    (void) state;
    return mkdtemp(home) && setenv("HOME", home, 1) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    char path[200];

    (void) state;
    snprintf(path, sizeof path, "%s/.config/arvados/settings.conf", home);
    unlink(path);
    snprintf(path, sizeof path, "%s/.config/arvados", home);
    rmdir(path);
    snprintf(path, sizeof path, "%s/.config", home);
    rmdir(path);
    return rmdir(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_spec),
        cmocka_unit_test(test_spec_refusals),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_verb_table),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
