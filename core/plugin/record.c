/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The border control of the driver ABI.
 *
 * A record is first copied into one of our own size (a shorter one is from an
 * older driver: the rest is zero), then checked member by member, then laid
 * out in one block of memory: the instance, its tags, its texts. What a
 * pointer points to cannot be verified; how far it is read is limited.
 *
 * Called by emit functions, on the thread that runs the driver's callback.
 */

#include "core/plugin/record.h"

#include <arpa/inet.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/port/cloud.h"

enum {
    RECORD_MIN = offsetof(struct cdc_instance, host_key) + sizeof(char *),
    RECORD_SIZE_MAX = 4096, /* beyond it the size is garbage */
    TEXT_MAX = 511,         /* error texts */
    KEY_MAX = 2048,         /* a host key; RSA 8192 bits needs 1,400 */
    USER_MAX = 63
};

enum err_class record_class(uint32_t error_class)
{
    switch (error_class) {
    case CDC_CLASS_NONE: return ERR_NONE;
    case CDC_CLASS_TRANSIENT: return ERR_TRANSIENT;
    case CDC_CLASS_RATE_LIMITED: return ERR_RATE_LIMITED;
    case CDC_CLASS_QUOTA: return ERR_QUOTA;
    case CDC_CLASS_CAPACITY: return ERR_CAPACITY;
    case CDC_CLASS_AUTH: return ERR_AUTH;
    case CDC_CLASS_CONFIG: return ERR_CONFIG;
    case CDC_CLASS_NOT_FOUND: return ERR_NOT_FOUND;
    case CDC_CLASS_UNSUPPORTED: return ERR_UNSUPPORTED;
    case CDC_CLASS_OUTCOME_UNKNOWN: return ERR_UNKNOWN;
    default: return ERR_INTERNAL;
    }
}

enum err_scope record_scope(uint32_t scope)
{
    switch (scope) {
    case CDC_SCOPE_TYPE: return ERR_SCOPE_TYPE;
    case CDC_SCOPE_ZONE: return ERR_SCOPE_ZONE;
    case CDC_SCOPE_GROUP: return ERR_SCOPE_GROUP;
    case CDC_SCOPE_MARKET: return ERR_SCOPE_MARKET;
    case CDC_SCOPE_ACCOUNT: return ERR_SCOPE_ACCOUNT;
    default: return ERR_SCOPE_NONE;
    }
}

int record_check_text(const char *text, size_t max, const char *what,
                      struct err *err)
{
    size_t n = text ? strnlen(text, max + 1) : 0;

    if (n > max)
        return err_set(err, ERR_INTERNAL, "%s is longer than %zu bytes",
                       what, max);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return err_set(err, ERR_INTERNAL,
                           "%s contains a control character", what);
    if (n && !text_is_utf8(text, n))
        return err_set(err, ERR_INTERNAL, "%s is not valid UTF-8", what);
    return 0;
}

static int check_address(const char *address, struct err *err)
{
    struct in6_addr any;

    if (!address || !address[0] || inet_pton(AF_INET, address, &any) == 1 ||
        inet_pton(AF_INET6, address, &any) == 1)
        return 0;
    return err_set(err, ERR_INTERNAL, "address '%s' is not an IP literal",
                   address);
}

static int check_tags(const struct cdc_instance *in, struct err *err)
{
    if (in->n_tags > CDC_TAGS_MAX)
        return err_set(err, ERR_INTERNAL, "%u tags, more than %d",
                       in->n_tags, CDC_TAGS_MAX);
    if (in->n_tags && !in->tags)
        return err_set(err, ERR_INTERNAL, "%u tags at NULL", in->n_tags);
    for (uint32_t i = 0; i < in->n_tags; i++) {
        const struct cdc_tag *t = &in->tags[i];

        if (!t->key || !t->key[0])
            return err_set(err, ERR_INTERNAL, "a tag without a key");
        if (record_check_text(t->key, CDC_TAG_KEY_MAX, "a tag's key", err) ||
            record_check_text(t->value, CDC_TAG_VALUE_MAX, "a tag's value",
                              err))
            return -1;
    }
    return 0;
}

static int check_numbers(const struct cdc_instance *in, struct err *err)
{
    if (in->state > CDC_STATE_FAILED)
        return err_set(err, ERR_INTERNAL, "unknown state %u", in->state);
    if (in->member < 0)
        return err_set(err, ERR_INTERNAL, "member %d", in->member);
    if (in->port < 0 || in->port > 65535)
        return err_set(err, ERR_INTERNAL, "port %d", in->port);
    if (in->created_ms < 0)
        return err_set(err, ERR_INTERNAL, "created_ms %lld",
                       (long long)in->created_ms);
    if (!isfinite(in->price))
        return err_set(err, ERR_INTERNAL, "the price is not a number");
    return 0;
}

static int check_texts(const struct cdc_instance *in, struct err *err)
{
    const struct {
        const char *text, *what;
        size_t max;
    } texts[] = {
        {in->id, "id", CDC_ID_MAX},
        {in->name, "name", CDC_ID_MAX},
        {in->create_token, "create_token", CDC_ID_MAX},
        {in->provider_type, "provider_type", CDC_ID_MAX},
        {in->placement, "placement", CDC_ID_MAX},
        {in->address, "address", CDC_ID_MAX},
        {in->user, "user", USER_MAX},
        {in->error_text, "error_text", TEXT_MAX},
        {in->host_key, "host_key", KEY_MAX},
    };

    if (!in->id || !in->id[0])
        return err_set(err, ERR_INTERNAL, "an instance without an id");
    for (size_t i = 0; i < MEM_COUNT(texts); i++)
        if (record_check_text(texts[i].text, texts[i].max, texts[i].what,
                              err))
            return -1;
    return check_address(in->address, err);
}

/* --- one block: instance, tags, texts ------------------------------------ */

struct block {
    struct cloud_instance instance;
    struct cloud_tag tags[];
};

static size_t text_size(const char *s)
{
    return (s ? strlen(s) : 0) + 1;
}

static const char *put(char **cursor, const char *s)
{
    size_t n = text_size(s);
    char *at = *cursor;

    memcpy(at, s ? s : "", n);
    *cursor += n;
    return at;
}

static size_t block_size(const struct cdc_instance *in)
{
    size_t n = sizeof(struct block) + in->n_tags * sizeof(struct cloud_tag);

    for (uint32_t i = 0; i < in->n_tags; i++)
        n += text_size(in->tags[i].key) + text_size(in->tags[i].value);
    return n + text_size(in->id) + text_size(in->name ? in->name : in->id) +
           text_size(in->create_token) + text_size(in->provider_type) +
           text_size(in->placement) + text_size(in->address) +
           text_size(in->user) + text_size(in->host_key);
}

static enum cloud_state state_of(uint32_t state)
{
    static const enum cloud_state states[] = {
        [CDC_STATE_PENDING] = CLOUD_PENDING,
        [CDC_STATE_RUNNING] = CLOUD_RUNNING,
        [CDC_STATE_STOPPING] = CLOUD_STOPPING,
        [CDC_STATE_GONE] = CLOUD_GONE,
        [CDC_STATE_FAILED] = CLOUD_FAILED,
    };

    return states[state];
}

static void copy_error(const struct cdc_instance *in, struct err *ret)
{
    if (in->state != CDC_STATE_FAILED)
        return;
    err_set(ret,
            in->error_class ? record_class(in->error_class) : ERR_INTERNAL,
            "%s", in->error_text && in->error_text[0] ? in->error_text
                                                      : "no reason given");
}

static struct cloud_instance *copy(const struct cdc_instance *in)
{
    struct block *b = mem_zalloc(block_size(in));
    char *cursor = (char *)(b->tags + in->n_tags);
    struct cloud_instance *i = &b->instance;

    i->id = put(&cursor, in->id);
    i->name = put(&cursor, in->name ? in->name : in->id);
    i->create_token = put(&cursor, in->create_token);
    i->member = in->member;
    i->state = state_of(in->state);
    copy_error(in, &i->err);
    i->provider_type = put(&cursor, in->provider_type);
    i->placement = put(&cursor, in->placement);
    i->address = put(&cursor, in->address);
    i->port = in->port;
    i->user = put(&cursor, in->user);
    for (uint32_t t = 0; t < in->n_tags; t++) {
        b->tags[t].key = put(&cursor, in->tags[t].key);
        b->tags[t].value = put(&cursor, in->tags[t].value);
    }
    i->tags = b->tags;
    i->n_tags = in->n_tags;
    i->created_ms = in->created_ms;
    i->price = in->price;
    i->host_key = in->host_key && in->host_key[0] ? put(&cursor, in->host_key)
                                                  : NULL;
    return i;
}

struct cloud_instance *record_copy_instance(const struct cdc_instance *in,
                                            struct err *err)
{
    struct cdc_instance own = {0};

    if (!in || in->size < RECORD_MIN || in->size > RECORD_SIZE_MAX) {
        err_set(err, ERR_INTERNAL, "an instance record of %u bytes",
                in ? in->size : 0);
        return NULL;
    }
    memcpy(&own, in, in->size < sizeof own ? in->size : sizeof own);
    if (check_numbers(&own, err) || check_texts(&own, err) ||
        check_tags(&own, err))
        return NULL;
    return copy(&own);
}

int record_check_price(const struct cdc_price *in, struct err *err)
{
    if (!in || in->size < sizeof *in || in->size > RECORD_SIZE_MAX)
        return err_set(err, ERR_INTERNAL, "a price record of %u bytes",
                       in ? in->size : 0);
    if (!in->provider_type || !in->provider_type[0])
        return err_set(err, ERR_INTERNAL, "a price without a type");
    if (in->start_ms < 0 || !isfinite(in->price) || in->price < 0)
        return err_set(err, ERR_INTERNAL, "an absurd price or time");
    if (record_check_text(in->provider_type, CDC_ID_MAX, "provider_type",
                          err) ||
        record_check_text(in->placement, CDC_ID_MAX, "placement", err))
        return -1;
    return 0;
}

static int has_tag(const struct cloud_instance *i, const struct cdc_tag *tag)
{
    for (size_t t = 0; t < i->n_tags; t++)
        if (strcmp(i->tags[t].key, tag->key) == 0)
            return strcmp(i->tags[t].value, tag->value) == 0;
    return 0;
}

int record_has_tags(const struct cloud_instance *i,
                    const struct cdc_tag *filter, uint32_t n_filter)
{
    for (uint32_t f = 0; f < n_filter; f++)
        if (!has_tag(i, &filter[f]))
            return 0;
    return 1;
}
