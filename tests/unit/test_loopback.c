/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loopback driver over a stand-in for cdc-local-vm: what is sent to it,
 * and what becomes of each way in which it can end. Real VMs are made by
 * tests/conformance/loopback.sh.
 *
 * The stand-in is a shell script: it keeps its input in a file `in.VERB`, and
 * does what the file `do.VERB` says.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/plugin/drvset.h"
#include "core/plugin/preflight.h"
#include "core/plugin/registry.h"
#include "core/port/cloud.h"

static char folder[] = "/tmp/test_loopback.XXXXXX";
static struct registry *reg;
static const struct driver *driver;

static const char record[] =
    "{\"id\":\"lvm-a\",\"name\":\"c1-00\",\"create_token\":\"c1\","
    "\"member\":0,\"state\":\"running\",\"provider_type\":\"t1\","
    "\"placement\":\"\",\"address\":\"127.64.0.9\",\"port\":2200,"
    "\"user\":\"root\",\"tags\":{\"Set\":\"s\",\"B\":\"c\"},"
    "\"created_ms\":77,\"price\":0.25,\"host_key\":\"ssh-ed25519 K\"}";

/* --- the stand-in ---------------------------------------------------------------- */

static char *path(const char *prefix, const char *verb)
{
    return mem_printf("%s/%s%s", folder, prefix, verb);
}

static void put(const char *prefix, const char *verb, const char *text,
                mode_t mode)
{
    CLEANUP(mem_free) char *name = path(prefix, verb);
    FILE *f = fopen(name, "we");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    chmod(name, mode);
}

static void answer(const char *verb, const char *script)
{
    put("do.", verb, script, 0700);
}

static void answer_instance(const char *verb)
{
    CLEANUP(mem_free) char *script = mem_printf("echo '{\"instance\":%s}'",
                                                record);

    answer(verb, script);
}

/* The object that the stand-in was sent last. */
static struct jsn *sent(const char *verb)
{
    CLEANUP(mem_free) char *name = path("in.", verb);
    char text[8192];
    FILE *f = fopen(name, "re");
    struct jsn *j;
    size_t n;

    assert_non_null(f);
    n = fread(text, 1, sizeof text, f);
    fclose(f);
    j = jsn_parse(text, n, NULL);
    if (!j)
        fail_msg("not JSON: %.*s", (int)n, text);
    return j;
}

static const char *sent_str(const struct jsn *j, const char *key)
{
    const char *s = NULL;

    jsn_str(j, key, &s, NULL);
    return s;
}

/* --- the set ---------------------------------------------------------------------- */

static struct call *new_call(const struct drvset *s, enum call_kind kind)
{
    return call_create(&s->origin, kind, clock_mono_us() + 20000000, NULL);
}

static struct call *open_set(struct drvset *s, const char *more)
{
    CLEANUP(mem_free) char *text = mem_printf(
        "{\"Program\":\"%s/program\"%s}", folder, more);
    struct jsn *j = jsn_parse(text, strlen(text), NULL);
    struct cdc_set *set;
    struct err err = {0};
    struct call *c;

    assert_non_null(j);
    assert_ok(drvset_init(s, driver, "b", "set1", folder, j, NULL, &err),
              &err);
    jsn_free(j);
    c = new_call(s, CALL_OPEN);
    if ((set = drvset_open(s, c)))
        drvset_adopt(s, set, c);
    return c;
}

static void must_open(struct drvset *s, const char *more)
{
    struct call *c = open_set(s, more);

    if (c->outcome != OP_DONE)
        fail_msg("%s", c->err.text);
    call_unref(c);
}

static struct call *create(struct drvset *s)
{
    static const struct cdc_tag tags[] = {{"Set", "s"}, {"Q", "a\"b\\c\n"}};
    const struct cdc_create_spec spec = {
        .size = sizeof spec, .count = 1, .token = "c1", .type_name = "small",
        .provider_type = "t1", .vcpus = 2, .ram = INT64_C(5) << 30,
        .scratch = 7, .price = 0.25, .n_tags = 2, .tags = tags, .image = "",
        .placement = "", .init_command = "echo hi", .public_key = "ssh-x Y",
    };
    struct call *c = new_call(s, CALL_CREATE);

    drvset_create(s, c, &spec);
    return c;
}

static void test_create(void **state)
{
    const struct cloud_instance *i;
    struct jsn *in, *type;
    struct drvset s;
    struct call *c;
    int64_t n = 0;

    (void)state;
    answer("probe", "echo '{\"degraded\":false,\"reason\":\"\"}'");
    must_open(&s, ",\"MaxProcesses\":99,\"SharedDirs\":[\"/a\",\"/b\"],"
                  "\"ImagesDirectory\":\"/img\",\"BootWait\":0");
    assert_int_equal(s.caps, CDC_CAP_SET_TAGS | CDC_CAP_VERIFY_KEY);
    answer_instance("create");
    c = create(&s);
    assert_int_equal(c->outcome, OP_DONE);
    assert_int_equal(c->instances.n, 1);
    i = c->instances.v[0];
    assert_string_equal(i->id, "lvm-a");
    assert_int_equal(i->state, CLOUD_RUNNING);
    assert_string_equal(i->address, "127.64.0.9");
    assert_int_equal(i->port, 2200);
    assert_string_equal(i->user, "root");
    assert_string_equal(i->host_key, "ssh-ed25519 K");
    assert_int_equal(i->n_tags, 2);
    assert_int_equal(i->created_ms, 77);
    assert_true(i->price == 0.25);
    call_unref(c);
    in = sent("create");
    assert_string_equal(sent_str(in, "token"), "c1");
    assert_string_equal(sent_str(in, "set_id"), "set1");
    assert_string_equal(sent_str(in, "image"), "host");
    assert_string_equal(sent_str(in, "images_dir"), "/img");
    assert_string_equal(sent_str(in, "init_command"), "echo hi");
    assert_string_equal(sent_str(jsn_get(in, "tags"), "Q"), "a\"b\\c\n");
    type = jsn_get(in, "type");
    assert_int_equal(jsn_i64(type, "ram", &n, NULL), 0);
    assert_int_equal(n, INT64_C(5) << 30);
    assert_int_equal(jsn_i64(in, "pids", &n, NULL), 0);
    assert_int_equal(n, 99);
    assert_int_equal(jsn_i64(in, "wait_ms", &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(jsn_count(jsn_get(in, "shared_dirs")), 2);
    assert_false(jsn_has(in, "address_range"));
    jsn_free(in);
    drvset_fini(&s);
}

static void test_endings(void **state)
{
    static const struct {
        const char *script;
        enum op_outcome outcome;
        enum err_class class;
    } ends[] = {
        {"echo '{\"error\":{\"class\":\"quota\",\"scope\":\"account\","
         "\"retry_ms\":5,\"code\":\"one\",\"text\":\"there is one\"}}'; "
         "exit 1", OP_REFUSED, ERR_QUOTA},
        {"echo '{\"error\":{\"class\":\"config\"}}'; exit 1", OP_REFUSED,
         ERR_CONFIG},
        {"echo '{\"error\":{\"class\":\"invalid\"}}'; exit 1", OP_REFUSED,
         ERR_INTERNAL},
        {"echo '{\"error\":{\"class\":\"timeout\"}}'; exit 1", OP_UNKNOWN,
         ERR_UNKNOWN},
        {"echo usage >&2; exit 2", OP_REFUSED, ERR_CONFIG},
        {"kill -9 $$", OP_UNKNOWN, ERR_UNKNOWN},
        {"exit 0", OP_UNKNOWN, ERR_UNKNOWN},
        {"exit 1", OP_UNKNOWN, ERR_UNKNOWN},
        {"exit 99", OP_UNKNOWN, ERR_UNKNOWN},
        {"echo garbage", OP_UNKNOWN, ERR_UNKNOWN},
        {"echo '{}'", OP_UNKNOWN, ERR_INTERNAL}, /* no instance */
        {"echo '{\"instance\":{\"id\":\"x\",\"state\":\"odd\"}}'",
         OP_UNKNOWN, ERR_INTERNAL},
    };
    struct drvset s;

    (void)state;
    answer("probe", "echo '{}'");
    must_open(&s, "");
    for (size_t i = 0; i < MEM_COUNT(ends); i++) {
        struct call *c;

        answer("create", ends[i].script);
        c = create(&s);
        if (c->outcome != ends[i].outcome || c->err.class != ends[i].class)
            fail_msg("%s: outcome %d, %s: %s", ends[i].script, c->outcome,
                     err_class_label(c->err.class), c->err.text);
        if (i == 0) {
            assert_int_equal(c->err.scope, ERR_SCOPE_ACCOUNT);
            assert_int_equal(c->err.retry_ms, 5);
            assert_string_equal(c->err.code, "one");
            assert_string_equal(c->err.text, "create: there is one");
        }
        call_unref(c);
    }
    drvset_fini(&s);
}

static void answer_list(const char *records)
{
    CLEANUP(mem_free) char *script = mem_printf(
        "echo '{\"instances\":[%s],\"degraded\":false}'", records);

    answer("list", script);
}

static void test_list(void **state)
{
    const struct cdc_tag filter = {"Set", "s"};
    struct drvset s;
    struct call *c;
    struct jsn *in;

    (void)state;
    answer("probe", "echo '{}'");
    must_open(&s, "");
    answer_list(record);
    c = new_call(&s, CALL_LIST);
    drvset_list(&s, c, &filter, 1);
    assert_int_equal(c->outcome, OP_DONE);
    assert_int_equal(c->instances.n, 1);
    call_unref(c);
    in = sent("list");
    assert_string_equal(sent_str(in, "set_id"), "set1");
    assert_string_equal(sent_str(jsn_get(in, "filter"), "Set"), "s");
    jsn_free(in);
    answer("list", "echo '{\"degraded\":false}'"); /* not an empty list */
    c = new_call(&s, CALL_LIST);
    drvset_list(&s, c, &filter, 1);
    assert_int_equal(c->outcome, OP_REFUSED);
    call_unref(c);
    drvset_fini(&s);
}

static enum err_class verify(struct drvset *s, const char *id,
                             const char *key)
{
    struct call *c = new_call(s, CALL_VERIFY_HOST_KEY);
    enum err_class class;

    drvset_verify_host_key(s, c, id, key);
    class = c->err.class;
    call_unref(c);
    return class;
}

static void test_verify(void **state)
{
    struct drvset s;

    (void)state;
    answer("probe", "echo '{}'");
    must_open(&s, "");
    answer_list(record);
    assert_int_equal(verify(&s, "lvm-a", "ssh-ed25519 K"), ERR_NONE);
    assert_int_equal(verify(&s, "lvm-a", "ssh-ed25519 L"), ERR_AUTH);
    assert_int_equal(verify(&s, "lvm-b", "ssh-ed25519 K"), ERR_NOT_FOUND);
    drvset_fini(&s);
}

static void test_tag_destroy(void **state)
{
    const struct cdc_tag tag = {"K", "v"};
    struct drvset s;
    struct call *c;
    struct jsn *in;

    (void)state;
    answer("probe", "echo '{}'");
    must_open(&s, "");
    answer("tag", "echo '{\"error\":{\"class\":\"not-found\"}}'; exit 1");
    c = new_call(&s, CALL_SET_TAGS);
    drvset_set_tags(&s, c, "lvm-a", &tag, 1);
    assert_int_equal(c->err.class, ERR_NOT_FOUND);
    call_unref(c);
    in = sent("tag");
    assert_string_equal(sent_str(in, "id"), "lvm-a");
    assert_string_equal(sent_str(jsn_get(in, "tags"), "K"), "v");
    jsn_free(in);
    answer("destroy", "echo '{}'");
    c = new_call(&s, CALL_DESTROY);
    drvset_destroy(&s, c, "lvm-a");
    assert_int_equal(c->outcome, OP_DONE);
    call_unref(c);
    drvset_fini(&s);
}

static void test_degraded(void **state)
{
    struct drvset s;
    struct call *c;

    (void)state;
    answer("probe",
           "echo '{\"degraded\":true,\"reason\":\"clone: not permitted\"}'");
    must_open(&s, "");
    assert_true(s.caps & CDC_CAP_SINGLE);
    c = new_call(&s, CALL_DESCRIBE);
    drvset_describe(&s, c);
    assert_non_null(strstr(c->facts.data, "mode: degraded\n"));
    assert_non_null(strstr(c->facts.data, "reason: clone: not permitted\n"));
    call_unref(c);
    drvset_fini(&s);
}

static void test_max_instances(void **state)
{
    struct drvset s;
    struct call *c;

    (void)state;
    answer("probe", "echo '{}'");
    must_open(&s, ",\"MaxInstances\":1");
    answer_instance("create");
    answer_list("{\"create_token\":\"c9\",\"state\":\"running\"}");
    c = create(&s);
    assert_int_equal(c->outcome, OP_REFUSED);
    assert_int_equal(c->err.class, ERR_QUOTA);
    call_unref(c);
    answer_list("{\"create_token\":\"c9\",\"state\":\"gone\"}");
    c = create(&s);
    assert_int_equal(c->outcome, OP_DONE);
    call_unref(c);
    answer_list("{\"create_token\":\"c9\",\"state\":\"running\"},"
                "{\"create_token\":\"c1\",\"state\":\"running\"}");
    c = create(&s); /* again: it is there already */
    assert_int_equal(c->outcome, OP_DONE);
    call_unref(c);
    drvset_fini(&s);
}

static void test_settings(void **state)
{
    struct drvset s;
    struct call *c = open_set(&s, ",\"StateDirectory\":\"relative\"");

    (void)state;
    assert_int_equal(c->outcome, OP_REFUSED);
    assert_int_equal(c->err.class, ERR_CONFIG);
    assert_non_null(strstr(c->err.text, "StateDirectory"));
    call_unref(c);
    drvset_fini(&s);
    answer("probe", "echo '{\"error\":{\"class\":\"config\",\"text\":\"no "
                    "sshd\"}}'; exit 1");
    c = open_set(&s, "");
    assert_int_equal(c->err.class, ERR_CONFIG);
    assert_string_equal(c->err.text, "probe: no sshd");
    call_unref(c);
    drvset_fini(&s);
}

static void write_program(void)
{
    CLEANUP(mem_free) char *text = mem_printf(
        "#!/bin/sh\n"
        "# arguments: --state DIR VERB\n"
        "[ \"$1\" = --state ] && [ \"$2\" = %s/loopback ] || exit 2\n"
        "cat >%s/in.$3\n"
        ". %s/do.$3\n", folder, folder, folder);

    put("program", "", text, 0700);
}

static void clean_up(void)
{
    static const char *const names[] = {
        "program", "do.probe", "do.create", "do.list", "do.tag",
        "do.destroy", "in.probe", "in.create", "in.list", "in.tag",
        "in.destroy",
    };

    for (size_t i = 0; i < MEM_COUNT(names); i++) {
        CLEANUP(mem_free) char *name = path(names[i], "");

        unlink(name);
    }
    {
        CLEANUP(mem_free) char *state = path("loopback", "");

        rmdir(state);
    }
    rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_endings),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_tag_destroy),
        cmocka_unit_test(test_degraded),
        cmocka_unit_test(test_max_instances),
        cmocka_unit_test(test_settings),
    };
    const char *top = getenv("TOP_BUILDDIR");
    CLEANUP(mem_free) char *dir = mem_printf("%s/drivers/loopback/.libs",
                                             top ? top : ".");
    struct registry_options o = {.dir = dir, .trust_build_tree = true};
    int rc = preflight_child_main(argc, argv);
    struct err err = {0};

    if (rc >= 0)
        return rc;
    reg = registry_create(&o);
    driver = registry_load(reg, "loopback", &err);
    if (!driver || !mkdtemp(folder)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    write_program();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    clean_up();
    registry_destroy(reg);
    return rc;
}
