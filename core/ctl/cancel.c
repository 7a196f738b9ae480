/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunchctl cancel: end requests. With our server this is a route of its own,
 * which also ends a container that is still queued. An Arvados server has
 * none (404): there priority 0 is the nearest thing, which puts a queued
 * container on hold; the output says so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/ctl/client.h"
#include "core/ctl/ctl.h"
#include "core/ctl/record.h"
#include "core/ctl/verbs.h"

static void report(struct ctl *ctl, const struct jsn *j, const char *what)
{
    if (ctl->json) {
        CLEANUP(buf_fini) struct buf b;

        buf_init(&b, 4 << 20);
        jsn_print(j, false, &b);
        puts(b.data);
    } else {
        printf("%s %s\n", record_str(j, "uuid"), what);
    }
}

static int hold(struct ctl *ctl, const char *uuid, struct err *err)
{
    CLEANUP(mem_free) char *path =
        record_path("/arvados/v1/container_requests/", uuid, "");
    CLEANUP(jsn_cleanup) struct jsn *j =
        client_call(ctl->client, CLIENT_API, "PUT", path,
                    "{\"container_request\":{\"priority\":0}}", err);

    if (!j)
        return -1;
    report(ctl, j, "on hold (priority 0)");
    return 0;
}

static int cancel(struct ctl *ctl, const char *uuid, struct err *err)
{
    CLEANUP(mem_free) char *path =
        record_path("/arvados/v1/container_requests/", uuid, "/cancel");
    CLEANUP(jsn_cleanup) struct jsn *j =
        client_call(ctl->client, CLIENT_API, "POST", path, NULL, err);

    if (j) {
        report(ctl, j, "cancelled");
        return 0;
    }
    return err->class == ERR_NOT_FOUND ? hold(ctl, uuid, err) : -1;
}

static int cancel_any(struct ctl *ctl, const char *uuid, struct err *err)
{
    struct record r;
    int rc;

    if (record_get(ctl->client, uuid, &r, err) < 0)
        return -1;
    if (r.request && !strcmp(record_str(r.request, "state"), "Final"))
        rc = err_set(err, ERR_CONFLICT, "%s has ended already", uuid);
    else if (r.request)
        rc = cancel(ctl, record_str(r.request, "uuid"), err);
    else
        rc = err_set(err, ERR_NOT_FOUND, "%s: no request of yours has it",
                     uuid);
    record_fini(&r);
    return rc;
}

int verb_cancel(struct ctl *ctl)
{
    int rc = CTL_OK;

    if (!ctl->n_args)
        return ctl_usage(ctl, "a uuid is missing");
    if (!ctl_client(ctl))
        return CTL_USAGE;
    for (size_t i = 0; i < ctl->n_args; i++) {
        struct err err;

        if (cancel_any(ctl, ctl->args[i], &err) < 0)
            rc = ctl_fail_err(&err);
    }
    return rc;
}
