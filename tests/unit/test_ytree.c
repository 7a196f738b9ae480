/* SPDX-License-Identifier: Apache-2.0 */
/* ytree: what a tree keeps, what is refused, and with which line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/conf/ytree.h"

static struct ytree *parse(const char *text)
{
    struct ytree *root = NULL;
    struct err err;

    if (ytree_parse(text, strlen(text), "t.yml", &root, &err) < 0)
        fail_msg("%s", err.text);
    return root;
}

static void refused(const char *text, const char *want)
{
    struct ytree *root = NULL;
    struct err err;

    assert_int_equal(ytree_parse(text, strlen(text), "t.yml", &root, &err), -1);
    assert_null(root);
    assert_int_equal(err.class, ERR_CONFIG);
    if (!strstr(err.text, want))
        fail_msg("\"%s\" lacks \"%s\"", err.text, want);
}

static void test_lines_and_kinds(void **state)
{
    struct ytree *root = parse("a: 1\nb:\n  - x\n  - 'y'\n");
    struct ytree *b = ytree_get(root, "b");

    (void) state;
    assert_int_equal(ytree_get(root, "a")->line, 1);
    assert_int_equal(b->kind, YTREE_SEQ);
    assert_int_equal(b->n, 2);
    assert_int_equal(b->v[1]->line, 4);
    assert_true(b->v[1]->quoted);
    assert_false(b->v[0]->quoted);
    assert_null(ytree_get(root, "c"));
    ytree_free(root);
}

static void test_merge(void **state)
{
    struct ytree *root =
        parse("base: &b {x: 1, y: 2}\n"
              "more: &m {y: 9, z: 3}\n"
              "got:\n  <<: [*b, *m]\n  x: own\n");
    struct ytree *got = ytree_get(root, "got");

    (void) state;
    assert_string_equal(ytree_get(got, "x")->text, "own");
    assert_string_equal(ytree_get(got, "y")->text, "2");
    assert_string_equal(ytree_get(got, "z")->text, "3");
    ytree_free(root);
}

static void test_anchor_inside_a_merge(void **state)
{
    struct ytree *root = parse("a:\n  <<: &in {x: 1}\nb: *in\n");

    (void) state;
    assert_string_equal(ytree_get(ytree_get(root, "b"), "x")->text, "1");
    ytree_free(root);
}

static void test_refusals(void **state)
{
    char *deep = malloc(20001);

    (void) state;
    refused("a: 1\na: 2\n", "t.yml:2: key a is there twice");
    refused("a: *nope\n", "t.yml:1: alias");
    refused("a: {b: [1}\n", "t.yml:1:");
    refused("a: 1\n---\nb: 2\n", "more than one document");
    refused("# nothing\n", "nothing but comments");
    refused("? [a]\n: 1\n", "a key must be a plain word");
    refused("a:\n  <<: 3\n", "`<<` needs a map");
    refused("a: \"x\\0y\"\n", "NUL");
    memset(deep, '[', 20000);
    deep[20000] = 0;
    refused(deep, "nested too deeply");
    free(deep);
}

static void test_alias_bomb(void **state)
{
    (void) state;
    refused("a: &a [1,2,3,4,5,6,7,8,9,0]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n"
            "c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c]\n"
            "e: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n",
            "too many values");
}

static void test_json(void **state)
{
    struct ytree *root =
        parse("{a: yes, b: '1', c: 0x1f, d: 1.5, e: ~, f: [on, 007, -3],"
              " g: 1., h: \"q\\\"\"}");
    struct buf b;

    (void) state;
    buf_init(&b, 1000);
    assert_int_equal(ytree_to_json(root, &b), 0);
    assert_string_equal(b.data,
                        "{\"a\":true,\"b\":\"1\",\"c\":\"0x1f\",\"d\":1.5,"
                        "\"e\":null,\"f\":[true,\"007\",-3],\"g\":\"1.\","
                        "\"h\":\"q\\\"\"}");
    buf_fini(&b);
    ytree_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_and_kinds),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_anchor_inside_a_merge),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_alias_bomb),
        cmocka_unit_test(test_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
