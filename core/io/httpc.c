/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP client: one curl multi handle on the loop.
 *
 * curl tells which sockets it wants watched (on_socket) and when it wants to
 * be called (on_timer); we tell it what happened (curl_multi_socket_action)
 * and collect what has ended. User callbacks run only from collect(), when no
 * curl function is on the stack, so they may start and cancel calls.
 *
 * Two traps of the pair are closed here. libuv aborts the process when a
 * watched descriptor was closed behind its back, and curl does not always say
 * before it closes: therefore sockets are opened and closed by functions of
 * ours, which also make them close-on-exec. And curl repeats a request by
 * itself when a kept connection turns out to be dead: right for a GET, wrong
 * for a request that may have had its effect. on_issue counts how often a
 * request is put on the wire and stops the second time unless it is harmless;
 * it also knows whether a request ever left.
 */

#include "core/io/httpc.h"

#include <assert.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/io/loop.h"

enum {
    CONNS = 64,
    CONNECT_MS = 10000,
    DEADLINE_MS = 60000,
    REPLY_MAX = 1 << 20,
    IDLE_S = 20, /* below the idle deadline of our own server */
};

struct watch {
    uv_poll_t poll;
    struct httpc *c;
    curl_socket_t fd;
    struct watch *next, **link;
};

struct httpc {
    struct loop *loop;
    struct httpc_cfg cfg;
    CURLM *multi;
    struct loop_timer *timer;
    struct watch *watches;
    struct httpc_call *calls;
};

struct httpc_call {
    struct httpc *c;
    struct httpc_call *next, **link;
    CURL *easy;
    struct curl_slist *headers;
    char *method, *what; /* what: for error texts */
    void *body;
    struct buf reply;
    char error[CURL_ERROR_SIZE];
    unsigned issued;
    int64_t begun_us;
    void (*cb)(void *arg, const struct httpc_result *r);
    void *arg;
    struct loop_timer *cancel; /* armed: cancelled, to be reported */
};

static void collect(struct httpc *c);

/* --- sockets and timer ---------------------------------------------------*/

static void on_watch_closed(uv_handle_t *h)
{
    free(h->data);
}

static void unwatch(struct watch *w)
{
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    uv_poll_stop(&w->poll);
    uv_close((uv_handle_t *) &w->poll, on_watch_closed);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct watch *w = poll->data;
    struct httpc *c = w->c;
    int what = 0, running;

    if (status < 0)
        what = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        what |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        what |= CURL_CSELECT_OUT;
    curl_multi_socket_action(c->multi, w->fd, what, &running);
    collect(c);
}

static struct watch *watch(struct httpc *c, curl_socket_t fd)
{
    struct watch *w = MEM_NEW(struct watch);

    w->c = c;
    w->fd = fd;
    w->poll.data = w;
    if (uv_poll_init_socket(loop_uv(c->loop), &w->poll, fd) < 0) {
        free(w);
        return NULL;
    }
    w->next = c->watches;
    if (w->next)
        w->next->link = &w->next;
    w->link = &c->watches;
    c->watches = w;
    curl_multi_assign(c->multi, fd, w);
    return w;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg,
                     void *assigned)
{
    struct httpc *c = arg;
    struct watch *w = assigned;
    int events = 0;

    (void) easy;
    if (what == CURL_POLL_REMOVE) {
        if (w)
            unwatch(w);
        curl_multi_assign(c->multi, fd, NULL);
        return 0;
    }
    if (!w && !(w = watch(c, fd)))
        return -1;
    if (what & CURL_POLL_IN)
        events |= UV_READABLE;
    if (what & CURL_POLL_OUT)
        events |= UV_WRITABLE;
    uv_poll_start(&w->poll, events, on_ready);
    return 0;
}

static curl_socket_t on_open(void *arg, curlsocktype purpose,
                             struct curl_sockaddr *a)
{
    (void) arg;
    (void) purpose;
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* Whatever curl has said before: nothing may watch what is closed here. */
static int on_close(void *arg, curl_socket_t fd)
{
    struct httpc *c = arg;

    for (struct watch *w = c->watches; w; w = w->next)
        if (w->fd == fd) {
            unwatch(w);
            curl_multi_assign(c->multi, fd, NULL);
            break;
        }
    return close(fd);
}

static void on_due(void *arg)
{
    struct httpc *c = arg;
    int running;

    c->timer = NULL;
    curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    collect(c);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
    struct httpc *c = arg;

    (void) multi;
    loop_timer_cancel(c->timer);
    c->timer = ms < 0 ? NULL
                      : loop_timer_arm(c->loop, (int64_t) ms * 1000, on_due,
                                       c);
    return 0;
}

/* --- one call ------------------------------------------------------------*/

static bool is_harmless(const struct httpc_call *k)
{
    return strcmp(k->method, "GET") == 0 || strcmp(k->method, "HEAD") == 0;
}

static int on_issue(void *arg, char *remote_ip, char *local_ip,
                    int remote_port, int local_port)
{
    struct httpc_call *k = arg;

    (void) remote_ip;
    (void) local_ip;
    (void) remote_port;
    (void) local_port;
    if (k->issued++ > 0 && !is_harmless(k))
        return CURL_PREREQFUNC_ABORT;
    return CURL_PREREQFUNC_OK;
}

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
    struct httpc_call *k = arg;

    if (buf_append(&k->reply, data, size * n) < 0)
        return 0; /* ends the transfer with CURLE_WRITE_ERROR */
    return size * n;
}

static void call_free(struct httpc_call *k)
{
    *k->link = k->next;
    if (k->next)
        k->next->link = k->link;
    loop_timer_cancel(k->cancel);
    curl_easy_cleanup(k->easy);
    curl_slist_free_all(k->headers);
    free(k->method);
    free(k->what);
    free(k->body);
    buf_fini(&k->reply);
    free(k);
}

static void finish(struct httpc_call *k, struct httpc_result *r)
{
    r->call = k;
    r->unsent = k->issued == 0;
    r->body = k->reply.data;
    r->len = k->reply.len;
    r->begun_us = k->begun_us;
    k->cb(k->arg, r);
    call_free(k);
}

static enum err_class class_of(const struct httpc_call *k, CURLcode rc)
{
    switch (rc) {
    case CURLE_OPERATION_TIMEDOUT:
        return ERR_TIMEOUT;
    case CURLE_WRITE_ERROR:
        return k->reply.over ? ERR_TOO_LARGE : ERR_TRANSIENT;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return ERR_CONFIG;
    default:
        return ERR_TRANSIENT;
    }
}

static void ended(struct httpc_call *k, CURLcode rc)
{
    struct httpc_result r = {0};
    const char *why = k->error[0] ? k->error : curl_easy_strerror(rc);
    long status = 0;

    curl_multi_remove_handle(k->c->multi, k->easy);
    curl_easy_getinfo(k->easy, CURLINFO_RESPONSE_CODE, &status);
    r.status = (int) status;
    if (k->reply.over)
        why = "the reply is too large";
    else if (rc == CURLE_ABORTED_BY_CALLBACK)
        why = "the connection was lost after the request was sent";
    if (rc != CURLE_OK)
        err_set(&r.err, class_of(k, rc), "%s: %s", k->what, why);
    finish(k, &r);
}

static void collect(struct httpc *c)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(c->multi, &left))) {
        struct httpc_call *k;
        CURLcode rc = m->data.result;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &k);
        ended(k, rc);
    }
}

static void set_method(struct httpc_call *k, const struct httpc_request *req)
{
    bool sends = req->body || strcmp(req->method, "POST") == 0 ||
                 strcmp(req->method, "PUT") == 0 ||
                 strcmp(req->method, "PATCH") == 0;

    if (sends) {
        k->body = mem_dup(req->body ? req->body : "", req->body_len);
        curl_easy_setopt(k->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(k->easy, CURLOPT_POSTFIELDS, k->body);
        curl_easy_setopt(k->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t) req->body_len);
    } else if (strcmp(req->method, "HEAD") == 0) {
        curl_easy_setopt(k->easy, CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(k->easy, CURLOPT_CUSTOMREQUEST, req->method);
}

static void set_headers(struct httpc_call *k, const struct httpc_request *req)
{
    /* Waiting for "100 Continue" only costs time. */
    k->headers = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; req->headers && req->headers[i]; i++)
        k->headers = curl_slist_append(k->headers, req->headers[i]);
    curl_easy_setopt(k->easy, CURLOPT_HTTPHEADER, k->headers);
}

static void set_limits(struct httpc_call *k, const struct httpc_request *req)
{
    CURL *e = k->easy;

    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
                     (long) (req->connect_ms ? req->connect_ms : CONNECT_MS));
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS,
                     (long) (req->deadline_ms ? req->deadline_ms
                                              : DEADLINE_MS));
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_NETRC, (long) CURL_NETRC_IGNORED);
    curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, (long) IDLE_S);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 65536L);
    buf_init(&k->reply, req->max_reply ? req->max_reply : REPLY_MAX);
}

static void set_callbacks(struct httpc_call *k)
{
    CURL *e = k->easy;

    curl_easy_setopt(e, CURLOPT_PRIVATE, k);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, k->error);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, k);
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_issue);
    curl_easy_setopt(e, CURLOPT_PREREQDATA, k);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, k->c);
    if (k->c->cfg.ca_bundle)
        curl_easy_setopt(e, CURLOPT_CAINFO, k->c->cfg.ca_bundle);
    if (k->c->cfg.user_agent)
        curl_easy_setopt(e, CURLOPT_USERAGENT, k->c->cfg.user_agent);
}

struct httpc_call *httpc_start(struct httpc *c,
                               const struct httpc_request *req,
                               void (*cb)(void *arg,
                                          const struct httpc_result *r),
                               void *arg)
{
    struct httpc_call *k = MEM_NEW(struct httpc_call);

    k->c = c;
    k->cb = cb;
    k->arg = arg;
    k->begun_us = clock_mono_us();
    k->method = mem_strdup(req->method);
    /* Neither a query nor its possible secrets belong into messages. */
    k->what = mem_printf("%s %.*s", req->method,
                         (int) strcspn(req->url, "?"), req->url);
    k->next = c->calls;
    if (k->next)
        k->next->link = &k->next;
    k->link = &c->calls;
    c->calls = k;
    k->easy = curl_easy_init();
    assert(k->easy); /* out of memory */
    curl_easy_setopt(k->easy, CURLOPT_URL, req->url);
    set_method(k, req);
    set_headers(k, req);
    set_limits(k, req);
    set_callbacks(k);
    curl_multi_add_handle(c->multi, k->easy);
    return k;
}

static void report_cancel(struct httpc_call *k)
{
    struct httpc_result r = {0};

    err_set(&r.err, ERR_CANCELLED, "%s: given up", k->what);
    finish(k, &r);
}

static void on_cancel(void *arg)
{
    struct httpc_call *k = arg;

    k->cancel = NULL;
    report_cancel(k);
}

void httpc_cancel(struct httpc_call *k)
{
    if (k->cancel)
        return;
    curl_multi_remove_handle(k->c->multi, k->easy);
    k->cancel = loop_timer_arm(k->c->loop, 0, on_cancel, k);
}

const char *httpc_header(const struct httpc_result *r, const char *name)
{
    struct curl_header *h;

    if (curl_easy_header(r->call->easy, name, 0, CURLH_HEADER, -1, &h) !=
        CURLHE_OK)
        return NULL;
    return h->value;
}

char *httpc_take_body(const struct httpc_result *r, size_t *ret_len)
{
    return buf_take(&r->call->reply, ret_len);
}

/* --- life ----------------------------------------------------------------*/

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

struct httpc *httpc_create(struct loop *l, const struct httpc_cfg *cfg)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct httpc *c = MEM_NEW(struct httpc);
    long conns = cfg->max_conns ? (long) cfg->max_conns : CONNS;

    pthread_once(&once, init_curl);
    c->loop = l;
    c->cfg.ca_bundle = mem_strdup(cfg->ca_bundle);
    c->cfg.user_agent = mem_strdup(cfg->user_agent);
    c->multi = curl_multi_init();
    assert(c->multi); /* out of memory */
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, conns);
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, conns);
    return c;
}

void httpc_destroy(struct httpc *c)
{
    if (!c)
        return;
    while (c->calls) {
        if (!c->calls->cancel)
            curl_multi_remove_handle(c->multi, c->calls->easy);
        report_cancel(c->calls);
    }
    curl_multi_cleanup(c->multi); /* closes the kept connections */
    while (c->watches)
        unwatch(c->watches);
    loop_timer_cancel(c->timer);
    free((void *) (uintptr_t) c->cfg.ca_bundle);
    free((void *) (uintptr_t) c->cfg.user_agent);
    free(c);
}
