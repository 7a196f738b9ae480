/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ring of changes: what a reader is owed, when it must read everything
 * again, answers that end between commits.
 */

#include <stdio.h>

#include "core/apiserver/feed.h"
#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/io/loop.h"
#include "tests/unit/unit.h"

struct world {
    struct loop *l;
    struct feed *f;
    struct buf text;
    struct jsn *j;
};

static int setup(void **state)
{
    struct world *w = MEM_NEW(struct world);

    w->l = loop_create(NULL);
    w->f = feed_create(w->l, 4000);
    buf_init(&w->text, 1 << 20);
    *state = w;
    return w->l ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;

    jsn_free(w->j);
    buf_fini(&w->text);
    feed_destroy(w->f);
    loop_destroy(w->l);
    free(w);
    return 0;
}

static void add(struct world *w, int64_t seq, int n)
{
    char uuid[32];

    snprintf(uuid, sizeof uuid, "zzzzz-dz642-%015d", n);
    feed_add(w->f, seq, STORE_CONTAINERS, uuid);
}

/* Ask; answers the number of items. */
static size_t ask(struct world *w, const char *epoch, int64_t since)
{
    struct err err = {0};

    buf_reset(&w->text);
    feed_write(w->f, epoch, since, &w->text);
    jsn_free(w->j);
    w->j = jsn_parse(w->text.data, w->text.len, &err);
    assert_non_null(w->j);
    return jsn_count(jsn_get(w->j, "items"));
}

static int64_t cursor(struct world *w)
{
    int64_t ret = -1;

    assert_int_equal(jsn_i64(w->j, "cursor", &ret, NULL), 0);
    return ret;
}

static bool flag(struct world *w, const char *key)
{
    bool ret = false;

    assert_int_equal(jsn_bool(w->j, key, &ret, NULL), 0);
    return ret;
}

static void a_reader_gets_what_it_has_not_seen(void **state)
{
    struct world *w = *state;
    const char *epoch = feed_epoch(w->f);

    assert_false(feed_ready(w->f, epoch, 0));
    add(w, 1, 1);
    add(w, 3, 2); /* numbers of commits that changed nothing else */
    add(w, 3, 1);
    assert_true(feed_ready(w->f, epoch, 0));
    assert_int_equal(ask(w, epoch, 0), 2); /* each uuid once */
    assert_int_equal(cursor(w), 3);
    assert_false(flag(w, "more") || flag(w, "resync"));
    assert_int_equal(ask(w, epoch, 1), 2);
    assert_int_equal(ask(w, epoch, 3), 0);
    assert_false(feed_ready(w->f, epoch, 3));
}

static void a_lost_reader_is_told_to_read_again(void **state)
{
    struct world *w = *state;
    const char *epoch = feed_epoch(w->f);

    add(w, 1, 1);
    assert_true(feed_ready(w->f, "other", 1));
    assert_int_equal(ask(w, "other", 1), 0);
    assert_true(flag(w, "resync"));
    assert_int_equal(cursor(w), 1);
    assert_int_equal(ask(w, epoch, 2), 0); /* from a future */
    assert_true(flag(w, "resync"));
    for (int i = 2; i <= 4002; i++)
        add(w, i, i);
    assert_int_equal(ask(w, epoch, 1), 0); /* 2 has left the ring */
    assert_true(flag(w, "resync"));
    ask(w, epoch, 2);
    assert_false(flag(w, "resync"));
}

static void a_long_answer_ends_between_commits(void **state)
{
    struct world *w = *state;
    const char *epoch = feed_epoch(w->f);
    int64_t at;
    size_t n;

    for (int i = 0; i < 999; i++)
        add(w, 1, i);
    for (int i = 0; i < 500; i++)
        add(w, 2, 1000 + i);
    n = ask(w, epoch, 0);
    assert_int_equal(n, 999); /* not a part of commit 2 */
    assert_true(flag(w, "more"));
    at = cursor(w);
    assert_int_equal(at, 1);
    assert_int_equal(ask(w, epoch, at), 500);
    assert_false(flag(w, "more"));
}

static void one_long_commit_is_given_whole(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 1500; i++)
        add(w, 1, i);
    add(w, 2, 9999);
    assert_int_equal(ask(w, feed_epoch(w->f), 0), 1500);
    assert_true(flag(w, "more"));
    assert_int_equal(cursor(w), 1);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_reader_gets_what_it_has_not_seen),
        T(a_lost_reader_is_told_to_read_again),
        T(a_long_answer_ends_between_commits),
        T(one_long_commit_is_given_whole),
    };

    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
