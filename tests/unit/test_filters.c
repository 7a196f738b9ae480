/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Filters and orders from JSON through the store's SQL to rows: every operator
 * with the null behaviour of the Arvados API, operands of other types, what is
 * refused, keyset pages.
 */

#include "core/apiserver/filters.h"
#include "core/apiserver/resource.h"
#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "tests/unit/store_util.h"

static struct store_world world;

/* ---------------------------------------------------------------- rows -- */

static const struct {
    const char *uuid, *state, *log, *status, *properties, *image;
    int64_t priority, created, exit_code;
} rows[] = {
    {"a", "Queued", NULL, "{}", "{}", "Host", 1, 1000001, -1},
    {"b", "Queued", NULL, "{\"error\":\"x\"}", "{\"k\":[\"v\",\"w\"]}",
     "host_1", 2, 1000001, -1},
    {"c", "Locked", NULL, "{\"error\":null}", "{\"k\":\"v\"}", "hostx", 0,
     1000002, -1},
    {"d", "Complete", "L", "{\"n\":3}", "{\"k\":{\"q\":\"v\"}}", "other",
     INT64_C(562948157387421643), 1000003, 0},
    {"e", "Complete", "M", "{}", "{}", "50%", 5, 1000004, 7},
};

static void fill(struct store_row *row, enum store_table t)
{
    for (unsigned col = 0; col < store_col_count(t); col++) {
        const struct store_col *c = store_col(t, col);
        if (c->flags & STORE_NULLABLE)
            continue;
        if (c->type == STORE_JSON)
            store_set_str(row, col, "{}");
        else if (c->type == STORE_STR)
            store_set_str(row, col, "");
        else if (c->type == STORE_F64)
            store_set_f64(row, col, 0);
        else
            store_set_i64(row, col, 0);
    }
}

static enum store_next insert_rows(void *arg, struct store_tx *tx)
{
    struct err err = {0};

    (void) arg;
    for (size_t i = 0; i < MEM_COUNT(rows); i++) {
        CLEANUP(store_row_fini) struct store_row row = {0};
        fill(&row, STORE_CONTAINERS);
        store_set_str(&row, C_uuid, rows[i].uuid);
        store_set_str(&row, C_state, rows[i].state);
        store_set_str(&row, C_log, rows[i].log);
        store_set_str(&row, C_runtime_status, rows[i].status);
        store_set_str(&row, C_output_properties, rows[i].properties);
        store_set_str(&row, C_container_image, rows[i].image);
        store_set_i64(&row, C_priority, rows[i].priority);
        store_set_i64(&row, C_created_at, rows[i].created);
        store_set_i64(&row, C_modified_at, -rows[i].created);
        if (rows[i].exit_code >= 0)
            store_set_i64(&row, C_exit_code, rows[i].exit_code);
        assert_ok(store_insert(tx, STORE_CONTAINERS, &row, &err), &err);
    }
    for (int i = 0; i < 3; i++) {
        CLEANUP(store_row_fini) struct store_row row = {0};
        char uuid[2] = {(char) ('r' + i), 0};
        fill(&row, STORE_REQUESTS);
        store_set_str(&row, R_uuid, uuid);
        store_set_str(&row, R_owner_uuid, i == 0 ? "me" : "you");
        if (i < 2)
            store_set_str(&row, R_container_uuid, i ? "b" : "d");
        assert_ok(store_insert(tx, STORE_REQUESTS, &row, &err), &err);
    }
    return STORE_DONE;
}

static int setup(void **state)
{
    (void) state;
    store_world_make(&world);
    store_world_open(&world);
    store_run(&world, STORE_WRITE, insert_rows, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void) state;
    store_world_end(&world);
    return 0;
}

/* ------------------------------------------------------------- queries -- */

struct ask {
    struct store_query q;
    char found[32];
    int64_t count;
};

static bool note(void *arg, const struct store_row *row)
{
    struct ask *a = arg;
    size_t n = strlen(a->found);

    snprintf(a->found + n, sizeof a->found - n, "%s", store_str(row, 0));
    return true;
}

static enum store_next run_query(void *arg, struct store_tx *tx)
{
    struct ask *a = arg;
    struct err err = {0};

    assert_ok(store_find(tx, &a->q, note, a, &err), &err);
    assert_ok(store_count(tx, &a->q, &a->count, &err), &err);
    return STORE_DONE;
}

/* The uuids that match, in order; filters in JSON with ' for ". */
static const char *find(enum store_table t, const char *filters,
                        const char *order, const char *reader)
{
    static struct ask a;
    struct filters f = {0};
    struct err err = {0};
    char *text = mem_strdup(filters);

    for (char *s = text; *s; s++)
        if (*s == '\'')
            *s = '"';
    struct jsn *j = jsn_parse(text, strlen(text), &err);
    assert_non_null(j);
    assert_ok(filters_read(&f, resource_of(t), j, &err), &err);
    filters_order_add(&f, resource_of(t), order);
    filters_order_end(&f, resource_of(t), STORE_ALL);
    a = (struct ask){.q = {.table = t, .cols = STORE_ALL,
                           .conds = f.conds.v, .n_conds = f.conds.n,
                           .order = f.order.v, .n_order = f.order.n,
                           .limit = 100, .reader = reader}};
    store_run(&world, STORE_READ, run_query, &a);
    assert_int_equal(a.count, strlen(a.found));
    filters_fini(&f);
    jsn_free(j);
    free(text);
    return a.found;
}

#define FINDS(filters, expected)                                              \
    assert_string_equal(find(STORE_CONTAINERS, filters, "uuid", NULL),        \
                        expected)

static void operators(void **state)
{
    (void) state;
    FINDS("[]", "abcde");
    FINDS("[['state','=','Queued']]", "ab");
    FINDS("[['state','!=','Queued']]", "cde");
    FINDS("[['state','<>','Queued'],['uuid','>','c']]", "de");
    FINDS("[['uuid','<=','b']]", "ab");
    FINDS("[['uuid','<','b']]", "a");
    FINDS("[['uuid','>=','d']]", "de");
    FINDS("[['uuid','in',['a','e','z']]]", "ae");
    FINDS("[['uuid','in',[]]]", "");
    FINDS("[['uuid','not in',['a','e']]]", "bcd");
    FINDS("[['uuid','NOT IN',['a','e']]]", "bcd");
}

static void nulls(void **state)
{
    (void) state;
    FINDS("[['log','=',null]]", "abc");
    FINDS("[['log','!=',null]]", "de");
    FINDS("[['log','!=','L']]", "abce"); /* true for null */
    FINDS("[['log','not in',['L']]]", "abce");
    FINDS("[['log','in',['L',null]]]", "abcd");
    FINDS("[['log','not in',['L',null]]]", "e");
    FINDS("[['exit_code','=',0]]", "d");
    FINDS("[['exit_code','!=',0]]", "abce");
}

static void numbers_times_booleans(void **state)
{
    (void) state;
    FINDS("[['priority','>','0']]", "abde"); /* what dispatchers send */
    FINDS("[['priority','>',0]]", "abde");
    FINDS("[['priority','=',562948157387421643]]", "d");
    FINDS("[['priority','=','562948157387421643']]", "d");
    FINDS("[['priority','in',[1,'2']]]", "ab");
    FINDS("[['created_at','=','1970-01-01T00:00:01.000001000Z']]", "ab");
    FINDS("[['created_at','>','1970-01-01T00:00:01.000002Z']]", "de");
    FINDS("[['service','=',false]]", "abcde");
    FINDS("[['service','=','yes']]", "");
}

static void patterns(void **state)
{
    (void) state;
    FINDS("[['container_image','like','host%']]", "bc");
    FINDS("[['container_image','ilike','HOST%']]", "abc");
    FINDS("[['container_image','like','host_1']]", "b");
    FINDS("[['container_image','like','host\\\\_%']]", "b");
    FINDS("[['container_image','like','%\\\\%']]", "e");
}

static void members_of_json(void **state)
{
    (void) state;
    FINDS("[['runtime_status.error','=','x']]", "b");
    FINDS("[['runtime_status.error','!=','x']]", "acde");
    FINDS("[['runtime_status.n','=',3]]", "d");
    FINDS("[['runtime_status','exists','error']]", "bc");
    FINDS("[['runtime_status.error','exists',true]]", "bc");
    FINDS("[['runtime_status.error','exists',false]]", "ade");
    FINDS("[['output_properties.k','contains','v']]", "bc");
    FINDS("[['output_properties.k','contains',['v','w']]]", "b");
    FINDS("[['output_properties.k','in',['v','u']]]", "c");
}

static void columns_with_columns(void **state)
{
    (void) state;
    FINDS("['(modified_at < created_at)']", "abcde");
    FINDS("['(created_at < modified_at)']", "");
}

static void requests_and_their_containers(void **state)
{
    (void) state;
#define R(filters, expected)                                                  \
    assert_string_equal(find(STORE_REQUESTS, filters, "uuid", NULL), expected)
    R("[['container.state','=','Complete']]", "r");
    R("[['container.state','!=','Complete']]", "st"); /* t has none */
    R("[['container.priority','<','3']]", "s");
    R("[['container_uuid','is_a','arvados#container']]", "");
    R("[['container_uuid','=',null]]", "t");
#undef R
}

static void a_user_sees_what_is_his(void **state)
{
    (void) state;
    assert_string_equal(find(STORE_REQUESTS, "[]", "uuid", "me"), "r");
    assert_string_equal(find(STORE_CONTAINERS, "[]", "uuid", "me"), "d");
    assert_string_equal(find(STORE_CONTAINERS, "[['uuid','=','b']]", "uuid",
                             "me"), "");
}

static void orders(void **state)
{
    static const struct {
        const char *order, *expected;
    } cases[] = {
        {"uuid desc", "edcba"},
        {"priority desc", "debac"},
        {"containers.priority asc", "cabed"},
        {"created_at", "bacde"},    /* a tie: modified_at, uuid, desc */
        {"exit_code asc", "debac"}, /* nulls last */
        {"nonsense", "bacde"},
        {"uuid sideways", "bacde"},
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(cases); i++)
        assert_string_equal(find(STORE_CONTAINERS, "[]", cases[i].order,
                                 NULL), cases[i].expected);
}

static void an_order_outside_the_select_is_dropped(void **state)
{
    struct filters f = {0};
    const struct resource *r = resource_of(STORE_CONTAINERS);

    (void) state;
    filters_order_add(&f, r, "priority desc");
    filters_order_end(&f, r, STORE_BIT(C_priority) | STORE_BIT(C_uuid));
    assert_int_equal(f.order.n, 2);
    assert_int_equal(f.order.v[0].col, C_priority);
    assert_int_equal(f.order.v[1].col, C_uuid);
    assert_true(f.order.v[1].desc);
    filters_fini(&f);
}

static void wrong_filters_are_refused(void **state)
{
    static const char *const wrong[] = {
        "{}", "[1]", "[[]]", "[['uuid','=']]", "[['nope','=','x']]",
        "[['uuid','~','x']]", "[['uuid','@@','x']]", "[['uuid','=',1]]",
        "[['uuid','=',['a']]]", "[['uuid','in','a']]",
        "[['priority','=',1.5]]", "[['priority','=','1x']]",
        "[['priority','like','1']]", "[['uuid','<',null]]",
        "[['created_at','=','yesterday']]", "[['uuid.x','=','y']]",
        "[['secret_mounts','=','{}']]", "[['spec_hash','=','x']]",
        "[['uuid','exists','x']]", "[['mounts.a\\\"b','=','x']]",
        "[['service','=','maybe']]", "['(a < b)']", "['(uuid < state']",
        "['(uuid < state); drop']", "[['log','is_a','nonsense']]",
    };

    (void) state;
    for (size_t i = 0; i < MEM_COUNT(wrong); i++) {
        struct filters f = {0};
        struct err err = {0};
        char *text = mem_strdup(wrong[i]);
        for (char *s = text; *s; s++)
            if (*s == '\'')
                *s = '"';
        struct jsn *j = jsn_parse(text, strlen(text), &err);
        assert_non_null(j);
        if (filters_read(&f, resource_of(STORE_CONTAINERS), j, &err) == 0)
            fail_msg("%s was accepted", wrong[i]);
        assert_int_equal(err.class, ERR_INVALID);
        filters_fini(&f);
        jsn_free(j);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators),
        cmocka_unit_test(nulls),
        cmocka_unit_test(numbers_times_booleans),
        cmocka_unit_test(patterns),
        cmocka_unit_test(members_of_json),
        cmocka_unit_test(columns_with_columns),
        cmocka_unit_test(requests_and_their_containers),
        cmocka_unit_test(a_user_sees_what_is_his),
        cmocka_unit_test(orders),
        cmocka_unit_test(an_order_outside_the_select_is_dropped),
        cmocka_unit_test(wrong_filters_are_refused),
    };

    return cmocka_run_group_tests_name("filters", tests, setup, teardown);
}
