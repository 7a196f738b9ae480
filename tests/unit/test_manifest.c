/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Manifests and portable data hashes against texts made by hand, in Arvados'
 * format; files of an attempt on disk, published.
 */

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/apiserver/files.h"
#include "core/apiserver/manifest.h"
#include "core/apiserver/publish.h"
#include "core/base/mem.h"
#include "tests/unit/unit.h"

#define FOO "acbd18db4cc2f85cedef654fccc4a4d8"
#define BAR "37b51d194a7513e45b56f6524f2d51f2"
#define FOOBAR "3858f62230ac3c915f300c664312c63f"
#define EMPTY "d41d8cd98f00b204e9800998ecf8427e"

static void an_empty_collection(void **state)
{
    struct manifest m;
    struct err err = {0};

    (void) state;
    manifest_init(&m);
    assert_ok(manifest_end(manifest_begin(&m), &err), &err);
    assert_string_equal(m.text.data, "");
    assert_string_equal(m.pdh, EMPTY "+0");
    assert_int_equal(m.files, 0);
    manifest_fini(&m);
}

static void put(struct manifest_w *w, const char *dir, const char *name,
                const char *text)
{
    manifest_file(w, dir, name);
    manifest_data(w, text, strlen(text));
}

static void files_of_a_folder_share_blocks(void **state)
{
    struct manifest m;
    struct manifest_w *w;
    struct err err = {0};

    (void) state;
    manifest_init(&m);
    w = manifest_begin(&m);
    put(w, "", "a", "foo");
    put(w, "", "b c", "bar");
    put(w, "", "z", "");
    put(w, "d/e", "x:y\\", "foo");
    put(w, "f", "none", "");
    assert_ok(manifest_end(w, &err), &err);
    assert_string_equal(m.text.data,
                        ". " FOOBAR "+6 0:3:a 3:3:b\\040c 6:0:z\n"
                        "./d/e " FOO "+3 0:3:x\\072y\\134\n"
                        "./f " EMPTY "+0 0:0:none\n");
    assert_int_equal(m.files, 5);
    assert_int_equal(m.bytes, 9);
    manifest_fini(&m);
}

/* The example of Arvados' documentation of the format. */
static void a_known_hash(void **state)
{
    struct manifest m;
    struct manifest_w *w;
    struct err err = {0};

    (void) state;
    manifest_init(&m);
    w = manifest_begin(&m);
    put(w, "", "foo", "foo");
    assert_ok(manifest_end(w, &err), &err);
    assert_string_equal(m.text.data, ". " FOO "+3 0:3:foo\n");
    assert_string_equal(m.pdh, "1f4b0bc7583c2a7f9102c395f4ffc5e3+45");
    manifest_fini(&m);
}

static void content_is_cut_into_blocks(void **state)
{
    enum { BLOCK = 64 << 20 };
    struct manifest m;
    struct manifest_w *w;
    struct err err = {0};
    char *zeros = calloc(1, BLOCK), expected[256];

    (void) state;
    assert_non_null(zeros);
    manifest_init(&m);
    w = manifest_begin(&m);
    manifest_file(w, "", "a");
    manifest_data(w, zeros, BLOCK - 1);
    manifest_data(w, zeros, 4);
    manifest_file(w, "", "b");
    manifest_data(w, zeros, 1);
    assert_ok(manifest_end(w, &err), &err);
    snprintf(expected, sizeof expected,
             ". 7f614da9329cd3aebf59b91aadc30bf0+%d "
             "f1d3ff8443297732862df21dc4e57262+4 0:%d:a %d:1:b\n",
             BLOCK, BLOCK + 3, BLOCK + 3);
    assert_string_equal(m.text.data, expected);
    manifest_fini(&m);
    free(zeros);
}

/* --------------------------------------------------------------- files -- */

#define UUID "zzzzz-dz642-000000000000abc"

enum { MAX_ATTEMPT = 150 };

static struct files *open_files(char dir[64])
{
    struct files_opts opts = {.dir = dir, .durable = true, .max_file = 100,
                              .max_attempt = MAX_ATTEMPT, .max_files = 4};
    struct files *f;
    struct err err = {0};

    snprintf(dir, 64, "/tmp/cdc-files-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_ok(files_open(&opts, &f, &err), &err);
    return f;
}

static void remove_tree(const char *dir)
{
    static const char *const names[] = {
        "/3/output/b/a/f", "/3/output/b/a", "/3/output/b/link",
        "/3/output/b", "/3/output/a", "/3/output", "/3/log/stdout.txt",
        "/3/log", "/3", ""};

    for (size_t i = 0; i < MEM_COUNT(names); i++) {
        CLEANUP(mem_free) char *path = mem_printf("%s/bc/" UUID "%s", dir,
                                                  names[i]);
        if (unlink(path) < 0)
            rmdir(path);
    }
    CLEANUP(mem_free) char *two = mem_printf("%s/bc", dir);
    rmdir(two);
    rmdir(dir);
}

static void an_attempt_is_published(void **state)
{
    struct files_at out = {UUID, 3, FILES_OUTPUT}, log = {UUID, 3, FILES_LOG};
    struct err err = {0};
    struct publish *p;
    char dir[64];
    struct files *f = open_files(dir);
    int64_t size;

    (void) state;
    assert_ok(files_put(f, &out, "a", 0, true, "foo", 3, &size, &err), &err);
    assert_ok(files_put(f, &out, "b/a/f", 0, true, "bar", 3, &size, &err),
              &err);
    assert_ok(files_put(f, &log, "stdout.txt", 0, false, "foobar", 6, &size,
                        &err), &err);
    assert_int_equal(size, 6);
    /* A link is not followed and is no file. */
    CLEANUP(mem_free) char *link = mem_printf("%s/bc/%s/3/output/b/link", dir,
                                              UUID);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    assert_err(files_put(f, &out, "b/link", 0, false, "x", 1, &size, &err),
               &err, ERR_INVALID);
    p = publish_create(f, UUID, 3, &err);
    assert_non_null(p);
    assert_true(publish_is_of(p, UUID, 3));
    assert_false(publish_is_of(p, UUID, 2));
    assert_string_equal(publish_output(p)->text.data,
                        ". " FOO "+3 0:3:a\n./b/a " BAR "+3 0:3:f\n");
    assert_string_equal(publish_log(p)->text.data,
                        ". " FOOBAR "+6 0:6:stdout.txt\n");
    publish_free(p);
    p = publish_create(f, UUID, 9, &err); /* wrote nothing */
    assert_non_null(p);
    assert_string_equal(publish_log(p)->pdh, EMPTY "+0");
    publish_free(p);
    files_close(f);
    remove_tree(dir);
}

static void names_and_offsets_are_checked(void **state)
{
    static const char *const wrong[] = {
        "", "/", "/x", "x/", "a//b", ".", "..", "a/..", "../a", "a/./b",
        "a\nb", "\x7f", "\xff", "a/\xc3(", "\xed\xa0\x80"};
    struct files_at out = {UUID, 3, FILES_OUTPUT}, log = {UUID, 3, FILES_LOG};
    struct err err = {0};
    char dir[64], deep[256] = "";
    struct files *f = open_files(dir);
    int64_t size;

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(wrong); i++)
        assert_err(files_put(f, &out, wrong[i], 0, true, "x", 1, &size,
                             &err), &err, ERR_INVALID);
    for (int i = 0; i < 33; i++)
        snprintf(deep + strlen(deep), sizeof deep - strlen(deep), "%sd",
                 i ? "/" : "");
    assert_err(files_check_name(FILES_OUTPUT, deep, &err), &err,
               ERR_INVALID);
    assert_err(files_put(f, &log, "other.txt", 0, false, "x", 1, &size,
                         &err), &err, ERR_INVALID);
    assert_err(files_put(f, &log, "stdout.txt", 1, false, "x", 1, &size,
                         &err), &err, ERR_CONFLICT);
    assert_err(files_put(f, &out, "a", -1, false, "x", 1, &size, &err), &err,
               ERR_INVALID);
    files_close(f);
    remove_tree(dir);
}

/* A write that fails is not counted, however often it is tried. */
static void failed_writes_give_their_room_back(void **state)
{
    struct files_at out = {UUID, 3, FILES_OUTPUT};
    struct rlimit before, small;
    struct err err = {0};
    char dir[64], bytes[60] = "";
    struct files *f = open_files(dir);
    int64_t size;

    (void) state;
    assert_ok(files_put(f, &out, "a", 0, true, "foo", 3, &size, &err), &err);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){20, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int64_t had = 0; had < MAX_ATTEMPT; had += (int64_t) sizeof bytes)
        assert_err(files_put(f, &out, "a", 0, true, bytes, sizeof bytes,
                             &size, &err), &err, ERR_TOO_LARGE);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_ok(files_put(f, &out, "a", 0, true, bytes, sizeof bytes, &size,
                        &err), &err);
    files_close(f);
    remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_collection),
        cmocka_unit_test(files_of_a_folder_share_blocks),
        cmocka_unit_test(a_known_hash),
        cmocka_unit_test(content_is_cut_into_blocks),
        cmocka_unit_test(an_attempt_is_published),
        cmocka_unit_test(names_and_offsets_are_checked),
        cmocka_unit_test(failed_writes_give_their_room_back),
    };

    return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
