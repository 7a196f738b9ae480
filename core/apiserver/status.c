/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET container_requests/{uuid}/container_status
 *
 * The handler has found a request that the caller may read, and its container
 * (in c->attrs). Here, on the loop, the dispatcher's management API is asked
 * for it: its view is fresher than the database and knows the reason for a
 * wait. A dispatcher that does not answer, or does not know the container, is
 * no error: then the database's state is all there is to say.
 */
#include "core/apiserver/status.h"

#include <stdlib.h>
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/handlers.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/io/httpc.h"

enum { ASK_MS = 3000 };

struct status {
    struct httpc *http; /* NULL: there is nobody to ask */
    const struct app_cfg *cfg;
};

struct status *status_create(struct loop *l, const struct app_cfg *cfg)
{
    struct status *s = MEM_NEW(struct status);
    struct httpc_cfg http = {.max_conns = 4,
                             .user_agent = "crunch-api-server"};

    s->cfg = cfg;
    if (*cfg->dispatch_url && *cfg->management_token)
        s->http = httpc_create(l, &http);
    return s;
}

void status_destroy(struct status *s)
{
    if (!s)
        return;
    httpc_destroy(s->http);
    free(s);
}

static void reply(struct call *c, const char *state, const char *why)
{
    struct jsn_w w;

    call_json(c, &w);
    jsn_w_str(&w, "uuid", store_str(&c->attrs, C_uuid));
    jsn_w_str(&w, "container_state", state);
    jsn_w_str(&w, "scheduling_status", why);
    jsn_w_end_obj(&w);
    call_reply(c);
}

static void on_answer(void *arg, const struct httpc_result *r)
{
    struct call *c = arg;
    CLEANUP(jsn_cleanup) struct jsn *j = NULL;
    const char *state = store_str(&c->attrs, C_state), *why = "";

    if (r->err.class == ERR_NONE && r->status == 200 &&
        (j = jsn_parse(r->body, r->len, NULL))) {
        jsn_opt_str(jsn_get(j, "container"), "state", &state, NULL);
        jsn_opt_str(j, "scheduling_status", &why, NULL);
    }
    reply(c, state, why);
}

void status_finish(struct call *c)
{
    struct status *s = c->app->status;
    CLEANUP(mem_free) char *url = NULL, *auth = NULL;

    if (!s->http) {
        reply(c, store_str(&c->attrs, C_state), "");
        return;
    }
    url = mem_printf("%s/arvados/v1/dispatch/container?container_uuid=%s",
                     s->cfg->dispatch_url, store_str(&c->attrs, C_uuid));
    auth = mem_printf("Authorization: Bearer %s", s->cfg->management_token);
    const char *const headers[] = {auth, NULL};
    struct httpc_request req = {.method = "GET", .url = url,
                                .headers = headers, .connect_ms = ASK_MS,
                                .deadline_ms = ASK_MS};
    httpc_start(s->http, &req, on_answer, c);
}
