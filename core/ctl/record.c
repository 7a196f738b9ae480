/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and containers behind the verbs. A uuid's infix says which of the
 * two was given; from a request its container is read, from a container the
 * newest request that has it. The judgement of a final request (the exit code
 * of `submit --wait`) is here and nowhere else:
 *
 *   Complete            the container's exit code
 *   Cancelled, never    126: it could not be started (no fitting instance,
 *   ran, with an error       a refused mount or image)
 *   Cancelled otherwise 125
 */
#include "core/ctl/record.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/ctl/client.h"
#include "core/ctl/verbs.h"

#define API "/arvados/v1/"

char *record_path(const char *prefix, const char *uuid, const char *suffix)
{
    struct buf b;

    buf_init(&b, 64 << 10);
    buf_puts(&b, prefix);
    text_encode_uri(&b, uuid);
    buf_puts(&b, suffix);
    return buf_take(&b, NULL);
}

const char *record_str(const struct jsn *j, const char *key)
{
    const char *v = "";

    jsn_opt_str(j, key, &v, NULL);
    return v;
}

int64_t record_time(const struct jsn *j, const char *key)
{
    const char *text = record_str(j, key);
    int64_t us = 0;

    if (*text)
        text_parse_time(text, &us, NULL);
    return us;
}

static struct jsn *get(struct client *c, const char *prefix,
                       const char *uuid, struct err *err)
{
    CLEANUP(mem_free) char *path = record_path(prefix, uuid, "");
    struct jsn *j = client_call(c, CLIENT_API, "GET", path, NULL, err);

    if (!j && err && err->class == ERR_NOT_FOUND)
        err_set(err, ERR_NOT_FOUND, "%s is not known to the API server", uuid);
    return j;
}

/* The newest request with this container; NULL without error when none. */
static struct jsn *request_of(struct client *c, const char *uuid)
{
    CLEANUP(mem_free) char *filter =
        mem_printf("[[\"container_uuid\",\"=\",\"%s\"]]", uuid);
    CLEANUP(mem_free) char *path =
        record_path(API "container_requests?limit=1&count=none&order="
                        "created_at+desc&filters=", filter, "");
    CLEANUP(jsn_cleanup) struct jsn *list =
        client_call(c, CLIENT_API, "GET", path, NULL, NULL);
    const struct jsn *first = jsn_at(jsn_get(list, "items"), 0);

    return first ? get(c, API "container_requests/",
                       record_str(first, "uuid"), NULL) : NULL;
}

int record_get(struct client *c, const char *uuid, struct record *ret,
               struct err *err)
{
    struct record r = { 0 };

    if (text_is_uuid(uuid, "xvhdp")) {
        r.request = get(c, API "container_requests/", uuid, err);
        if (!r.request)
            return -1;
        uuid = record_str(r.request, "container_uuid");
        if (*uuid)
            r.container = get(c, API "containers/", uuid, err);
        if (*uuid && !r.container) {
            record_fini(&r);
            return -1;
        }
    } else if (text_is_uuid(uuid, "dz642")) {
        r.container = get(c, API "containers/", uuid, err);
        if (!r.container)
            return -1;
        r.request = request_of(c, uuid);
    } else {
        return err_set(err, ERR_CONFIG,
                       "\"%s\" is neither the uuid of a container request "
                       "nor that of a container", uuid);
    }
    *ret = r;
    return 0;
}

void record_fini(struct record *r)
{
    jsn_free(r->request);
    jsn_free(r->container);
    *r = (struct record){ 0 };
}

const char *record_state(const struct record *r)
{
    return record_str(r->container, "state");
}

bool record_final(const struct record *r)
{
    const char *state = record_state(r);

    if (r->request)
        return !strcmp(record_str(r->request, "state"), "Final");
    return !strcmp(state, "Complete") || !strcmp(state, "Cancelled");
}

const char *record_problem(const struct record *r)
{
    const struct jsn *status = jsn_get(r->container, "runtime_status");
    const char *error = record_str(status, "error");

    return *error ? error : record_str(status, "warning");
}

int record_exit_code(const struct record *r)
{
    int64_t code = 0;

    if (!strcmp(record_state(r), "Complete")) {
        jsn_opt_i64(r->container, "exit_code", &code, NULL);
        return (int) code;
    }
    if (!*record_str(r->container, "started_at") &&
        *record_str(jsn_get(r->container, "runtime_status"), "error"))
        return CTL_WAIT_NOT_STARTED;
    return CTL_WAIT_FAILED;
}
