/* SPDX-License-Identifier: Apache-2.0 */
/* core/localvm: what needs no VM: the language, the state directory, names,
 * keys, the files that a VM is given. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/localvm/addr.h"
#include "core/localvm/guest.h"
#include "core/localvm/keygen.h"
#include "core/localvm/state.h"
#include "core/localvm/vm.h"
#include "core/localvm/wire.h"

#define TYPE "\"type\":{\"name\":\"t\",\"vcpus\":2,\"ram\":268435456," \
             "\"price\":0.5}"
#define SPEC(more) "{\"token\":\"tok\",\"set_id\":\"s.1\"," more TYPE "}"

static char dir[64];

static int make_dir(void **state)
{
    (void) state;
    snprintf(dir, sizeof dir, "/tmp/cdc-test-localvm.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void) state;
    return state_remove_tree(dir, NULL);
}

static int read_spec(const char *text, struct wire_spec *ret, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), err);

    return j ? wire_read_spec(j, ret, err) : -1;
}

static void test_spec(void **state)
{
    CLEANUP(wire_spec_fini) struct wire_spec spec = {0};
    struct err err;

    (void) state;
    assert_ok(read_spec(SPEC("\"member\":7,\"tags\":{\"b\":\"\",\"a\":\"1\"},"
                             "\"shared_dirs\":[\"/a\",\"/b c\"],"),
                        &spec, &err), &err);
    assert_string_equal(spec.token, "tok");
    assert_string_equal(spec.image, "host");
    assert_string_equal(spec.cgroup_parent, "cdc");
    assert_string_equal(spec.type_name, "t");
    assert_string_equal(spec.provider_type, "");
    assert_int_equal(spec.member, 7);
    assert_int_equal(spec.wait_ms, 5000);
    assert_int_equal(spec.n_shared, 2);
    assert_int_equal(spec.tags.n, 2);
    assert_true(spec.price == 0.5);
}

static void test_spec_survives_the_state_directory(void **state)
{
    CLEANUP(wire_spec_fini) struct wire_spec spec = {0}, again = {0};
    CLEANUP(buf_fini) struct buf a, b;
    struct jsn_w w;
    struct err err;

    (void) state;
    buf_init(&a, 65536);
    buf_init(&b, 65536);
    assert_ok(read_spec(SPEC("\"tags\":{\"k\":\"v\"},\"init_command\":"
                             "\"a\\nb\\\"\",\"shared_dirs\":[\"/x\"],"),
                        &spec, &err), &err);
    jsn_w_init(&w, &a);
    wire_write_spec(&w, NULL, &spec);
    assert_ok(read_spec(a.data, &again, &err), &err);
    jsn_w_init(&w, &b);
    wire_write_spec(&w, NULL, &again);
    assert_string_equal(a.data, b.data);
    assert_string_equal(again.init_command, "a\nb\"");
}

static void test_spec_refused(void **state)
{
    static const char *const bad[] = {
        "[]", "{}", "{\"token\":\"t\",\"set_id\":\"s\"}",
        "{\"token\":\"a b\",\"set_id\":\"s\"," TYPE "}",
        "{\"token\":\"\",\"set_id\":\"s\"," TYPE "}",
        "{\"token\":\"t\",\"set_id\":\"..\"," TYPE "}",
        "{\"token\":\"t\",\"set_id\":\"a/b\"," TYPE "}",
        SPEC("\"member\":100,"), SPEC("\"member\":-1,"),
        SPEC("\"member\":\"1\","), SPEC("\"wait_ms\":60001,"),
        SPEC("\"image\":\"a\\nb\","), SPEC("\"public_key\":\"a\\nb\","),
        SPEC("\"images_dir\":\"x\","), SPEC("\"images_dir\":\"/a/../b\","),
        SPEC("\"images_dir\":\"/a/..\","),
        SPEC("\"shared_dirs\":\"/a\","), SPEC("\"shared_dirs\":[1],"),
        SPEC("\"shared_dirs\":[\"/a\\\"\"],"),
        SPEC("\"cgroup_parent\":\"/a\","), SPEC("\"cgroup_parent\":\"..\","),
        SPEC("\"cgroup_parent\":\"\","),
        SPEC("\"tags\":[],"), SPEC("\"tags\":{\"a\":null},"),
        SPEC("\"tags\":{\"\":\"x\"},"), SPEC("\"tags\":{\"a\":1},"),
        "{\"token\":\"t\",\"set_id\":\"s\",\"type\":{\"name\":\"t\","
        "\"vcpus\":0,\"ram\":268435456}}",
        "{\"token\":\"t\",\"set_id\":\"s\",\"type\":{\"name\":\"t\","
        "\"vcpus\":1,\"ram\":1}}",
    };
    struct wire_spec spec;
    struct err err;
    size_t i;

    (void) state;
    for (i = 0; i < MEM_COUNT(bad); i++)
        if (read_spec(bad[i], &spec, &err) == 0)
            fail_msg("accepted: %s", bad[i]);
    /* Dots in names are fine where they are no way up. */
    assert_ok(read_spec(SPEC("\"images_dir\":\"/a/..b/c\","), &spec, &err),
              &err);
    wire_spec_fini(&spec);
}

static void test_tags(void **state)
{
    const char *text = "{\"t\":{\"a\":\"1\",\"b\":\"2\"},\"f\":{\"b\":\"2\"},"
                       "\"g\":{\"b\":\"3\"},\"h\":{\"c\":\"2\"}}";
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), NULL);
    struct wire_tags t, f[4];
    static const char *const keys[] = {"f", "g", "h", "absent"};
    static const bool want[] = {true, false, false, true};
    struct err err;
    size_t i;

    (void) state;
    assert_ok(wire_read_tags(j, "t", &t, &err), &err);
    for (i = 0; i < 4; i++) {
        assert_ok(wire_read_tags(j, keys[i], &f[i], &err), &err);
        assert_int_equal(wire_tags_match(&t, &f[i]), want[i]);
        wire_tags_fini(&f[i]);
    }
    wire_tags_fini(&t);
}

static void test_ids(void **state)
{
    (void) state;
    assert_true(wire_is_id("lvm-abcdefghijklmnopq234"));
    assert_false(wire_is_id("lvm-abcdefghijklmnopq23"));
    assert_false(wire_is_id("lvm-abcdefghijklmnopq2345"));
    assert_false(wire_is_id("lvm-abcdefghijklmnopq231"));
    assert_false(wire_is_id("xvm-abcdefghijklmnopq234"));
    assert_false(wire_is_id("lvm-../../../../../../et"));
    assert_false(wire_is_id(""));
}

static void test_address_range(void **state)
{
    static const char *const bad[] = {
        "", "127.0.0.1", "10.0.0.0/8", "127.0.0.0/7", "127.0.0.0/25",
        "127.0.0.0/24", "127.256.0.0/16", "127.0.0.0/8x", "127.1.2.3/ 8 ",
    };
    struct addr_range r;
    struct err err;
    char out[16];
    size_t i;
    int port;

    (void) state;
    for (i = 0; i < MEM_COUNT(bad); i++)
        assert_err(addr_parse_range(bad[i], &r, &err), &err, ERR_CONFIG);
    assert_ok(addr_parse_range("127.64.0.0/10", &r, &err), &err);
    assert_int_equal(r.first, 0x7f400001);
    assert_int_equal(r.count, (1 << 22) - 2);
    assert_ok(addr_parse_range("127.9.8.7/24", &r, &err), &err);
    assert_int_equal(r.first, 0x7f090801);
    assert_int_equal(r.count, 254);
    assert_ok(addr_parse_range("127.0.0.0/8", &r, &err), &err);
    assert_int_equal(r.first, 0x7f000100);
    assert_int_equal(r.first + r.count - 1, 0x7ffffffe);
    r = (struct addr_range) {0x7f090801, 1};
    assert_ok(addr_choose(&r, out, &port, &err), &err);
    assert_string_equal(out, "127.9.8.1");
    assert_in_range(port, ADDR_PORT_FIRST, ADDR_PORT_LAST);
    /* Not an address of this machine. */
    r = (struct addr_range) {0xc0000201, 1};
    assert_err(addr_choose(&r, out, &port, &err), &err, ERR_CAPACITY);
}

/* ssh-keygen reads the private key and gets the public one that we told. */
static void test_host_key(void **state)
{
    CLEANUP(buf_wipe) struct buf key;
    CLEANUP(mem_free) char *public = NULL, *path = NULL, *cmd = NULL;
    char line[256] = "";
    struct err err;
    int i;

    (void) state;
    for (i = 0; i < 20; i++) {
        free(public);
        public = NULL;
        buf_init(&key, KEYGEN_PRIVATE_MAX);
        assert_ok(keygen_ed25519(&key, &public, &err), &err);
        assert_int_equal(strncmp(public, "ssh-ed25519 AAAAC3Nz", 20), 0);
        if (i < 19)
            buf_wipe(&key);
    }
    if (access("/usr/bin/ssh-keygen", X_OK) < 0)
        return;
    path = mem_printf("%s/key", dir);
    assert_ok(guest_put(dir, "key", 0600, key.data, &err), &err);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        execl("/usr/bin/ssh-keygen", "ssh-keygen", "-y", "-f", path,
              (char *) NULL);
        _exit(127);
    }
    close(fds[1]);
    assert_true(read(fds[0], line, sizeof line - 1) > 0);
    close(fds[0]);
    waitpid(pid, &i, 0);
    assert_int_equal(i, 0);
    assert_int_equal(strncmp(line, public, strlen(public)), 0);
}

static void test_hidden_in_etc(void **state)
{
    (void) state;
    assert_true(guest_hides_etc("ssh", S_IFDIR | 0755));
    assert_true(guest_hides_etc("arvados", S_IFDIR | 0755));
    assert_true(guest_hides_etc("shadow", S_IFREG | 0644));
    assert_true(guest_hides_etc("sudoers", S_IFREG | 0440));
    assert_true(guest_hides_etc("private", S_IFDIR | 0710));
    assert_true(guest_hides_etc("private", S_IFDIR | 0751));
    assert_false(guest_hides_etc("passwd", S_IFREG | 0644));
    assert_false(guest_hides_etc("ssl", S_IFDIR | 0755));
    assert_false(guest_hides_etc("localtime", S_IFLNK | 0777));
}

static void test_state_directory(void **state)
{
    CLEANUP(mem_free) char *sub = mem_printf("%s/a", dir);
    struct state s;
    struct err err;
    int a, b;

    (void) state;
    assert_err(state_open("relative", &s, &err), &err, ERR_CONFIG);
    assert_ok(state_open(sub, &s, &err), &err);
    assert_int_equal(chmod(sub, 0770), 0);
    assert_err(state_open(sub, &s, &err), &err, ERR_CONFIG);
    assert_int_equal(chmod(sub, 0755), 0);
    assert_ok(state_open(sub, &s, &err), &err);
    assert_ok(state_lock(&s, "x", true, &a, &err), &err);
    assert_err(state_lock(&s, "x", false, &b, &err), &err, ERR_CONFLICT);
    assert_ok(state_lock(&s, "y", false, &b, &err), &err);
    close(b);
    close(a);
    assert_ok(state_lock(&s, "x", false, &b, &err), &err);
    close(b);
}

static void test_ended_tokens(void **state)
{
    struct state s;
    struct err err;
    char id[WIRE_ID_SIZE] = "", token[32];
    int i;

    (void) state;
    assert_ok(state_open(dir, &s, &err), &err);
    assert_false(state_ended(&s, "tok", 0, id));
    assert_ok(state_note_ended(&s, "tok", 0, "lvm-abcdefghijklmnopq234",
                               &err), &err);
    assert_true(state_ended(&s, "tok", 0, id));
    assert_string_equal(id, "lvm-abcdefghijklmnopq234");
    assert_false(state_ended(&s, "tok", 1, id));
    assert_false(state_ended(&s, "to", 0, id));
    assert_false(state_ended(&s, "ok", 0, id));
    /* Bounded: the file is moved aside once it is large, and still read. */
    CLEANUP(mem_free) char *file = mem_printf("%s/ended", dir);
    CLEANUP(mem_free) char *old = mem_printf("%s/ended.1", dir);
    assert_int_equal(truncate(file, 300 << 10), 0);
    for (i = 0; i < 2; i++) {
        snprintf(token, sizeof token, "t%d", i);
        assert_ok(state_note_ended(&s, token, 0, "lvm-aaaaaaaaaaaaaaaaaaaa",
                                   &err), &err);
    }
    assert_int_equal(access(old, F_OK), 0);
    assert_true(state_ended(&s, "tok", 0, id));
    assert_true(state_ended(&s, "t1", 0, id));
}

static void test_vm_files(void **state)
{
    struct wire_spec spec;
    struct vm_run run = {.address = "127.1.2.3", .port = 20001,
                         .user = "root", .reason = "why",
                         .limits = CGROUP_LIMIT_CPU};
    struct vm vm, again;
    struct state s;
    struct status st;
    struct err err;

    (void) state;
    assert_ok(state_open(dir, &s, &err), &err);
    assert_ok(read_spec(SPEC(""), &spec, &err), &err);
    assert_ok(vm_create(&s, &spec, &vm, &err), &err);
    assert_string_equal(vm.name, "tok-00");
    assert_ok(vm_find(&s, "tok", 0, &again, &err), &err);
    assert_string_equal(again.id, vm.id);
    assert_string_equal(again.host_key, vm.host_key);
    assert_false(again.started);
    vm_status(&again, &st);
    assert_int_equal(st.phase, STATUS_NEW);
    vm_fini(&again);
    assert_err(vm_find(&s, "tok", 1, &again, &err), &err, ERR_NOT_FOUND);

    assert_ok(procid_get(0, &run.proc, &err), &err);
    assert_ok(vm_save_run(&vm, &run, &err), &err);
    assert_ok(vm_load(&s, vm.id, &again, &err), &err);
    assert_true(again.started);
    assert_true(procid_alive(&again.run.proc));
    assert_string_equal(again.run.address, "127.1.2.3");
    assert_int_equal(again.run.limits, CGROUP_LIMIT_CPU);
    assert_false(again.dying);
    vm_fini(&again);

    assert_ok(vm_mark_dying(&vm, &err), &err);
    assert_ok(vm_load(&s, vm.id, &again, &err), &err);
    assert_true(again.dying);
    vm_fini(&again);
    assert_ok(vm_remove(&s, &vm, true, &err), &err);
    assert_err(vm_load(&s, vm.id, &again, &err), &err, ERR_NOT_FOUND);
    vm_fini(&vm);
}

static void test_damaged_files(void **state)
{
    static const char *const bad[] = {"", "{", "{}", "[]", "{\"proc\":\"x\"}"};
    CLEANUP(vm_fini) struct vm vm = {0};
    struct wire_spec spec;
    struct state s;
    struct vm again;
    struct err err;
    size_t i;

    (void) state;
    assert_ok(state_open(dir, &s, &err), &err);
    assert_ok(read_spec(SPEC(""), &spec, &err), &err);
    assert_ok(vm_create(&s, &spec, &vm, &err), &err);
    for (i = 0; i < MEM_COUNT(bad); i++) {
        assert_ok(state_write(vm.dir, "run.json", bad[i], &err), &err);
        assert_err(vm_load(&s, vm.id, &again, &err), &err, ERR_INVALID);
    }
}

static void test_sshd_config_and_node_json(void **state)
{
    CLEANUP(wire_spec_fini) struct wire_spec spec = {0};
    CLEANUP(buf_fini) struct buf out;
    CLEANUP(jsn_cleanup) struct jsn *j = NULL;
    struct vm vm = {.id = "lvm-aaaaaaaaaaaaaaaaaaaa", .dir = "/s t/%x"};
    struct vm_run run = {.address = "127.1.2.3", .port = 20001,
                         .user = "me", .degraded = true};
    struct groups groups = {.version = 0};
    struct guest g = {.vm = &vm, .run = &run, .groups = &groups};
    const char *text;
    struct err err;
    bool plain;

    (void) state;
    buf_init(&out, 65536);
    assert_ok(read_spec(SPEC("\"shared_dirs\":[\"/x\"],"), &spec, &err),
              &err);
    vm.spec = spec;
    guest_sshd_config(&g, "/s t/%x/run", &out);
    assert_non_null(strstr(out.data, "ListenAddress 127.1.2.3:20001\n"));
    assert_non_null(strstr(out.data, "HostKey \"/s t/%x/run/host_key\"\n"));
    assert_non_null(strstr(out.data, "AuthorizedKeysFile "
                                     "\"/s t/%%x/run/authorized_keys\"\n"));
    assert_non_null(strstr(out.data, "\"CDC_NODE_JSON=/s t/%x/node.json\""));
    run.degraded = false;
    buf_reset(&out);
    guest_sshd_config(&g, "/run/vm", &out);
    assert_null(strstr(out.data, "CDC_NODE_JSON"));
    assert_null(strstr(out.data, "StrictModes no"));

    buf_reset(&out);
    guest_node_json(&g, &out);
    j = jsn_parse(out.data, out.len, &err);
    assert_non_null(j);
    assert_ok(jsn_str(j, "isolation", &text, &err), &err);
    assert_string_equal(text, "full");
    assert_ok(jsn_bool(j, "plain", &plain, &err), &err);
    assert_false(plain);
    assert_int_equal(jsn_count(jsn_get(j, "shared_dirs")), 1);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir,       \
                                                       remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),
        cmocka_unit_test(test_spec_survives_the_state_directory),
        cmocka_unit_test(test_spec_refused),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_address_range),
        WITH_DIR(test_host_key),
        cmocka_unit_test(test_hidden_in_etc),
        WITH_DIR(test_state_directory),
        WITH_DIR(test_ended_tokens),
        WITH_DIR(test_vm_files),
        WITH_DIR(test_damaged_files),
        cmocka_unit_test(test_sshd_config_and_node_json),
    };
    umask(077);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
