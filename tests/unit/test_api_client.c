/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The API port over HTTP, against a scripted server on the same loop: what is
 * asked, and what becomes of each kind of answer or silence.
 */

#include <stdio.h>

#include "core/arvados/api_client.h"
#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/io/form.h"
#include "core/io/httpd.h"
#include "core/io/loop.h"
#include "core/port/api.h"
#include "tests/unit/unit.h"

#define TOKEN "v2/zzzzz-gj3su-000000000000000/topsecret"
#define ME "zzzzz-gj3su-000000000000000"
#define A "zzzzz-dz642-aaaaaaaaaaaaaaa"
#define B "zzzzz-dz642-bbbbbbbbbbbbbbb"

struct answer {
    int status;
    const char *body;
};

struct world {
    struct loop *l;
    struct httpd *h;
    struct api_client *client;
    struct api_port *api;

    /* the script, and what was asked */
    struct answer answers[4];
    int asked;
    bool hold;
    struct httpd_req *held;
    char asks[4][200]; /* method, path, overriding method */
    char query[8192], body[8192], type[64];
    const char *retry_after;

    /* the last result */
    int results;
    bool quiet; /* results do not stop the loop */
    struct op_result r;
    struct ctr c;
    bool partial;
    size_t n;
    char first[CTR_UUID_SIZE], last[CTR_UUID_SIZE];
    char text[200];
    int64_t number;
    uint32_t features;
    bool flag;
};

static void note(struct world *w, struct httpd_req *r)
{
    const char *over = httpd_header(r, "x-http-method-override");
    const char *type = httpd_header(r, "content-type");
    const char *id = httpd_header(r, "x-request-id");
    size_t n;
    const char *body = httpd_body(r, &n);

    assert_string_equal(httpd_header(r, "authorization"), "Bearer " TOKEN);
    assert_non_null(id);
    assert_int_equal(strlen(id), 24);
    snprintf(w->asks[w->asked % 4], sizeof w->asks[0], "%s %s%s%s",
             httpd_method(r), httpd_path(r), over ? " as " : "",
             over ? over : "");
    snprintf(w->query, sizeof w->query, "%s", httpd_query(r));
    snprintf(w->body, sizeof w->body, "%.*s", (int) n, body);
    snprintf(w->type, sizeof w->type, "%s", type ? type : "-");
}

static void handler(void *arg, struct httpd_req *r)
{
    struct world *w = arg;
    const struct answer *a = &w->answers[w->asked % 4];

    note(w, r);
    w->asked++;
    if (w->hold) {
        w->held = r;
        return;
    }
    httpd_reply(r, a->status ? a->status : 200, "application/json",
                (struct httpd_header[]) {
                    {w->retry_after ? "Retry-After" : NULL, w->retry_after},
                    {0}},
                a->body ? a->body : "{}", strlen(a->body ? a->body : "{}"));
}

static int setup(void **state)
{
    struct world *w = MEM_NEW(struct world);
    struct httpd_cfg cfg = {.handler = handler, .arg = w};
    struct api_client_cfg client = {.token = TOKEN};
    char url[64];

    w->l = loop_create(NULL);
    w->h = httpd_create(w->l, &cfg, NULL);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", httpd_port(w->h));
    client.url = url;
    w->client = api_client_create(w->l, &client, NULL);
    w->api = api_client_port(w->client);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    api_client_destroy(w->client);
    httpd_destroy(w->h);
    if (w->held)
        httpd_reply(w->held, 200, NULL, NULL, NULL, 0);
    loop_destroy(w->l);
    free(w);
    return 0;
}

static void got(struct world *w, const struct op_result *r)
{
    w->results++;
    w->r = *r;
    assert_null(strstr(r->err.text, "topsecret"));
    assert_int_equal(r->outcome == OP_DONE, r->err.class == ERR_NONE);
    if (!w->quiet)
        loop_stop(w->l);
}

static void got_whoami(void *arg, const struct api_whoami_result *r)
{
    struct world *w = arg;

    snprintf(w->text, sizeof w->text, "%s", r->token_uuid);
    w->features = r->features;
    got(w, &r->r);
}

static void got_list(void *arg, const struct api_list_result *r)
{
    struct world *w = arg;

    w->n = r->n;
    if (r->n > 0) {
        memcpy(w->first, r->v[0].uuid, sizeof w->first);
        memcpy(w->last, r->v[r->n - 1].uuid, sizeof w->last);
    }
    got(w, &r->r);
}

static void got_ctr(void *arg, const struct api_ctr_result *r)
{
    struct world *w = arg;

    w->c = r->c;
    w->partial = r->partial;
    got(w, &r->r);
}

static void got_attempt(void *arg, const struct api_attempt_result *r)
{
    struct world *w = arg;

    w->number = r->attempt;
    snprintf(w->text, sizeof w->text, "%s", r->api_token);
    got(w, &r->r);
}

static void got_revoke(void *arg, const struct op_result *r)
{
    got(arg, r);
}

static void got_feed(void *arg, const struct api_feed_result *r)
{
    struct world *w = arg;

    snprintf(w->text, sizeof w->text, "%s", r->epoch);
    w->number = r->cursor;
    w->flag = r->resync;
    w->n = r->n;
    got(w, &r->r);
}

static void run(struct world *w, const struct op *op)
{
    int before = w->results;

    assert_non_null(op);
    loop_run(w->l);
    assert_int_equal(w->results, before + 1);
}

static void assert_outcome(struct world *w, enum op_outcome outcome,
                           enum err_class class)
{
    if (w->r.outcome != outcome || w->r.err.class != class)
        fail_msg("outcome %d (want %d), class %s (want %s): %s",
                 w->r.outcome, outcome, err_class_label(w->r.err.class),
                 err_class_label(class), w->r.err.text);
}

/* --- what is asked -------------------------------------------------------*/

static void whoami_reads_token_and_features(void **state)
{
    struct world *w = *state;

    w->answers[0].body = "{\"uuid\":\"" ME "\"}";
    w->answers[1].body = "{\"basePath\":\"/arvados/v1/\",\"cdc\":{"
                         "\"attempts\":true,\"feed\":"
                         "\"https://elsewhere/v9/feed\"}}";
    run(w, w->api->whoami(w->api, 1000, got_whoami, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_string_equal(w->text, ME);
    assert_int_equal(w->features, API_ATTEMPTS | API_FEED);
    assert_string_equal(w->asks[0],
                        "GET /arvados/v1/api_client_authorizations/current");
    assert_string_equal(w->asks[1],
                        "GET /discovery/v1/apis/arvados/v1/rest");

    /* The feed's path counts, its host does not: the token stays at home. */
    w->answers[2].body = "{\"epoch\":\"e\",\"cursor\":9,\"resync\":true,"
                         "\"items\":[]}";
    run(w, w->api->feed(w->api, "", 0, 0, got_feed, w));
    assert_string_equal(w->asks[2], "GET /v9/feed");
    assert_string_equal(w->query, "epoch=&since=0&wait=0");
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_string_equal(w->text, "e");
    assert_int_equal(w->number, 9);
    assert_true(w->flag);
}

static void whoami_without_extensions(void **state)
{
    struct world *w = *state;

    w->answers[0].body = "{\"uuid\":\"" ME "\"}";
    w->answers[1].body = "{\"basePath\":\"/arvados/v1/\"}";
    run(w, w->api->whoami(w->api, 1000, got_whoami, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_int_equal(w->features, 0);
    w->answers[2].status = 401;
    w->answers[2].body = "{\"errors\":[\"Not logged in\"]}";
    run(w, w->api->whoami(w->api, 1000, got_whoami, w));
    assert_outcome(w, OP_REFUSED, ERR_AUTH);
    assert_non_null(strstr(w->r.err.text, "401: Not logged in"));
    assert_string_equal(w->r.err.code, "401");
    assert_int_equal(strlen(w->r.err.request_id), 24);
}

static void a_queue_page_continues_through_ties(void **state)
{
    struct world *w = *state;
    struct ctr last = {.uuid = A, .priority = 5};
    struct api_list_req req = {.which = API_LIST_QUEUED, .limit = 2};

    w->answers[0].body = "{\"items\":[{\"uuid\":\"" A "\",\"priority\":5}]}";
    run(w, w->api->list(w->api, &req, got_list, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_int_equal(w->n, 1);
    assert_string_equal(w->asks[0], "GET /arvados/v1/containers");

    req.after = &last;
    w->answers[1].body = "{\"items\":[]}"; /* no ties: lower ones */
    w->answers[2].body = "{\"items\":[{\"uuid\":\"" B "\",\"priority\":4}]}";
    run(w, w->api->list(w->api, &req, got_list, w));
    assert_int_equal(w->asked, 3);
    assert_int_equal(w->n, 1);
    assert_string_equal(w->first, B);
    assert_non_null(strstr(w->query, "%22%3C%22%2C%225%22"));

    /* A tie is an answer of its own. */
    w->answers[3].body = "{\"items\":[{\"uuid\":\"" B "\",\"priority\":5}]}";
    run(w, w->api->list(w->api, &req, got_list, w));
    assert_int_equal(w->asked, 4);
    assert_int_equal(w->n, 1);

    /* Neither: the end. */
    w->answers[0].body = w->answers[1].body = "{\"items\":[]}";
    run(w, w->api->list(w->api, &req, got_list, w));
    assert_int_equal(w->asked, 6);
    assert_int_equal(w->n, 0);
    assert_outcome(w, OP_DONE, ERR_NONE);
}

static void long_queries_travel_as_posts(void **state)
{
    struct world *w = *state;
    const char *uuids[100];
    struct api_list_req req = {.which = API_LIST_UUIDS, .uuids = uuids,
                               .n_uuids = 100, .limit = 100};
    CLEANUP(form_cleanup) struct form *f = NULL;

    for (int i = 0; i < 100; i++)
        uuids[i] = A;
    w->answers[0].body = "{\"items\":[]}";
    run(w, w->api->list(w->api, &req, got_list, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_string_equal(w->asks[0], "POST /arvados/v1/containers as GET");
    assert_string_equal(w->type, "application/x-www-form-urlencoded");
    f = form_parse(w->body, strlen(w->body), 10, NULL);
    assert_string_equal(form_get(f, "limit"), "100");
}

static void calls_on_one_container(void **state)
{
    struct world *w = *state;
    struct api_update_req up = {.uuid = A, .set_cancelled = true,
                                .error = "why"};

    w->answers[0].body = "{\"uuid\":\"" A "\",\"state\":\"Running\","
                         "\"mounts\":{\"/t\":{\"kind\":\"tmp\","
                         "\"capacity\":3}}}";
    run(w, w->api->get(w->api, A, 1000, got_ctr, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_string_equal(w->asks[0], "GET /arvados/v1/containers/" A);
    assert_int_equal(w->c.tmp_capacity, 3);
    assert_false(w->partial);

    w->answers[1].body = "{\"uuid\":\"" A "\",\"state\":\"Locked\","
                         "\"priority\":1,\"locked_by_uuid\":\"" ME "\"}";
    run(w, w->api->lock(w->api, A, 1000, got_ctr, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_string_equal(w->asks[1], "POST /arvados/v1/containers/" A "/lock");
    assert_string_equal(w->body, "");
    assert_true(w->partial);
    assert_int_equal(w->c.state, CTR_LOCKED);
    assert_string_equal(w->c.locked_by, ME);

    w->answers[2].body = "{\"uuid\":\"" A "\",\"state\":\"Queued\"}";
    run(w, w->api->unlock(w->api, A, 1000, got_ctr, w));
    assert_string_equal(w->asks[2],
                        "POST /arvados/v1/containers/" A "/unlock");
    assert_true(w->partial);

    w->answers[3].body = "{\"uuid\":\"" A "\",\"state\":\"Cancelled\"}";
    run(w, w->api->update(w->api, &up, got_ctr, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_string_equal(w->asks[3], "PUT /arvados/v1/containers/" A);
    assert_string_equal(w->type, "application/json");
    assert_non_null(strstr(w->body, "{\"container\":{\"state\":\"Cancelled\","
                           "\"runtime_status\":{\"error\":\"why\"}}"));
    assert_false(w->partial);
}

static void attempts_are_made_and_revoked(void **state)
{
    struct world *w = *state;

    w->answers[0].body = "{\"uuid\":\"" A "\",\"attempt\":3,\"api_token\":"
                         "\"v2/x/y\"}";
    run(w, w->api->attempt(w->api, A, 1000, got_attempt, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_string_equal(w->asks[0],
                        "POST /arvados/v1/containers/" A "/attempt");
    assert_int_equal(w->number, 3);
    assert_string_equal(w->text, "v2/x/y");
    w->answers[1].body = "{\"uuid\":\"" A "\",\"attempt\":3}";
    run(w, w->api->revoke(w->api, A, 1000, got_revoke, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_string_equal(w->asks[1],
                        "DELETE /arvados/v1/containers/" A "/attempt");
}

/* --- what becomes of it --------------------------------------------------*/

static void refusals_and_doubts(void **state)
{
    static const struct {
        int status;
        enum op_outcome write, read;
        enum err_class class;
    } cases[] = {
        {400, OP_REFUSED, OP_REFUSED, ERR_INVALID},
        {403, OP_REFUSED, OP_REFUSED, ERR_AUTH},
        {404, OP_REFUSED, OP_REFUSED, ERR_NOT_FOUND},
        {422, OP_REFUSED, OP_REFUSED, ERR_CONFLICT},
        {429, OP_REFUSED, OP_REFUSED, ERR_RATE_LIMITED},
        {500, OP_UNKNOWN, OP_REFUSED, ERR_TRANSIENT},
        {502, OP_UNKNOWN, OP_REFUSED, ERR_TRANSIENT},
        {503, OP_REFUSED, OP_REFUSED, ERR_RATE_LIMITED},
        {302, OP_REFUSED, OP_REFUSED, ERR_CONFIG},
    };
    struct world *w = *state;

    w->retry_after = "3";
    for (size_t i = 0; i < MEM_COUNT(cases); i++) {
        for (int k = 0; k < 4; k++)
            w->answers[k].status = cases[i].status;
        run(w, w->api->lock(w->api, A, 1000, got_ctr, w));
        assert_outcome(w, cases[i].write, cases[i].class);
        assert_int_equal(w->r.err.retry_ms, 3000);
        run(w, w->api->get(w->api, A, 1000, got_ctr, w));
        assert_outcome(w, cases[i].read, cases[i].class);
        run(w, w->api->attempt(w->api, A, 1000, got_attempt, w));
        assert_outcome(w, cases[i].write, cases[i].class);
        run(w, w->api->revoke(w->api, A, 1000, got_revoke, w));
        assert_outcome(w, cases[i].write, cases[i].class);
    }
}

static void a_malformed_success_is_no_success(void **state)
{
    struct world *w = *state;
    struct api_list_req req = {.which = API_LIST_MINE, .token_uuid = ME};

    for (int k = 0; k < 4; k++)
        w->answers[k].body = "<html>login</html>";
    run(w, w->api->lock(w->api, A, 1000, got_ctr, w));
    assert_outcome(w, OP_UNKNOWN, ERR_INVALID);
    assert_non_null(strstr(w->r.err.text, "malformed reply"));
    run(w, w->api->list(w->api, &req, got_list, w));
    assert_outcome(w, OP_REFUSED, ERR_INVALID);
    run(w, w->api->whoami(w->api, 1000, got_whoami, w));
    assert_outcome(w, OP_REFUSED, ERR_INVALID);
}

static void silence_is_unknown_for_writes(void **state)
{
    struct world *w = *state;

    w->hold = true;
    run(w, w->api->lock(w->api, A, 50, got_ctr, w));
    assert_outcome(w, OP_UNKNOWN, ERR_TIMEOUT);
    httpd_reply(w->held, 200, NULL, NULL, NULL, 0);
    w->held = NULL;
    run(w, w->api->get(w->api, A, 50, got_ctr, w));
    assert_outcome(w, OP_REFUSED, ERR_TIMEOUT);
}

static void cut_off(void *arg)
{
    struct world *w = arg;

    httpd_destroy(w->h);
    w->h = NULL;
}

static void a_lost_connection_is_unknown_for_writes(void **state)
{
    struct world *w = *state;

    w->hold = true;
    loop_timer_arm(w->l, 50000, cut_off, w);
    run(w, w->api->revoke(w->api, A, 5000, got_revoke, w));
    assert_outcome(w, OP_UNKNOWN, ERR_TRANSIENT);
    /* Now nobody listens: nothing can have happened. */
    run(w, w->api->revoke(w->api, A, 5000, got_revoke, w));
    assert_outcome(w, OP_REFUSED, ERR_TRANSIENT);
}

struct to_cancel {
    struct world *w;
    struct op *op;
};

static void cancel(void *arg)
{
    struct to_cancel *t = arg;

    t->w->api->op_cancel(t->w->api, t->op);
}

static void cancelled_calls_tell_what_is_known(void **state)
{
    struct world *w = *state;
    struct to_cancel t = {.w = w};

    w->hold = true;
    t.op = w->api->lock(w->api, A, 5000, got_ctr, w);
    cancel(&t); /* at once */
    run(w, t.op);
    assert_outcome(w, OP_CANCELLED, ERR_CANCELLED);
    assert_int_equal(w->asked, 0);

    t.op = w->api->lock(w->api, A, 5000, got_ctr, w);
    loop_timer_arm(w->l, 30000, cancel, &t);
    run(w, t.op);
    assert_outcome(w, OP_UNKNOWN, ERR_CANCELLED);
    httpd_reply(w->held, 200, NULL, NULL, NULL, 0);
    w->held = NULL;

    t.op = w->api->feed(w->api, "e", 1, 50000, got_feed, w);
    loop_timer_arm(w->l, 30000, cancel, &t);
    run(w, t.op);
    assert_outcome(w, OP_CANCELLED, ERR_CANCELLED);
    assert_string_equal(w->query, "epoch=e&since=1&wait=50");
}

/* A page that is parsed on the thread. */
static char *large_page(size_t n)
{
    struct buf b;

    buf_init(&b, 32 << 20);
    buf_puts(&b, "{\"items\":[");
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s{\"uuid\":\"zzzzz-dz642-%015zu\",\"state\":"
                   "\"Queued\",\"priority\":%zu,\"runtime_constraints\":"
                   "{\"vcpus\":1,\"ram\":1000000,\"API\":false}}",
                   i ? "," : "", i, n - i);
    buf_puts(&b, "]}");
    return buf_take(&b, NULL);
}

static void large_pages_arrive_whole(void **state)
{
    struct world *w = *state;
    CLEANUP(mem_free) char *page = large_page(1000);
    struct api_list_req req = {.which = API_LIST_QUEUED, .limit = 1000};

    w->answers[0].body = page;
    run(w, w->api->list(w->api, &req, got_list, w));
    assert_outcome(w, OP_DONE, ERR_NONE);
    assert_int_equal(w->n, 1000);
    assert_string_equal(w->first, "zzzzz-dz642-000000000000000");
    assert_string_equal(w->last, "zzzzz-dz642-000000000000999");
}

static void stop(void *arg)
{
    loop_stop(((struct world *) arg)->l);
}

/* Whatever a call is doing, destroying the client silences it. */
static void destroy_silences_calls(void **state)
{
    struct world *w = *state;
    CLEANUP(mem_free) char *page = large_page(1000);
    struct api_list_req req = {.which = API_LIST_QUEUED, .limit = 1000};

    w->answers[0].body = w->answers[1].body = w->answers[2].body = page;
    for (int i = 0; i < 3; i++)
        w->api->list(w->api, &req, got_list, w);
    w->api->lock(w->api, A, 1000, got_ctr, w);
    w->quiet = true;
    loop_timer_arm(w->l, 3000, stop, w); /* somewhere in the middle */
    loop_run(w->l);
    api_client_destroy(w->client);
    w->client = NULL;
    w->results = 0;
    loop_timer_arm(w->l, 50000, stop, w);
    loop_run(w->l);
    assert_int_equal(w->results, 0);
}

static void bad_settings_are_refused(void **state)
{
    struct world *w = *state;
    struct err err;

    assert_null(api_client_create(w->l, &(struct api_client_cfg) {
                    .url = "ftp://x", .token = "t"}, &err));
    assert_int_equal(err.class, ERR_CONFIG);
    assert_null(api_client_create(w->l, &(struct api_client_cfg) {
                    .url = "http://127.0.0.1", .token = "a\r\nb"}, &err));
    assert_int_equal(err.class, ERR_CONFIG);
    assert_null(api_client_create(w->l, &(struct api_client_cfg) {
                    .url = "http://127.0.0.1", .token = ""}, &err));
    api_client_destroy(NULL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(whoami_reads_token_and_features),
        T(whoami_without_extensions),
        T(a_queue_page_continues_through_ties),
        T(long_queries_travel_as_posts),
        T(calls_on_one_container),
        T(attempts_are_made_and_revoked),
        T(refusals_and_doubts),
        T(a_malformed_success_is_no_success),
        T(silence_is_unknown_for_writes),
        T(a_lost_connection_is_unknown_for_writes),
        T(cancelled_calls_tell_what_is_known),
        T(large_pages_arrive_whole),
        T(destroy_silences_calls),
        T(bad_settings_are_refused),
    };

    return cmocka_run_group_tests_name("api_client", tests, NULL, NULL);
}
