/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/map: against a plain array as the model, and balanced. */
#include "tests/unit/unit.h"

#include <stdio.h>

/* The source itself: balance cannot be seen from outside. */
#include "core/base/map.c"

static int freed;

static void count_free(void *value)
{
    free(value);
    freed++;
}

static void cleanup_map(struct map **m)
{
    map_destroy(*m);
}

static void test_set_get_delete(void **state)
{
    (void) state;
    CLEANUP(cleanup_map) struct map *m = map_create(NULL);
    int a, b;
    assert_null(map_get(m, "x"));
    assert_false(map_delete(m, "x"));
    map_set(m, "x", &a);
    map_set(m, "y", &b);
    assert_ptr_equal(map_get(m, "x"), &a);
    map_set(m, "x", &b);
    assert_ptr_equal(map_get(m, "x"), &b);
    assert_int_equal(map_count(m), 2);
    assert_true(map_delete(m, "x"));
    assert_null(map_get(m, "x"));
    assert_ptr_equal(map_take(m, "y"), &b);
    assert_null(map_take(m, "y"));
    assert_int_equal(map_count(m), 0);
    map_destroy(NULL);
}

static void test_ownership(void **state)
{
    (void) state;
    struct map *m = map_create(count_free);
    freed = 0;
    map_set(m, "a", mem_strdup("1"));
    map_set(m, "a", mem_strdup("2")); /* frees 1 */
    assert_int_equal(freed, 1);
    map_set(m, "a", map_get(m, "a")); /* the same value: nothing */
    assert_int_equal(freed, 1);
    map_set(m, "b", mem_strdup("3"));
    map_set(m, "c", mem_strdup("4"));
    CLEANUP(mem_free) char *taken = map_take(m, "b");
    assert_int_equal(freed, 1);
    assert_string_equal(taken, "3");
    map_delete(m, "a");
    assert_int_equal(freed, 2);
    map_clear(m);
    assert_int_equal(freed, 3);
    assert_int_equal(map_count(m), 0);
    map_set(m, "d", mem_strdup("5"));
    map_destroy(m);
    assert_int_equal(freed, 4);
}

enum { KEYS = 300 };

/* The invariants of an AA tree, as map.c states them. */
static void check_balance(const struct node *t)
{
    if (!t)
        return;
    assert_int_equal(level(t->left) + 1, t->level);
    assert_true(level(t->right) == t->level ||
                level(t->right) + 1 == t->level);
    assert_true(!t->right || level(t->right->right) < t->level);
    check_balance(t->left);
    check_balance(t->right);
}

static void check_against(struct map *m, const char *present)
{
    check_balance(m->root);
    const char *key = NULL;
    char want[16];
    size_t n = 0;
    int i = 0;
    while (map_next(m, &key)) {
        while (!present[i])
            i++;
        snprintf(want, sizeof want, "k%03d", i++);
        assert_string_equal(key, want);
        n++;
    }
    assert_int_equal(n, map_count(m));
    for (; i < KEYS; i++)
        assert_false(present[i]);
}

static void test_random_order(void **state)
{
    (void) state;
    CLEANUP(cleanup_map) struct map *m = map_create(NULL);
    char present[KEYS] = {0};
    uint32_t rnd = 12345;
    for (int step = 0; step < 20000; step++) {
        char key[16];
        rnd = rnd * 1664525 + 1013904223;
        int i = (int) (rnd >> 8) % KEYS;
        snprintf(key, sizeof key, "k%03d", i);
        /* Phases of growth and of shrinking. */
        if ((rnd >> 28) < (step / 2000 % 2 ? 5u : 11u)) {
            map_set(m, key, &present[i]);
            present[i] = 1;
        } else {
            assert_int_equal(map_delete(m, key), present[i]);
            present[i] = 0;
        }
        assert_ptr_equal(map_get(m, key), present[i] ? &present[i] : NULL);
        if (step % 50 == 0)
            check_against(m, present);
    }
    check_against(m, present);
}

static void test_ascending_and_drain(void **state)
{
    (void) state;
    CLEANUP(cleanup_map) struct map *m = map_create(NULL);
    char present[KEYS] = {0};
    char key[16];
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "k%03d", i);
        map_set(m, key, &present[i]);
        present[i] = 1;
    }
    check_against(m, present);
    for (int i = 0; i < KEYS; i += 2) {
        snprintf(key, sizeof key, "k%03d", i);
        assert_true(map_delete(m, key));
        present[i] = 0;
        check_against(m, present);
    }
}

/* Iteration goes on behind a key that is not in the map any more. */
static void test_next_after_delete(void **state)
{
    (void) state;
    CLEANUP(cleanup_map) struct map *m = map_create(NULL);
    int v;
    map_set(m, "a", &v);
    map_set(m, "b", &v);
    map_set(m, "c", &v);
    const char *key = "b";
    map_delete(m, "b");
    assert_ptr_equal(map_next(m, &key), &v);
    assert_string_equal(key, "c");
    assert_null(map_next(m, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_get_delete),
        cmocka_unit_test(test_ownership),
        cmocka_unit_test(test_random_order),
        cmocka_unit_test(test_ascending_and_drain),
        cmocka_unit_test(test_next_after_delete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
