/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of logs and output: written by runners, read by users.
 *
 * Writing is for the token of the live attempt alone, into that attempt's own
 * folder, while the container is Locked or Running. The token was checked in
 * this call's snapshot; should it be revoked a moment later, the bytes lie in
 * a folder that nobody will publish.
 *
 * Reading follows permission, not possession of a hash: a log through a
 * request that the user may read, a file through a collection that is his. A
 * file that still grows can be read at any time; Range makes following cheap.
 *
 * READ lane.
 */
#include <stdio.h>
#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/change.h"
#include "core/apiserver/files.h"
#include "core/apiserver/handlers.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/model/ctr.h"

enum { PIECE_MAX = 16 << 20, WHOLE_MAX = 60 << 20 };

/* --------------------------------------------------------------- write -- */

static enum store_next put(struct call *c, struct store_tx *tx,
                           enum files_kind kind)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct files_at at = {c->id, c->who.attempt, kind};
    int64_t offset = 0, size;
    struct err err = {0};
    enum ctr_state state;
    struct jsn_w w;

    if (strcmp(c->id, c->who.container_uuid) != 0)
        return call_fail(c, 403, "this token is another container's");
    if (params_i64(&c->params, "offset", &offset, &err) < 0 ||
        store_get(tx, STORE_CONTAINERS, c->id,
                  STORE_BIT(C_state) | STORE_BIT(C_attempt), &ctr,
                  &err) < 0)
        return call_fail_err(c, &err);
    state = change_state(&ctr);
    if (state != CTR_LOCKED && state != CTR_RUNNING)
        return call_fail(c, 422, "a container in state %s takes no files",
                         store_str(&ctr, C_state));
    store_release(tx);
    if (files_put(c->app->files, &at, c->rest, offset,
                  kind == FILES_OUTPUT && offset == 0, c->body, c->body_len,
                  &size, &err) < 0)
        return call_fail_err(c, &err);
    call_json(c, &w);
    jsn_w_i64(&w, "size", size);
    jsn_w_end_obj(&w);
    return STORE_DONE;
}

enum store_next content_put_log(struct call *c, struct store_tx *tx)
{
    return put(c, tx, FILES_LOG);
}

enum store_next content_put_output(struct call *c, struct store_tx *tx)
{
    return put(c, tx, FILES_OUTPUT);
}

/* --------------------------------------------------------------- range -- */

struct range {
    bool asked;
    int64_t first; /* of the file; -n = its last n bytes */
    int64_t last;  /* INT64_MAX = to the end */
};

/* One range of bytes (RFC 9110, 14.1.2); anything else is ignored. */
static void parse_range(const char *text, struct range *r)
{
    long long first, last;
    int end = 0;

    *r = (struct range){.last = INT64_MAX};
    if (!text || strncmp(text, "bytes=", 6) != 0)
        return;
    text += 6;
    if (text[0] == '-' && text[1] >= '1' && text[1] <= '9' &&
        sscanf(text + 1, "%18lld%n", &last, &end) == 1 && !text[1 + end]) {
        r->asked = true;
        r->first = -last;
        return;
    }
    if (text[0] < '0' || text[0] > '9' ||
        sscanf(text, "%18lld-%n", &first, &end) != 1 || end == 0)
        return;
    text += end;
    if (*text && (*text < '0' || *text > '9' ||
                  sscanf(text, "%18lld%n", &last, &end) != 1 || text[end] ||
                  last < first))
        return;
    r->asked = true;
    r->first = first;
    r->last = *text ? last : INT64_MAX;
}

static enum store_next refuse_range(struct call *c, int64_t total)
{
    snprintf(c->content_range, sizeof c->content_range, "bytes */%lld",
             (long long) total);
    call_add_header(c, "Content-Range", c->content_range);
    return call_fail(c, 416, "the range begins beyond the end");
}

static enum store_next send_file(struct call *c, const struct files_at *at,
                                 const char *path)
{
    int64_t total = 0;
    size_t max = WHOLE_MAX;
    struct err err = {0};
    struct range r;

    parse_range(c->range, &r);
    /* The length first: it decides what a range means. */
    if (files_get(c->app->files, at, path, 0, 0, &c->out, &total, &err) < 0)
        return call_fail_err(c, &err);
    if (r.asked && r.first < 0)
        r.first = -r.first < total ? total + r.first : 0;
    if (r.asked && r.first >= total)
        return refuse_range(c, total);
    if (!r.asked && total > WHOLE_MAX)
        return call_fail(c, 422, "the file has %lld bytes: ask for ranges",
                         (long long) total);
    if (r.asked)
        max = r.last - r.first >= PIECE_MAX
                  ? (size_t) PIECE_MAX
                  : (size_t) (r.last - r.first + 1);
    c->out_type = "application/octet-stream";
    if (files_get(c->app->files, at, path, r.first, max, &c->out, &total,
                  &err) < 0)
        return call_fail_err(c, &err);
    call_add_header(c, "Accept-Ranges", "bytes");
    if (!r.asked)
        return STORE_DONE;
    snprintf(c->content_range, sizeof c->content_range,
             "bytes %lld-%lld/%lld", (long long) r.first,
             (long long) (r.first + (int64_t) c->out.len) - 1,
             (long long) total);
    call_add_header(c, "Content-Range", c->content_range);
    c->status = 206;
    return STORE_DONE;
}

/* ---------------------------------------------------------------- list -- */

struct listing {
    struct jsn_w w;
};

static int list_file(void *arg, const char *dir, const char *name, int fd,
                     int64_t size, struct err *err)
{
    struct listing *l = arg;
    CLEANUP(mem_free) char *path =
        mem_printf("%s%s%s", dir, *dir ? "/" : "", name);

    (void) fd;
    (void) err;
    jsn_w_obj(&l->w, NULL);
    jsn_w_str(&l->w, "name", path);
    jsn_w_i64(&l->w, "size", size);
    jsn_w_end_obj(&l->w);
    return 0;
}

static enum store_next send_list(struct call *c, const struct files_at *at)
{
    struct listing l;
    struct err err = {0};

    call_json(c, &l.w);
    jsn_w_arr(&l.w, "items");
    if (files_walk(c->app->files, at, false, list_file, &l, &err) < 0)
        return call_fail_err(c, &err);
    jsn_w_end_arr(&l.w);
    jsn_w_end_obj(&l.w);
    return STORE_DONE;
}

/* ---------------------------------------------------------------- logs -- */

/* The present container of a request that the caller may read. */
static int find_log(struct call *c, struct store_tx *tx,
                    struct store_row *ctr, struct err *err)
{
    CLEANUP(store_row_fini) struct store_row req = {0};

    if (call_find(c, tx, STORE_REQUESTS, c->id, STORE_BIT(R_container_uuid),
                  &req, err) < 0)
        return -1;
    if (!store_has(&req, R_container_uuid))
        return err_set(err, ERR_NOT_FOUND, "the request has no container");
    return store_get(tx, STORE_CONTAINERS,
                     store_str(&req, R_container_uuid),
                     STORE_BIT(C_uuid) | STORE_BIT(C_attempt), ctr, err);
}

static enum store_next log_of(struct call *c, struct store_tx *tx,
                              const char *path)
{
    CLEANUP(store_row_fini) struct store_row ctr = {0};
    struct err err = {0};
    size_t n;

    if (find_log(c, tx, &ctr, &err) < 0)
        return call_fail_err(c, &err);
    store_release(tx);
    struct files_at at = {store_str(&ctr, C_uuid),
                          store_i64(&ctr, C_attempt), FILES_LOG};
    n = strlen(at.uuid); /* Arvados has the container's uuid in between */
    if (strncmp(path, at.uuid, n) == 0 && (!path[n] || path[n] == '/'))
        path += path[n] ? n + 1 : n;
    return *path ? send_file(c, &at, path) : send_list(c, &at);
}

enum store_next content_get_log(struct call *c, struct store_tx *tx)
{
    return log_of(c, tx, c->rest);
}

enum store_next content_list_log(struct call *c, struct store_tx *tx)
{
    return log_of(c, tx, "");
}

/* --------------------------------------------------------- collections -- */

static bool take_row(void *arg, const struct store_row *row)
{
    store_row_merge(arg, row);
    return false;
}

/* By uuid or portable data hash; of several with one hash, any that the
 * caller may read. */
static int find_collection(struct call *c, struct store_tx *tx,
                           struct store_row *ret, struct err *err)
{
    struct store_value v = {.kind = STORE_TEXT, .s = c->id,
                            .n = strlen(c->id)};
    struct store_cond cond = {.table = STORE_COLLECTIONS,
                              .col = text_is_uuid(c->id, "4zz18")
                                         ? L_uuid
                                         : L_portable_data_hash,
                              .op = STORE_OP_EQ, .other = -1, .v = &v,
                              .n = 1};
    struct store_query q = {.table = STORE_COLLECTIONS, .cols = STORE_ALL,
                            .conds = &cond, .n_conds = 1, .limit = 1,
                            .reader = who_reader(&c->who)};

    if (store_find(tx, &q, take_row, ret, err) < 0)
        return -1;
    return ret->set ? 0 : err_set(err, ERR_NOT_FOUND, "Path not found");
}

static enum store_next content_of(struct call *c, struct store_tx *tx,
                                  bool list)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err err = {0};
    bool log;

    if (find_collection(c, tx, &row, &err) < 0)
        return call_fail_err(c, &err);
    store_release(tx);
    log = strcmp(store_str(&row, L_content), "log") == 0;
    struct files_at at = {store_str(&row, L_container_uuid),
                          store_i64(&row, L_attempt),
                          log ? FILES_LOG : FILES_OUTPUT};
    return list ? send_list(c, &at) : send_file(c, &at, c->rest);
}

enum store_next content_get_file(struct call *c, struct store_tx *tx)
{
    return content_of(c, tx, false);
}

enum store_next content_list_files(struct call *c, struct store_tx *tx)
{
    return content_of(c, tx, true);
}

enum store_next content_collection(struct call *c, struct store_tx *tx)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    struct err err = {0};

    if (find_collection(c, tx, &row, &err) < 0)
        return call_fail_err(c, &err);
    return call_record(c, &row);
}
