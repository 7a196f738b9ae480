/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunchctl submit: one request from the command line, or many from a file of
 * JSON lines. Each create call carries a fresh idempotency key, so that a
 * call whose answer was lost can be repeated under the same key without
 * making a second request; it is, three times.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/ctl/client.h"
#include "core/ctl/ctl.h"
#include "core/ctl/logcopy.h"
#include "core/ctl/record.h"
#include "core/ctl/spec.h"
#include "core/ctl/verbs.h"
#include "core/ctl/waiter.h"

enum { SUBMIT_MAX = 4 << 20, SUBMIT_TRIES = 4, SUBMIT_LINES = 100000 };

struct uuids {
    VEC(char *) v;
};

/* Create; the new uuid to the list and to standard output. */
static int create(struct ctl *ctl, const char *body, struct uuids *made,
                  struct err *err)
{
    uint8_t random[16];
    char key[33], header[64];
    struct jsn *j = NULL;

    secret_random(random, sizeof random);
    text_hex(random, sizeof random, key);
    snprintf(header, sizeof header, "Idempotency-Key: %s", key);
    for (int i = 0; i < SUBMIT_TRIES && !j; i++) {
        j = client_call_with(ctl->client, CLIENT_API, "POST",
                             "/arvados/v1/container_requests", body, header,
                             err);
        if (!j && err->class != ERR_TRANSIENT && err->class != ERR_TIMEOUT &&
            err->class != ERR_RATE_LIMITED)
            break;
        if (!j)
            client_sleep(ctl->client, 300 << i);
    }
    if (!j)
        return -1;
    if (ctl->json) {
        CLEANUP(buf_fini) struct buf b;

        buf_init(&b, SUBMIT_MAX);
        jsn_print(j, false, &b);
        puts(b.data);
    } else {
        puts(record_str(j, "uuid"));
    }
    fflush(stdout);
    VEC_PUSH(&made->v, mem_strdup(record_str(j, "uuid")));
    jsn_free(j);
    return 0;
}

static int submit_one(struct ctl *ctl, struct uuids *made)
{
    CLEANUP(buf_fini) struct buf body;
    struct err err;
    int rc;

    buf_init(&body, SUBMIT_MAX);
    rc = spec_write(ctl, &body);
    if (!rc && create(ctl, body.data, made, &err) < 0)
        rc = ctl_fail_err(&err);
    return rc;
}

/* One line of the file: a container_request object. */
static int submit_line(struct ctl *ctl, const char *line, size_t n,
                       struct uuids *made, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(line, n, err);
    CLEANUP(buf_fini) struct buf body;
    struct jsn_w w;

    buf_init(&body, SUBMIT_MAX);
    if (!j)
        return -1;
    if (jsn_type(j) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "a JSON object wanted");
    jsn_w_init(&w, &body);
    jsn_w_obj(&w, NULL);
    jsn_w_value(&w, "container_request", j);
    jsn_w_end_obj(&w);
    if (body.over)
        return err_set(err, ERR_TOO_LARGE, "the request is too large");
    return create(ctl, body.data, made, err);
}

/* The next line without its end; 0 = there is none. -1 = it is longer than
 * the buffer may be: a file without line ends must not fill the memory. */
static int read_line(FILE *f, struct buf *line)
{
    int c;

    buf_reset(line);
    while ((c = getc_unlocked(f)) != EOF && c != '\n')
        if (buf_putc(line, (char) c) < 0)
            return -1;
    return c == '\n' || line->len > 0;
}

static int submit_lines(struct ctl *ctl, FILE *f, const char *name,
                        struct uuids *made)
{
    CLEANUP(buf_fini) struct buf line;
    int rc = 0, more;

    buf_init(&line, SUBMIT_MAX);
    for (int no = 1; (more = read_line(f, &line)) != 0; no++) {
        struct err err;

        if (more < 0 || no > SUBMIT_LINES)
            return ctl_fail(CTL_FAILED, "%s:%d: too long; the rest was not "
                                        "read", name, no);
        if (strspn(line.data, " \t\r") == line.len)
            continue;
        if (submit_line(ctl, line.data, line.len, made, &err) < 0)
            rc = ctl_fail(CTL_FAILED, "%s:%d: %s", name, no, err.text);
    }
    if (ferror(f))
        return ctl_fail(CTL_FAILED, "%s: %s", name, strerror(errno));
    return rc;
}

static int submit_file(struct ctl *ctl, const char *name, struct uuids *made)
{
    FILE *f = strcmp(name, "-") ? fopen(name, "re") : stdin;
    int rc;

    if (!f)
        return ctl_fail(CTL_USAGE, "%s: %s", name, strerror(errno));
    rc = submit_lines(ctl, f, name, made);
    if (f != stdin)
        fclose(f);
    return rc;
}

/* With --wait the usual exit codes would be mistaken for the container's. */
static int wait_for(struct ctl *ctl, struct uuids *made, int submitted)
{
    int rc = made->v.n ? waiter_run(ctl, made->v.v, made->v.n, 0) : 0;

    for (size_t i = 0; ctl_has(ctl, "logs") && i < made->v.n; i++)
        logcopy_all(ctl, made->v.v[i]);
    if (submitted)
        return ctl_has(ctl, "file") ? CTL_FAILED : CTL_WAIT_FAILED;
    return rc;
}

int verb_submit(struct ctl *ctl)
{
    const char *file = ctl_opt(ctl, "file");
    struct uuids made = { 0 };
    int rc;

    if (file ? ctl->n_args > 0 : ctl->n_args == 0)
        return ctl_usage(ctl, file ? "--file takes no command"
                                   : "a command is missing");
    if (!ctl_client(ctl))
        return ctl_has(ctl, "wait") ? CTL_WAIT_FAILED : CTL_USAGE;
    rc = file ? submit_file(ctl, file, &made) : submit_one(ctl, &made);
    if (ctl_has(ctl, "wait"))
        rc = wait_for(ctl, &made, rc);
    for (size_t i = 0; i < made.v.n; i++)
        free(made.v.v[i]);
    VEC_FINI(&made.v);
    return rc;
}

int verb_wait(struct ctl *ctl)
{
    int64_t timeout;

    if (!ctl->n_args)
        return ctl_usage(ctl, "a uuid is missing");
    if (ctl_opt_duration(ctl, "timeout", 0, &timeout) < 0)
        return CTL_USAGE;
    return waiter_run(ctl, ctl->args, ctl->n_args, timeout);
}
