/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The host table: each function finds the living call behind the handle it is
 * given (call.h), checks that what is asked for fits to that kind of call,
 * and does it under the call's lock. Functions that block (sleep_ms,
 * run_process) hold a reference instead of the lock.
 *
 * Everything here runs on a thread that executes driver code; nothing touches
 * the loop. Nothing trusts an argument further than it can be checked.
 */

#include "core/plugin/hosttab.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cdc/driver.h>

#include "core/base/clock.h"
#include "core/base/jsn.h"
#include "core/base/logger.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/plugin/call.h"
#include "core/plugin/jsonview.h"
#include "core/plugin/process.h"
#include "core/plugin/record.h"
#include "core/port/cloud.h"

enum { LOG_MAX = 1024, PRICES_MAX = 100000, JSON_MAX = 16 << 20 };

static struct logger *fallback; /* atomic */

void hosttab_set_log(struct logger *log)
{
    __atomic_store_n(&fallback, log, __ATOMIC_RELEASE);
}

/* --- always allowed ------------------------------------------------------ */

static enum log_level level_of(uint32_t level)
{
    switch (level) {
    case CDC_LOG_DEBUG: return LOG_DEBUG;
    case CDC_LOG_WARNING: return LOG_WARN;
    case CDC_LOG_ERROR: return LOG_ERROR;
    default: return LOG_INFO;
    }
}

CDC_PRINTF(3, 4)
static void host_log(struct cdc_op *op, uint32_t level, const char *fmt, ...)
{
    struct call *c = call_find(op);
    char text[LOG_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (c)
        log_event(c->origin->log, level_of(level), text, "Backend",
                  c->origin->backend, "Driver", c->origin->driver, "Call",
                  call_label(c->kind), NULL);
    else
        log_event(__atomic_load_n(&fallback, __ATOMIC_ACQUIRE),
                  level_of(level), text, NULL);
    call_unref(c);
}

static int64_t host_now_ms(void)
{
    return clock_wall_us() / 1000;
}

static int64_t host_mono_ms(void)
{
    return clock_mono_us() / 1000;
}

/* --- the call in hand ---------------------------------------------------- */

static void flatten(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = ' ';
}

CDC_PRINTF(7, 8)
static int32_t host_fail(struct cdc_op *op, uint32_t error_class,
                         uint32_t scope, int64_t retry_after_ms,
                         const char *code, const char *request_id,
                         const char *fmt, ...)
{
    struct call *c = call_get(op);
    char text[sizeof c->err.text];
    va_list ap;

    if (!c)
        return -1;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(&c->err, record_class(error_class), "%s", text);
    c->err.scope = record_scope(scope);
    c->err.retry_ms = retry_after_ms > 0 ? retry_after_ms : 0;
    text_copy(c->err.code, code ? code : "", sizeof c->err.code);
    text_copy(c->err.request_id, request_id ? request_id : "",
              sizeof c->err.request_id);
    flatten(c->err.text);
    flatten(c->err.code);
    flatten(c->err.request_id);
    c->failed = true;
    call_put(c);
    return -1;
}

static int32_t host_cancelled(struct cdc_op *op)
{
    struct call *c = call_find(op);
    int32_t yes = !c || call_is_cancelled(c);

    call_unref(c);
    return yes;
}

static int64_t host_deadline_ms(struct cdc_op *op)
{
    struct call *c = call_find(op);
    int64_t left = c ? call_left_ms(c) : 0;

    call_unref(c);
    return left;
}

/* The full time, or -1 as soon as the call is cancelled or out of time. */
static int32_t sleep_until(struct call *c, int64_t end_us)
{
    struct pollfd p = {.fd = c->wake_fd, .events = POLLIN};
    int64_t left;

    for (;;) {
        left = (end_us - clock_mono_us() + 999) / 1000;
        if (call_is_cancelled(c))
            return -1;
        if (left <= 0)
            return 0;
        if (left > call_left_ms(c))
            left = call_left_ms(c);
        poll(&p, 1, left < 60000 ? (int)left : 60000);
    }
}

static int32_t host_sleep_ms(struct cdc_op *op, int64_t ms)
{
    struct call *c = call_find(op);
    int32_t rc;

    if (!c)
        return -1;
    if (ms > INT64_C(86400000))
        ms = INT64_C(86400000);
    rc = sleep_until(c, clock_mono_us() + (ms > 0 ? ms : 0) * 1000);
    call_unref(c);
    return rc;
}

/* --- results ------------------------------------------------------------- */

/* Garbage: remember the first. */
static int32_t malformed(struct call *c, const struct err *err)
{
    if (!c->malformed)
        c->bad = *err;
    c->malformed = true;
    return -1;
}

static int32_t misplaced(struct call *c, const char *what)
{
    struct err err = {0};

    err_set(&err, ERR_INTERNAL, "%s in %s", what, call_label(c->kind));
    return malformed(c, &err);
}

static int32_t add_instance(struct call *c, const struct cdc_instance *in)
{
    struct cloud_instance *i;
    struct err err = {0};

    if (c->kind != CALL_LIST && c->kind != CALL_CREATE)
        return misplaced(c, "an instance");
    if (c->instances.n == CDC_INSTANCES_MAX)
        return misplaced(c, "too many instances");
    if (!(i = record_copy_instance(in, &err)))
        return malformed(c, &err);
    VEC_PUSH(&c->instances, i);
    return 0;
}

static int32_t host_emit_instance(struct cdc_op *op,
                                  const struct cdc_instance *instance)
{
    struct call *c = call_get(op);
    int32_t rc;

    if (!c)
        return -1;
    rc = add_instance(c, instance);
    call_put(c);
    return rc;
}

static char *keep_text(struct call *c, const char *s)
{
    char *copy = mem_strdup(s ? s : "");

    VEC_PUSH(&c->scratch, copy);
    return copy;
}

static int32_t add_price(struct call *c, const struct cdc_price *in)
{
    struct cdc_price own;
    struct err err = {0};

    if (c->kind != CALL_PRICE_HISTORY)
        return misplaced(c, "a price");
    if (c->prices.n == PRICES_MAX)
        return misplaced(c, "too many prices");
    if (record_check_price(in, &err))
        return malformed(c, &err);
    own = *in;
    own.size = sizeof own;
    own.provider_type = keep_text(c, in->provider_type);
    own.placement = keep_text(c, in->placement);
    VEC_PUSH(&c->prices, own);
    return 0;
}

static int32_t host_emit_price(struct cdc_op *op,
                               const struct cdc_price *price)
{
    struct call *c = call_get(op);
    int32_t rc;

    if (!c)
        return -1;
    rc = add_price(c, price);
    call_put(c);
    return rc;
}

static int32_t add_unknown(struct call *c, const char *placement)
{
    struct err err = {0};

    if (c->kind != CALL_LIST)
        return misplaced(c, "an unknown scope");
    if (record_check_text(placement, CDC_ID_MAX, "placement", &err))
        return malformed(c, &err);
    /* When the buffer is full the list is still known to be partial. */
    buf_printf(&c->unknown, "%s%s", c->unknown.len ? "," : "",
               placement ? placement : "");
    c->has_unknown = true;
    return 0;
}

static int32_t host_emit_unknown_scope(struct cdc_op *op,
                                       const char *placement)
{
    struct call *c = call_get(op);
    int32_t rc;

    if (!c)
        return -1;
    rc = add_unknown(c, placement);
    call_put(c);
    return rc;
}

static int32_t add_fact(struct call *c, const char *key, const char *value)
{
    struct err err = {0};

    if (c->kind != CALL_DESCRIBE)
        return misplaced(c, "a fact");
    if (record_check_text(key, CDC_ID_MAX, "a fact's key", &err) ||
        record_check_text(value, CDC_TAG_VALUE_MAX, "a fact's value", &err))
        return malformed(c, &err);
    return buf_printf(&c->facts, "%s: %s\n", key ? key : "",
                      value ? value : "");
}

static int32_t host_emit_fact(struct cdc_op *op, const char *key,
                              const char *value)
{
    struct call *c = call_get(op);
    int32_t rc;

    if (!c)
        return -1;
    rc = add_fact(c, key, value);
    call_put(c);
    return rc;
}

static int32_t host_set_caps(struct cdc_op *op, uint32_t caps)
{
    struct call *c = call_get(op);
    int32_t rc = 0;

    if (!c)
        return -1;
    if (c->kind == CALL_OPEN) {
        c->caps = caps;
        c->caps_set = true;
    } else {
        rc = misplaced(c, "set_caps");
    }
    call_put(c);
    return rc;
}

/* --- JSON and processes -------------------------------------------------- */

/* The reason of a call that may have ended meanwhile. */
static void note_failure(struct cdc_op *op, const struct err *why)
{
    struct call *c = call_get(op);

    if (!c)
        return;
    c->err = *why;
    c->failed = true;
    call_put(c);
}

static const struct cdc_json *parse(struct call *c, const char *text,
                                    uint64_t len)
{
    struct err err = {0};
    struct jsn *j = NULL;

    if (!text || len > JSON_MAX)
        err_set(&err, ERR_INVALID, "a text of %llu bytes",
                (unsigned long long)len);
    else
        j = jsn_parse(text, (size_t)len, &err);
    if (!j) {
        c->failed = true;
        err_set(&c->err, ERR_INTERNAL, "malformed JSON: %s", err.text);
        return NULL;
    }
    VEC_PUSH(&c->values, j);
    return jsonview_of(j);
}

static const struct cdc_json *host_json_parse(struct cdc_op *op,
                                              const char *text, uint64_t len)
{
    struct call *c = call_get(op);
    const struct cdc_json *j;

    if (!c)
        return NULL;
    j = parse(c, text, len);
    call_put(c);
    return j;
}

static int32_t host_run_process(struct cdc_op *op,
                                const struct cdc_process *process,
                                struct cdc_process_result *result)
{
    struct call *c = call_find(op);
    struct err err = {0};
    int rc;

    if (!c)
        return -1;
    rc = process_run(c, process, result, &err);
    if (rc)
        note_failure(op, &err);
    call_unref(c);
    return rc;
}

static const struct cdc_host host = {
    .size = sizeof(struct cdc_host),
    .abi_major = CDC_ABI_MAJOR,
    .abi_minor = CDC_ABI_MINOR,
    .log = host_log,
    .now_ms = host_now_ms,
    .mono_ms = host_mono_ms,
    .fail = host_fail,
    .cancelled = host_cancelled,
    .deadline_ms = host_deadline_ms,
    .sleep_ms = host_sleep_ms,
    .emit_instance = host_emit_instance,
    .emit_price = host_emit_price,
    .emit_unknown_scope = host_emit_unknown_scope,
    .emit_fact = host_emit_fact,
    .set_caps = host_set_caps,
    .json_type = jsonview_type,
    .json_count = jsonview_count,
    .json_get = jsonview_get,
    .json_at = jsonview_at,
    .json_key = jsonview_key,
    .json_str = jsonview_str,
    .json_i64 = jsonview_i64,
    .json_f64 = jsonview_f64,
    .json_bool = jsonview_bool,
    .json_parse = host_json_parse,
    .run_process = host_run_process,
};

const struct cdc_host *hosttab_get(void)
{
    return &host;
}
