/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The translation between the driver ABI and the JSON of a VM program.
 *
 * Three kinds of endings are told apart. Exit 0 with an object: a reply.
 * Exit 1 with an error object: the program knows what happened, its class is
 * believed. Everything else (a signal, another code, no JSON) says nothing
 * about effects: OUTCOME_UNKNOWN. Exit 2 is the one exception: a wrong
 * command line, by convention found out before anything is done.
 *
 * Runs on the host's worker threads; keeps nothing between calls.
 */

#include "drivers/common/vmprog.h"

#include <string.h>

enum { STDERR_LINES = 50 };

/* --- errors ---------------------------------------------------------------- */

static uint32_t class_of(const char *label)
{
    static const struct {
        const char *label;
        uint32_t class;
    } classes[] = {
        {"transient", CDC_CLASS_TRANSIENT},
        {"rate-limited", CDC_CLASS_RATE_LIMITED},
        {"quota", CDC_CLASS_QUOTA},
        {"capacity", CDC_CLASS_CAPACITY},
        {"auth", CDC_CLASS_AUTH},
        {"config", CDC_CLASS_CONFIG},
        {"not-found", CDC_CLASS_NOT_FOUND},
        {"unsupported", CDC_CLASS_UNSUPPORTED},
        {"outcome-unknown", CDC_CLASS_OUTCOME_UNKNOWN},
        {"timeout", CDC_CLASS_OUTCOME_UNKNOWN},
        {"cancelled", CDC_CLASS_OUTCOME_UNKNOWN},
        {"conflict", CDC_CLASS_TRANSIENT},
    };

    for (size_t i = 0; label && i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(label, classes[i].label) == 0)
            return classes[i].class;
    return CDC_CLASS_INTERNAL;
}

static uint32_t scope_of(const char *label)
{
    static const char *const scopes[] = {
        [CDC_SCOPE_NONE] = "none", [CDC_SCOPE_TYPE] = "type",
        [CDC_SCOPE_ZONE] = "zone", [CDC_SCOPE_GROUP] = "group",
        [CDC_SCOPE_MARKET] = "market", [CDC_SCOPE_ACCOUNT] = "account",
    };

    for (uint32_t i = 0; label && i < sizeof scopes / sizeof scopes[0]; i++)
        if (strcmp(label, scopes[i]) == 0)
            return i;
    return CDC_SCOPE_NONE;
}

static const char *text_in(const struct vmprog *p, const struct cdc_json *j,
                           const char *key)
{
    return p->host->json_str(p->host->json_get(j, key));
}

static void fail_as_told(const struct vmprog *p, struct cdc_op *op,
                         const char *verb, const struct cdc_json *error)
{
    const char *text = text_in(p, error, "text");
    int64_t retry_ms = 0;

    p->host->json_i64(p->host->json_get(error, "retry_ms"), &retry_ms);
    p->host->fail(op, class_of(text_in(p, error, "class")),
                  scope_of(text_in(p, error, "scope")), retry_ms,
                  text_in(p, error, "code"), NULL, "%s: %s", verb,
                  text ? text : "no text");
}

/* --- one call ----------------------------------------------------------------- */

/* Each line of standard error becomes one of the log. */
static void log_remarks(const struct vmprog *p, struct cdc_op *op,
                        const struct cdc_process_result *r)
{
    const char *line = r->err;

    for (int i = 0; i < STDERR_LINES && *line; i++) {
        size_t n = strcspn(line, "\n");

        if (n)
            p->host->log(op, CDC_LOG_INFO, "%.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static const struct cdc_json *judge(const struct vmprog *p,
                                    struct cdc_op *op, const char *verb,
                                    const struct cdc_process_result *r)
{
    const struct cdc_host *h = p->host;
    const struct cdc_json *reply = NULL, *error;

    if ((r->exit_code == 0 || r->exit_code == 1) && !r->truncated)
        reply = h->json_parse(op, r->out, r->out_len);
    error = h->json_get(reply, "error");
    if (r->exit_code == 0 && reply)
        return reply;
    if (r->exit_code == 1 && error)
        fail_as_told(p, op, verb, error);
    else if (r->exit_code == 2)
        h->fail(op, CDC_CLASS_CONFIG, CDC_SCOPE_NONE, 0, NULL, NULL,
                "%s %s: %.*s", p->program, verb,
                (int)strcspn(r->err, "\n"), r->err);
    else if (r->term_signal)
        h->fail(op, CDC_CLASS_OUTCOME_UNKNOWN, CDC_SCOPE_NONE, 0, NULL, NULL,
                "%s %s: ended by signal %d", p->program, verb,
                r->term_signal);
    else
        h->fail(op, CDC_CLASS_OUTCOME_UNKNOWN, CDC_SCOPE_NONE, 0, NULL, NULL,
                "%s %s: exit code %d without a proper reply", p->program,
                verb, r->exit_code);
    return NULL;
}

const struct cdc_json *vmprog_call(const struct vmprog *p, struct cdc_op *op,
                                   const char *verb, const struct jsonw *in)
{
    const char *argv[VMPROG_OPTIONS + 3] = {p->program};
    struct cdc_process process = {.size = sizeof process, .argv = argv};
    struct cdc_process_result result = {.size = sizeof result};
    size_t n = 1;

    if (in->failed) {
        p->host->fail(op, CDC_CLASS_INTERNAL, CDC_SCOPE_NONE, 0, NULL, NULL,
                      "%s: the request is too large", verb);
        return NULL;
    }
    for (size_t i = 0; p->options && p->options[i] && i < VMPROG_OPTIONS; i++)
        argv[n++] = p->options[i];
    argv[n] = verb;
    process.max_output = 16u << 20; /* a list of thousands */
    process.input = in->text;
    process.input_len = in->len;
    if (p->host->run_process(op, &process, &result))
        return NULL;
    log_remarks(p, op, &result);
    return judge(p, op, verb, &result);
}

/* --- instance records --------------------------------------------------------- */

static uint32_t state_of(const char *label)
{
    static const char *const states[] = {
        [CDC_STATE_PENDING] = "pending", [CDC_STATE_RUNNING] = "running",
        [CDC_STATE_STOPPING] = "stopping", [CDC_STATE_GONE] = "gone",
        [CDC_STATE_FAILED] = "failed",
    };

    for (uint32_t i = 0; label && i < sizeof states / sizeof states[0]; i++)
        if (strcmp(label, states[i]) == 0)
            return i;
    return UINT32_MAX; /* the host refuses it */
}

static uint32_t read_tags(const struct vmprog *p, const struct cdc_json *j,
                          struct cdc_tag *tags)
{
    const struct cdc_host *h = p->host;
    uint32_t n = h->json_count(j);

    for (uint32_t i = 0; i < n && i < CDC_TAGS_MAX; i++) {
        tags[i].key = h->json_key(j, i);
        tags[i].value = h->json_str(h->json_at(j, i));
    }
    return n; /* too many: the host refuses the record */
}

static int64_t number_in(const struct vmprog *p, const struct cdc_json *j,
                         const char *key)
{
    int64_t n = 0;

    p->host->json_i64(p->host->json_get(j, key), &n);
    return n;
}

static void read_error(const struct vmprog *p, const struct cdc_json *j,
                       struct cdc_instance *ret)
{
    const struct cdc_json *error = p->host->json_get(j, "error");

    if (!error)
        return;
    ret->error_class = class_of(text_in(p, error, "class"));
    ret->error_text = text_in(p, error, "text");
}

int32_t vmprog_emit(const struct vmprog *p, struct cdc_op *op,
                    const struct cdc_json *j)
{
    struct cdc_tag tags[CDC_TAGS_MAX];
    struct cdc_instance i = {.size = sizeof i, .tags = tags, .price = -1};

    i.state = state_of(text_in(p, j, "state"));
    i.id = text_in(p, j, "id");
    i.name = text_in(p, j, "name");
    i.create_token = text_in(p, j, "create_token");
    i.member = (int32_t)number_in(p, j, "member");
    i.provider_type = text_in(p, j, "provider_type");
    i.placement = text_in(p, j, "placement");
    i.address = text_in(p, j, "address");
    i.port = (int32_t)number_in(p, j, "port");
    i.user = text_in(p, j, "user");
    i.n_tags = read_tags(p, p->host->json_get(j, "tags"), tags);
    i.created_ms = number_in(p, j, "created_ms");
    p->host->json_f64(p->host->json_get(j, "price"), &i.price);
    i.host_key = text_in(p, j, "host_key");
    read_error(p, j, &i);
    return p->host->emit_instance(op, &i);
}
