/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records at the border: what is good arrives whole, each thing that can be
 * wrong is refused by its name, and nothing beyond the stated size is read.
 */

#include "tests/unit/unit.h"

#include <math.h>

#include "core/base/mem.h"
#include "core/plugin/record.h"
#include "core/port/cloud.h"

static const struct cdc_tag tags[] = {{"Set", "s1"}, {"Empty", NULL}};

static struct cdc_instance sample(void)
{
    struct cdc_instance i = {
        .size = sizeof i, .state = CDC_STATE_RUNNING, .id = "i-1",
        .create_token = "c1", .member = 2, .port = 22,
        .provider_type = "m5", .placement = "eu-1", .address = "::1",
        .user = "crunch", .tags = tags, .n_tags = 2, .created_ms = 5,
        .price = 0.5, .host_key = "ssh-ed25519 AAAA", .name = "vm 1 \xc3\xa9",
    };

    return i;
}

static void test_whole(void **state)
{
    struct cdc_instance in = sample();
    struct cloud_instance *i;
    struct err err = {0};

    (void)state;
    i = record_copy_instance(&in, &err);
    assert_non_null(i);
    assert_string_equal(i->id, "i-1");
    assert_ptr_not_equal(i->id, in.id);
    assert_string_equal(i->name, "vm 1 \xc3\xa9");
    assert_string_equal(i->create_token, "c1");
    assert_int_equal(i->member, 2);
    assert_int_equal(i->state, CLOUD_RUNNING);
    assert_int_equal(i->err.class, ERR_NONE);
    assert_string_equal(i->provider_type, "m5");
    assert_string_equal(i->placement, "eu-1");
    assert_string_equal(i->address, "::1");
    assert_string_equal(i->user, "crunch");
    assert_int_equal(i->n_tags, 2);
    assert_string_equal(i->tags[0].value, "s1");
    assert_string_equal(i->tags[1].value, "");
    assert_string_equal(i->host_key, "ssh-ed25519 AAAA");
    assert_int_equal(i->created_ms, 5);
    free(i);
}

static void test_defaults(void **state)
{
    struct cdc_instance in = {.size = sizeof in, .id = "i-1", .price = -1};
    struct cloud_instance *i = record_copy_instance(&in, NULL);

    (void)state;
    assert_non_null(i);
    assert_string_equal(i->name, "i-1");
    assert_string_equal(i->create_token, "");
    assert_string_equal(i->address, "");
    assert_string_equal(i->user, "");
    assert_null(i->host_key);
    assert_int_equal(i->state, CLOUD_PENDING);
    free(i);
}

static void test_failed(void **state)
{
    struct cdc_instance in = sample();
    struct cloud_instance *i;

    (void)state;
    in.state = CDC_STATE_FAILED;
    in.error_class = CDC_CLASS_CAPACITY;
    in.error_text = "no more of it";
    i = record_copy_instance(&in, NULL);
    assert_int_equal(i->state, CLOUD_FAILED);
    assert_int_equal(i->err.class, ERR_CAPACITY);
    assert_string_equal(i->err.text, "no more of it");
    free(i);
    in.error_class = 0;
    in.error_text = NULL;
    i = record_copy_instance(&in, NULL);
    assert_int_equal(i->err.class, ERR_INTERNAL);
    free(i);
}

/* A driver with headers of tomorrow. */
static void test_larger(void **state)
{
    struct {
        struct cdc_instance now;
        char later[64];
    } in = {.now = sample(), .later = "what nobody here knows"};
    struct cloud_instance *i;

    (void)state;
    in.now.size = sizeof in;
    i = record_copy_instance(&in.now, NULL);
    assert_non_null(i);
    free(i);
}

static void refused(struct cdc_instance in, const char *why)
{
    struct err err = {0};

    assert_null(record_copy_instance(&in, &err));
    assert_int_equal(err.class, ERR_INTERNAL);
    if (!strstr(err.text, why))
        fail_msg("'%s' is not in '%s'", why, err.text);
}

#define REFUSED(why, ...)                                                     \
    do {                                                                      \
        struct cdc_instance in = sample();                                    \
        __VA_ARGS__;                                                          \
        refused(in, why);                                                     \
    } while (0)

static void test_refused(void **state)
{
    static const struct cdc_tag no_key[] = {{"", "x"}};
    static const struct cdc_tag bad_value[] = {{"k", "a\tb"}};
    static struct cdc_tag many[CDC_TAGS_MAX + 1];
    char text[600];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    REFUSED("record of 8 bytes", in.size = 8);
    REFUSED("record of", in.size = sizeof in - 1);
    REFUSED("record of", in.size = UINT32_MAX);
    REFUSED("without an id", in.id = NULL);
    REFUSED("without an id", in.id = "");
    REFUSED("id is longer than 255", in.id = text);
    REFUSED("name is longer", in.name = text);
    REFUSED("user is longer than 63", in.user = text);
    REFUSED("error_text is longer", in.error_text = text);
    REFUSED("placement contains a control", in.placement = "a\nb");
    REFUSED("placement contains a control", in.placement = "a\x7f");
    REFUSED("name is not valid UTF-8", in.name = "\xc0\xaf");
    REFUSED("unknown state 5", in.state = 5);
    REFUSED("member -1", in.member = -1);
    REFUSED("port 65536", in.port = 65536);
    REFUSED("port -1", in.port = -1);
    REFUSED("created_ms -1", in.created_ms = -1);
    REFUSED("price", in.price = NAN);
    REFUSED("price", in.price = INFINITY);
    REFUSED("'localhost' is not an IP", in.address = "localhost");
    REFUSED("is not an IP", in.address = "1.2.3.4:22");
    REFUSED("tags at NULL", in.tags = NULL);
    REFUSED("65 tags", in.tags = many; in.n_tags = CDC_TAGS_MAX + 1);
    REFUSED("without a key", in.tags = no_key; in.n_tags = 1);
    REFUSED("tag's value contains", in.tags = bad_value; in.n_tags = 1);
    assert_null(record_copy_instance(NULL, NULL));
}

static void test_prices(void **state)
{
    const struct cdc_price good = {
        .size = sizeof good, .provider_type = "m5", .price = 0.1,
    };
    struct cdc_price p = good;
    struct err err;

    (void)state;
    assert_ok(record_check_price(&p, &err), &err);
    p.price = -0.1;
    assert_err(record_check_price(&p, &err), &err, ERR_INTERNAL);
    p = good;
    p.provider_type = NULL;
    assert_err(record_check_price(&p, &err), &err, ERR_INTERNAL);
    p = good;
    p.size = 4;
    assert_err(record_check_price(&p, &err), &err, ERR_INTERNAL);
    assert_err(record_check_price(NULL, &err), &err, ERR_INTERNAL);
}

static void test_numbers(void **state)
{
    (void)state;
    assert_int_equal(record_class(CDC_CLASS_QUOTA), ERR_QUOTA);
    assert_int_equal(record_class(CDC_CLASS_OUTCOME_UNKNOWN), ERR_UNKNOWN);
    assert_int_equal(record_class(4711), ERR_INTERNAL);
    assert_int_equal(record_scope(CDC_SCOPE_MARKET), ERR_SCOPE_MARKET);
    assert_int_equal(record_scope(4711), ERR_SCOPE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_larger),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
